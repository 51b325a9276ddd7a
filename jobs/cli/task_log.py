"""What a command says in between, for the log of the task in which a scheduler runs it."""

import click

from jobs.locking.attempt import find_own_attempt


def tell_scheduler(sentence: str) -> None:
    """Prints the sentence on stderr, but only where a scheduler has started this command.

    Its log would say nothing until the command has ended. A person has one answer to one command.
    """
    if find_own_attempt() is not None:
        click.echo(sentence, err=True)
