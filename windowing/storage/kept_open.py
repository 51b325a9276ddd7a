"""What one command knows of its tables: those it keeps open, and the versions that are its own.

Opening a table reads its log since the last log checkpoint. A run looks at most of its tables
several times, and seldom commits to one of them in between.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from deltalake import DeltaTable

from windowing.location import Location
from windowing.storage.files import list_tables, locate_commit, newest_version
from windowing.storage.store import store_of

Opener = Callable[[Location], DeltaTable | None]
"""Opens the newest version of the table at a path; None where there is none."""


class _OpenTable:
    """A table that was opened, and how one sees that its version is still the newest."""

    def __init__(self, path: Location, table: DeltaTable) -> None:
        self.table = table
        self._store = store_of(path)
        self._commit = locate_commit(path, table.version())
        self._next = locate_commit(path, table.version() + 1)
        self._identity = self._store.identify(self._commit)

    def is_newest(self) -> bool:
        """Whether no other commit follows, and the table was not made anew meanwhile."""
        if self._identity is None or self._store.identify(self._next) is not None:
            return False
        return self._store.identify(self._commit) == self._identity


@dataclass(frozen=True)
class _Command:
    """What a command knows, by the paths of tables."""

    tables: dict[Location, _OpenTable] = field(default_factory=dict)
    versions: dict[Location, int] = field(default_factory=dict)


_command: ContextVar[_Command | None] = ContextVar("command", default=None)


@contextmanager
def tables_kept_open() -> Iterator[None]:
    """Inside, `reuse_table` opens a table again only when another commit has been made to it.

    The versions that were noted inside are remembered until its end. Threads with a copy of the
    caller's context are inside, too, and so is a block in this one.
    """
    if _command.get() is not None:
        yield
        return
    before = _command.set(_Command())
    try:
        yield
    finally:
        _command.reset(before)


def reuse_table(path: Location, opens: Opener) -> DeltaTable | None:
    """The newest version of the table at `path`, for callers that write nothing through it."""
    command = _command.get()
    if command is None:
        return opens(path)
    known = command.tables.get(path)
    if known is not None and known.is_newest():
        return known.table
    table = opens(path)
    if table is not None:
        command.tables[path] = _OpenTable(path, table)
    return table


def note_tables(directory: Location) -> None:
    """Remembers the newest versions of the tables in a directory, which the command begins with."""
    for name in list_tables(directory):
        note_version(directory / name, newest_version(directory / name))


def note_version(path: Location, version: int) -> None:
    """Remembers a version that the command has begun with or has made."""
    command = _command.get()
    if command is not None:
        command.versions[path] = version


def forget_version(path: Location) -> None:
    """Forgets the version of a table that is about to be deleted."""
    command = _command.get()
    if command is not None:
        command.versions.pop(path, None)


def find_noted_version(path: Location) -> int | None:
    """The version that was noted last; None where there is none."""
    command = _command.get()
    return None if command is None else command.versions.get(path)


def find_next_version(path: Location) -> int | None:
    """The only version of a table that this command may commit; None where any is right.

    It follows from what the command has begun with or has made. Where several machines share the
    storage, another command may have taken over while this one slept, and then it may not go on
    from what the other one has made. On a disk of this machine the lock of the system lives as long
    as this process.
    """
    command = _command.get()
    if path.is_local or path.is_in_catalog or command is None:
        return None
    return command.versions.get(path, -1) + 1
