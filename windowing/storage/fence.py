"""Keeps a command whose lock was taken over from committing, without any clock.

A command on shared storage commits only versions that follow from those that it has begun with or
has made (`kept_open.py`). Whoever takes over its lock takes the next version of its tables first,
by a commit without rows. So a commit of the one before lies in front of that, as any interrupted
step leaves it, or is refused.
"""

from collections.abc import Iterable

from windowing.errors import Busy
from windowing.location import Location
from windowing.storage.commit_file import commit
from windowing.storage.files import newest_version

OPERATION = "FENCE"
"""The operation that the history of a table shows."""
_ATTEMPTS = 100


def fence_tables(tables: Iterable[Location]) -> None:
    """Takes the next version of each of the tables that exists.

    Wherever it fails it can be repeated, by the same command or by the next one. Busy where others
    commit to a table so often that no version can be had.
    """
    for table in tables:
        _fence_table(table)


def _fence_table(table: Location) -> None:
    for _ in range(_ATTEMPTS):
        version = newest_version(table) + 1
        if version == 0:
            return
        try:
            commit(table, version, OPERATION, [])
        except Busy:
            # The commit of the other one lies in front of the fence.
            continue
        return
    raise Busy(f"{table}: others commit to it all the time; stop them, then try again")
