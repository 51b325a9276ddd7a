"""The question that a command asks before it deletes, or does what another one can't expect."""

import sys

import click

from jobs.cli.errors import Failure
from jobs.cli.exit_codes import DECLINED
from windowing.errors import UsageError


def confirm(would: str, question: str, declined: str = "nothing was deleted") -> None:
    """Asks `question`, and returns if the answer is yes.

    Raises UsageError, which reports what the command `would` do, where there is no terminal, and
    Failure, which says what was `declined`, if the answer is no.
    """
    if not sys.stdin.isatty():
        raise UsageError(f"{would}; it asks first, and there is no terminal to ask on: give --yes")
    if not _is_confirmed(question):
        raise Failure(declined, DECLINED)


def _is_confirmed(question: str) -> bool:
    """Whether the answer is yes; Ctrl-C and the end of input count as no."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)
        return False
