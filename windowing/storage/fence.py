"""Keeps a writer that was taken for dead from committing, without any clock.

A commit names the version that it makes. Whoever takes over the lock of a writer takes the next
version of each of its tables first, by a commit without rows. So a commit that the other one has
prepared lies before that, or is refused. If it opens a table later, it finds the fence in it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from windowing.errors import Busy
from windowing.location import Location
from windowing.storage.commit_file import commit, note_transaction
from windowing.storage.files import newest_version
from windowing.storage.permission import FENCE

OPERATION = "FENCE"
"""The operation that the history of a table shows."""
_ATTEMPTS = 100


@dataclass(frozen=True)
class Fenced:
    """A table, and the version of it that is a fence."""

    table: Location
    version: int


def fence_tables(tables: Iterable[Location], epoch: int) -> tuple[Fenced, ...]:
    """Takes the next version of each table that exists, for the lock number `epoch`.

    Wherever it fails it can be repeated, by the same writer or by the next one. Busy where others
    commit to a table so often that no version can be had.
    """
    return tuple(fenced for table in tables if (fenced := _fence_table(table, epoch)) is not None)


def _fence_table(table: Location, epoch: int) -> Fenced | None:
    for _ in range(_ATTEMPTS):
        version = newest_version(table) + 1
        if version == 0:
            return None
        try:
            commit(table, version, OPERATION, [note_transaction(FENCE, epoch)])
        except Busy:
            # The commit of the other one lies before the fence, as of any interrupted step.
            continue
        return Fenced(table, version)
    raise Busy(f"{table}: others commit to it all the time; stop them, then try again")
