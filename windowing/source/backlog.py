"""What of the source a run has not read yet, and how much of it one batch reads. No Spark.

files of the log -> how many rows and bytes, and the bytes after which a batch ends
"""

from collections.abc import Iterable
from dataclasses import dataclass

from windowing.source.commits import total
from windowing.spec.pipeline import BatchBound
from windowing.storage.file_figures import FileFigures
from windowing.storage.logged_commit import read_commit


@dataclass(frozen=True)
class Backlog:
    """The files of the source that a run reads; some of them may have been read already.

    `rewrites`: whether a commit among them removed rows.
    """

    files: tuple[FileFigures, ...]
    rewrites: bool = False

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.bytes for file in self.files)

    @property
    def rows(self) -> int | None:
        """The rows of all files; None where the log does not tell them of one."""
        return total(file.rows for file in self.files)

    @property
    def low_us(self) -> int | None:
        """An instant before which no event happened; None where it is not known of one file."""
        lows = [file.low_us for file in self.files if file.rows != 0]
        known = [low for low in lows if low is not None]
        return min(known, default=None) if len(known) == len(lows) else None

    def fits(self, bound: BatchBound) -> bool:
        """Whether one batch reads all of it."""
        if bound.bytes is not None and self.bytes > bound.bytes:
            return False
        return bound.rows is None or (self.rows is not None and self.rows <= bound.rows)

    def __add__(self, other: "Backlog") -> "Backlog":
        return Backlog(self.files + other.files, self.rewrites or other.rewrites)


def gather_backlog(commits: Iterable[str], event_time: str) -> Backlog:
    """The files that commits have added; each is its JSON lines.

    Their times are those of the column `event_time`.
    """
    files: list[FileFigures] = []
    rewrites = False
    for commit in map(read_commit, commits):
        files += [file.figures(event_time) for file in commit.added]
        rewrites = rewrites or bool(commit.removed)
    return Backlog(tuple(files), rewrites)


def find_byte_limit(backlog: Backlog, bound: BatchBound) -> int | None:
    """The bytes of files after which a batch ends, so that it reaches no bound before.

    Delta knows how large files are and counts no rows. As many rows as the bound are in no fewer
    bytes than in the file with the fewest bytes for each row. None where no bound tells it: where
    only rows are bound, and the log does not tell those of each file.
    """
    limits = [] if bound.bytes is None else [bound.bytes]
    if bound.rows is not None and backlog.rows is not None:
        filled = [file for file in backlog.files if file.rows]
        limits += [bound.rows * file.bytes // (file.rows or 1) for file in filled]
    return max(1, min(limits)) if limits else None
