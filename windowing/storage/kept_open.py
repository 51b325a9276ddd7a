"""What one command knows of its tables: those it keeps open, and the versions that are its own.

Opening a table reads its log since the last log checkpoint. A run looks at most of its tables
several times, and seldom commits to one of them in between.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from deltalake import DeltaTable

from windowing.location import Location
from windowing.storage import files
from windowing.storage.files import list_tables, locate_commit
from windowing.storage.log_copies import LogCopies, Opener, open_nothing
from windowing.storage.log_lines import LOG
from windowing.storage.store import store_of


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
    """What a command knows, by the paths of tables; of a lake in `noted` it knows them all."""

    tables: dict[Location, _OpenTable] = field(default_factory=dict)
    versions: dict[Location, int] = field(default_factory=dict)
    noted: set[Location] = field(default_factory=set)

    def knows_place(self, path: Location) -> bool:
        """Whether a table at `path` would be among those that were noted.

        They are those of a lake and of the directories in it, without hidden ones.
        """
        home = path.parent
        return home in self.noted or (home.name[:1] != "_" and home.parent in self.noted)


_command: ContextVar[_Command | None] = ContextVar("command", default=None)


_copies: ContextVar[LogCopies | None] = ContextVar("copies", default=None)


def _copies_of(place: Location) -> LogCopies | None:
    """The copies of logs that a command works on; None on a disk of this machine."""
    return None if place.is_local else _copies.get()


@contextmanager
def logs_copied() -> Iterator[None]:
    """Inside, each file of a log on shared storage is read once. A block in this one is inside."""
    if _copies.get() is not None:
        yield
        return
    copies = LogCopies()
    before = _copies.set(copies)
    try:
        yield
    finally:
        _copies.reset(before)
        copies.close()


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
        with logs_copied():
            yield
    finally:
        _command.reset(before)


@contextmanager
def lake_written(directory: Location) -> Iterator[None]:
    """Inside, tables are kept open, and those of the directory have the versions of its start."""
    with tables_kept_open():
        note_tables(directory)
        yield


@contextmanager
def lake_seen(directory: Location, *others: Location) -> Iterator[None]:
    """Inside, nothing is written, and versions on shared storage are those that are there at first.

    They are those of the tables in the directory and of `others`. On a disk of this machine each
    look is a new one.
    """
    if directory.is_local:
        yield
        return
    with lake_written(directory):
        for table in others:
            if not table.is_local and not table.is_in_catalog:
                note_version(table, newest_version(table))
        yield


def reuse_table(path: Location, opens: Opener) -> DeltaTable | None:
    """The version of the table at `path` that this command works on, or else the newest.

    Callers write nothing through it. Of a table on shared storage the log alone may be read, and
    `locate_file` says where a data file of it is.
    """
    command, copies = _command.get(), _copies_of(path)
    if copies is not None:
        version = find_current_version(path)
        return None if version == -1 else copies.open(path, version, opens)
    if command is None:
        return opens(path)
    known = command.tables.get(path)
    if known is not None and known.is_newest():
        return known.table
    table = opens(path)
    if table is not None:
        command.tables[path] = _OpenTable(path, table)
    return table


def reuse_version(path: Location, version: int) -> DeltaTable | None:
    """A version that a look at the log has shown, as `reuse_table`; None where it isn't copied."""
    copies = _copies_of(path)
    return None if copies is None else copies.open(path, version, open_nothing)


def locate_file(path: Location, uri: str) -> str:
    """The URI of a data file, of which the table that `reuse_table` has opened tells `uri`."""
    copies = _copies_of(path)
    return uri if copies is None else copies.locate(path, uri)


def note_tables(directory: Location) -> None:
    """Remembers the newest versions of the tables in a directory, which the command begins with."""
    command, copies = _command.get(), _copies_of(directory)
    if command is None:
        return
    if copies is None:
        for name in list_tables(directory):
            note_version(directory / name, files.newest_version(directory / name))
        return
    for name, version in copies.find_versions(directory).items():
        note_version(directory / name, version)
    command.noted.add(directory)


def newest_version(path: Location) -> int:
    """The version of a table that this command works on, or else the newest; -1 for none."""
    current, copies = find_current_version(path), _copies_of(path)
    if current is not None:
        return current
    if copies is None:
        return files.newest_version(path)
    return copies.find_version(path)


def has_commit(path: Location) -> bool:
    """Whether the log of the table at `path` has a commit."""
    return files.has_commit(path) if path.is_local else newest_version(path) >= 0


def find_current_version(path: Location) -> int | None:
    """The version of a table on shared storage that this command works on; -1 for no table.

    It has begun with that version or has made it, and what it commits follows. So it need not be
    looked for again: where others have committed meanwhile, the commit is refused. None where the
    command has not looked yet, and for a table on a disk of this machine.
    """
    command = _command.get()
    if command is None or path.is_local or path.is_in_catalog:
        return None
    return command.versions.get(path, -1 if command.knows_place(path) else None)


def read_commit_text(path: Location, version: int) -> str | None:
    """The commit that made a version, as it was when the table was opened; None where it is gone.

    Where the command has not opened the table, its log is asked.
    """
    copies = _copies_of(path)
    if copies is not None:
        content = copies.read_commit(path, version)
        if content is not None:
            return content.decode()
    return files.read_commit_text(path, version)


def copy_data(path: Location, names: Sequence[str]) -> list[Path] | None:
    """Data files of a table on shared storage as files of this machine, until the command ends.

    Each is read as a whole, once. None where the table is on a disk, or a file is gone.
    """
    copies = _copies_of(path)
    return None if copies is None else copies.copy_data(path, names)


def keep_data(path: Location, name: str, content: bytes) -> None:
    """Keeps a data file that this process has written to a table on shared storage."""
    copies = _copies_of(path)
    if copies is not None:
        copies.keep_data(path, name, content)


def keep_commit(path: Location, version: int, content: bytes, tag: str) -> None:
    """Keeps what this process has committed to a table on shared storage, so nobody reads it."""
    copies = _copies_of(path)
    if copies is not None:
        copies.keep_commit(path, version, content, tag)


def write_checkpoint(path: Location, version: int) -> bool:
    """Writes a log checkpoint of a version by its copy; whether there is one."""
    copies = _copies_of(path)
    return copies is not None and copies.write_checkpoint(path, version)


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


def delete_table(table: Location) -> None:
    """Deletes the log first: if it is killed, no log is left that names files which are gone."""
    log = table / LOG
    forget_version(table)
    store_of(log).delete(log)
    store_of(table).delete(table)


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
