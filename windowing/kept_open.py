"""Tables that stay open for a while, because most of what a run asks of them is asked again.

Opening a table reads its log since the last log checkpoint. A run looks at most of its tables
several times, and seldom commits to one of them in between.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from deltalake import DeltaTable

from windowing.files import commit_file, local_path

Opener = Callable[[str], DeltaTable | None]
"""Opens the newest version of the table at a path; None where there is none."""


class _OpenTable:
    """A table that was opened, and how one sees that its version is still the newest."""

    def __init__(self, path: str, table: DeltaTable) -> None:
        home = local_path(path)
        self.table = table
        self._commit = commit_file(home, table.version())
        self._next = commit_file(home, table.version() + 1)
        self._state = _describe_file(self._commit)

    def is_newest(self) -> bool:
        """Whether no other commit follows, and the table was not made anew meanwhile."""
        unchanged = self._state is not None and self._state == _describe_file(self._commit)
        return unchanged and not self._next.exists()


def _describe_file(path: Path) -> tuple[int, int, int] | None:
    """What another file in the same place would not have; None where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    # A copy may keep the time of the last write and get the same inode, but not the same ctime.
    return (found.st_ino, found.st_ctime_ns, found.st_size)


_kept_open: ContextVar[dict[str, _OpenTable] | None] = ContextVar("kept_open", default=None)


@contextmanager
def tables_kept_open() -> Iterator[None]:
    """Inside, `reuse_table` opens a table again only when another commit has been made to it.

    Threads with a copy of the caller's context are inside, too.
    """
    before = _kept_open.set({})
    try:
        yield
    finally:
        _kept_open.reset(before)


def reuse_table(path: str, opens: Opener) -> DeltaTable | None:
    """The newest version of the table at `path`, for callers that write nothing through it."""
    kept = _kept_open.get()
    if kept is None:
        return opens(path)
    known = kept.get(path)
    if known is not None and known.is_newest():
        return known.table
    table = opens(path)
    if table is not None:
        kept[path] = _OpenTable(path, table)
    return table
