"""Asks for the lock of a pipeline before a command does anything, and before any JVM starts."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from windowing.spec.pipeline import Pipeline


def probe_lock(pipeline: "Pipeline") -> None:
    """Raises Busy where another command holds the lock.

    Says which one was ended instead, where that was an earlier try of the task of this command.
    """
    from jobs.locking.lock_file import probe

    ended = probe(pipeline)
    if ended is not None:
        click.echo(
            f"tidemark: {pipeline.name}: ended {ended}; this is the next try of the same task, and "
            "finishes what was left",
            err=True,
        )
