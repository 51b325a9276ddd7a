"""Copies of logs on shared storage, in a directory of this machine, from which tables are opened.

delta-rs lists a log for each opening, and reads each commit in it twice. Here one listing tells
which files of a log there are, and each of them is read once by a command. A file of a log is never
changed, and a listing shows its tag, so a copy with that tag is the file.

listing -> segment: the last log checkpoint and the commits after it -> missing files -> table
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import RLock

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from windowing.location import Location
from windowing.storage.files import COMMIT, find_newest_commit, name_commit
from windowing.storage.log_lines import LOG
from windowing.storage.permission import check_permission
from windowing.storage.store import SharedStore, shared_store_of

Opener = Callable[[Location], DeltaTable | None]
"""Opens the newest version of the table at a path; None where there is none."""

_DATA = "data"
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
_CHECKPOINT_IN_PARTS = re.compile(r"\d{20}\.checkpoint\..+\.(parquet|json)")
"""Of several files, whose number and names their reader has to know."""
_LAST_CHECKPOINT = "_last_checkpoint"
_NUMBER = re.compile(rb'"version"\s*:\s*(\d+)')
_PAGE = 1_000
"""How many files one request lists."""
_READERS = 8


@dataclass(frozen=True)
class Segment:
    """The files of a log that a version of a table is made of; `version` is -1 without a commit."""

    version: int
    names: tuple[str, ...]

    @property
    def start(self) -> str:
        """After which name a listing begins that has all of them."""
        return self.names[0][:20] if self.names else ""


def select_segment(names: Iterable[str], until: int | None = None) -> Segment | None:
    """The last log checkpoint of a listing and the commits after it, up to the version `until`.

    None where the listing lacks a commit, or has a log checkpoint in parts.

    >>> select_segment(map(name_commit, range(3))).version
    2
    """
    commits: set[int] = set()
    checkpoints: set[int] = set()
    for name in names:
        commit, checkpoint = COMMIT.fullmatch(name), _CHECKPOINT.fullmatch(name)
        found = commit or checkpoint
        if found is not None and (until is None or int(found[1]) <= until):
            (commits if commit else checkpoints).add(int(found[1]))
        elif found is None and _CHECKPOINT_IN_PARTS.fullmatch(name):
            return None
    if not commits and not checkpoints:
        return Segment(-1, ())
    first = max(checkpoints, default=-1)
    version = max(commits | checkpoints)
    after = range(first + 1, version + 1)
    if not commits.issuperset(after) or (until is not None and version != until):
        return None
    start = [f"{first:020}.checkpoint.parquet"] if checkpoints else []
    return Segment(version, (*start, *map(name_commit, after)))


@dataclass
class _Copy:
    """A log that is copied into a directory; `there` are its files by tag, as they were listed."""

    log: Location
    store: SharedStore
    directory: Path
    there: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    opened: tuple[Segment, DeltaTable] | None = None
    turn: RLock = field(default_factory=RLock)

    def list(self) -> None:
        """Looks which files there are: by one request, unless there are very many."""
        start = ""
        if self.opened is not None:
            start = self.opened[0].start
        found = dict(islice(self.store.list_tags(self.log, start), _PAGE))
        if start and min(found, default="")[:20] != start:
            # The log has become another one.
            start, found = "", dict(islice(self.store.list_tags(self.log, ""), _PAGE))
        if len(found) == _PAGE:
            found = dict(self.store.list_tags(self.log, start or self._find_last_checkpoint()))
        self.there = {name: tag for name, tag in found.items() if "/" not in name}

    def _find_last_checkpoint(self) -> str:
        content = self.store.read(self.log / _LAST_CHECKPOINT)
        number = _NUMBER.search(content or b"")
        return "" if number is None else f"{int(number[1]):020}"

    def open(self, segment: Segment) -> DeltaTable:
        """The version of the table that is made of these files."""
        if any(self.kept.get(name, self.there[name]) != self.there[name] for name in segment.names):
            there = self.there
            self.forget()
            self.there = there
        missing = [name for name in segment.names if name not in self.kept]
        if self.opened is not None and not missing and self.opened[0] == segment:
            return self.opened[1]
        with ThreadPoolExecutor(_READERS) as readers:
            for name, content in zip(missing, readers.map(self.read, missing), strict=True):
                self.keep(name, content, self.there[name])
        table = DeltaTable(str(self.directory), version=segment.version)
        self.opened = segment, table
        return table

    def forget(self) -> None:
        """Begins anew, as for a table that was deleted and made again."""
        self.there, self.kept, self.opened = {}, {}, None
        self.directory = self.directory.with_name(f"{self.directory.name}+")

    def read(self, name: str) -> bytes:
        """The file that was listed; FileNotFoundError where it is gone, or is another one now."""
        found = self.store.read_listed(self.log / name)
        if found is None or found.tag != self.there[name]:
            raise FileNotFoundError(f"{self.log / name} was deleted")
        return found.content

    def keep(self, name: str, content: bytes, tag: str) -> None:
        """Keeps a file of the log."""
        log = self.directory / LOG
        log.mkdir(parents=True, exist_ok=True)
        (log / name).write_bytes(content)
        self.there[name] = self.kept[name] = tag


class LogCopies:
    """The logs that one command has copied. They are deleted when it ends."""

    def __init__(self) -> None:
        self._copies: dict[Location, _Copy] = {}
        self._turn = RLock()

    @cached_property
    def _home(self) -> "TemporaryDirectory[str]":
        """A lake on a disk needs none."""
        return TemporaryDirectory(prefix="tidemark-logs-")

    def close(self) -> None:
        """Deletes the copies."""
        if self._copies:
            self._home.cleanup()

    def find_version(self, table: Location) -> int:
        """The newest version of a table, of which its log is asked now; -1 where there is none."""
        copy = self._copy_of(table)
        with copy.turn:
            copy.list()
            return find_newest_commit(copy.there)

    def find_versions(self, lake: Location) -> dict[str, int]:
        """The newest versions of all tables in a directory, by name: a look at all logs at once.

        Tables in a directory of it are among them, by both names, unless that is a hidden one. One
        request lists a thousand files; in a directory with more each log is looked at.
        """
        store = _store_of(lake)
        page = [*islice(store.list_tags(lake, ""), _PAGE)]
        if len(page) == _PAGE:
            return self._ask_each(store, lake)
        logs: dict[str, dict[str, str]] = defaultdict(dict)
        for path, tag in page:
            name, is_log, file = path.partition(f"/{LOG}/")
            is_hidden = name.startswith("_") and "/" in name
            if is_log and name.count("/") < 2 and not is_hidden and "/" not in file:
                logs[name][file] = tag
        for name, there in logs.items():
            copy = self._copy_of(lake / name)
            with copy.turn:
                copy.there = there
        newest = {name: find_newest_commit(there) for name, there in logs.items()}
        return {name: version for name, version in newest.items() if version >= 0}

    def _ask_each(self, store: SharedStore, lake: Location) -> dict[str, int]:
        """`find_versions` by a request for each log."""
        found = {name: self.find_version(lake / name) for name in store.list_directories(lake)}
        homes = [name for name, version in found.items() if version < 0 and name[:1] != "_"]
        for home in homes:
            for name in store.list_directories(lake / home):
                found[f"{home}/{name}"] = self.find_version(lake / home / name)
        return {name: version for name, version in found.items() if version >= 0}

    def open(self, table: Location, version: int | None, opens: Opener) -> DeltaTable | None:
        """A version of a table, without one the newest; None where there is none.

        No data file can be read through it, and nothing written. A table whose log can't be copied
        is opened by `opens`.
        """
        copy = self._copy_of(table)
        with copy.turn:
            if version is None or name_commit(version) not in copy.there:
                copy.list()
            segment = select_segment(copy.there, version)
            try:
                if segment is not None:
                    return copy.open(segment) if segment.names else None
            except (DeltaError, FileNotFoundError):
                # Whoever opens the table itself says what is wrong with it.
                copy.opened = None
        return opens(table)

    def read_commit(self, table: Location, version: int) -> bytes | None:
        """The commit of a version, as the last look at the log has shown it; None without one."""
        copy = self._copy_of(table)
        name = name_commit(version)
        with copy.turn:
            if name not in copy.there:
                return None
            if copy.kept.get(name) != copy.there[name]:
                try:
                    copy.keep(name, copy.read(name), copy.there[name])
                except FileNotFoundError:
                    return None
            return (copy.directory / LOG / name).read_bytes()

    def keep_commit(self, table: Location, version: int, content: bytes, tag: str) -> None:
        """Keeps a commit that was made by this process."""
        copy = self._copy_of(table)
        with copy.turn:
            if version == 0:
                copy.forget()
            elif name_commit(version - 1) not in copy.there:
                # The next look finds it with those before.
                return
            copy.keep(name_commit(version), content, tag)

    def write_checkpoint(self, table: Location, version: int) -> bool:
        """Writes a log checkpoint of a version: made of the copy, then put where the log is.

        Whether there is one; none where the log can't be copied.
        """
        copy = self._copy_of(table)
        with copy.turn:
            opened = self.open(table, version, open_nothing)
            if opened is None:
                return False
            opened.create_checkpoint()
            name = f"{version:020}.checkpoint.parquet"
            made = copy.directory / LOG / name
            check_permission()
            last = copy.directory / LOG / _LAST_CHECKPOINT
            if copy.store.create(copy.log / name, made.read_bytes()):
                copy.store.write(copy.log / _LAST_CHECKPOINT, last.read_bytes())
            # No version is opened by a log checkpoint of which the look at the log knows nothing.
            made.unlink()
            last.unlink()
            return True

    def copy_data(self, table: Location, names: Sequence[str]) -> list[Path] | None:
        """Data files of a table on this machine, each of which is read once; None where one lacks.

        Their names are those in the table's directory. No other file ever gets the name of one.
        """
        copy = self._copy_of(table)
        with copy.turn:
            home = copy.directory / _DATA
            home.mkdir(parents=True, exist_ok=True)
            missing = [name for name in names if not (home / name).exists()]
            with ThreadPoolExecutor(_READERS) as readers:
                found = readers.map(lambda name: copy.store.read(table / name), missing)
                for name, content in zip(missing, found, strict=True):
                    if content is None:
                        return None
                    (home / name).write_bytes(content)
            return [home / name for name in names]

    def keep_data(self, table: Location, name: str, content: bytes) -> None:
        """Keeps a data file that this process has written."""
        copy = self._copy_of(table)
        with copy.turn:
            home = copy.directory / _DATA
            home.mkdir(parents=True, exist_ok=True)
            (home / name).write_bytes(content)

    def locate(self, table: Location, uri: str) -> str:
        """The URI of a data file of the table at `table`, of which delta-rs tells this one."""
        return re.sub(rf"^.*{re.escape(self._home.name)}/[^/]*", table.text, uri)

    def _copy_of(self, table: Location) -> _Copy:
        with self._turn:
            if table not in self._copies:
                directory = Path(self._home.name) / str(len(self._copies))
                self._copies[table] = _Copy(table / LOG, _store_of(table), directory)
            return self._copies[table]


def open_nothing(_: Location) -> None:
    """For a table of which only a copy is wanted."""


def _store_of(place: Location) -> SharedStore:
    store = shared_store_of(place)
    if store is None:
        raise ValueError(f"{place} is on a disk of this machine")
    return store
