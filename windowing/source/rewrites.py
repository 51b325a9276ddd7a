"""Commits of the source that removed rows: how many fewer there are, and when these happened.

It follows from the log alone: from the statistics of each file that such a commit removed or added.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from windowing.grid.range import Range, cover_known
from windowing.source.commits import subtract, total
from windowing.storage.file_figures import FileFigures
from windowing.storage.logged_commit import LoggedFile, read_commit

_MILLISECOND = 1_000
"""Statistics name times to the millisecond, so the last event may be later by less than one."""
Files = Mapping[str, FileFigures]
"""By the path of a file what the log says of it."""


@dataclass(frozen=True)
class Rewrite:
    """A commit that removed rows of the source.

    There are `fewer` rows after it; a negative number means that there are more, and None that the
    log does not tell. Each row that it removed or added has an event time `within` a range, of
    which the end is a time to the millisecond; None where that can be any time.
    """

    version: int
    operation: str
    fewer: int | None
    within: Range | None


def find_rewrites(
    texts: Iterable[tuple[int, str]], before: Files, event_time: str
) -> tuple[Rewrite, ...]:
    """Those of the commits that removed rows, in order.

    `texts` are the commits, each by its version and in order, as JSON lines. `before` are the files
    that there were before the first one. `event_time` is the column of event times.
    """
    known = dict(before)
    found = []
    for version, text in texts:
        commit = read_commit(text)
        touched = [_apply_marks(known.get(file.path), file) for file in commit.removed]
        for file in commit.written:
            # What OPTIMIZE has written may be removed later, too.
            known[file.path] = file.figures(event_time)
        if commit.removed:
            written = [_apply_marks(known[file.path], file) for file in commit.added]
            found.append(
                Rewrite(
                    version,
                    commit.operation,
                    subtract(_sum_rows(touched), _sum_rows(written)),
                    cover_known(_find_times(figures) for figures in [*touched, *written]),
                )
            )
    return tuple(found)


def cover_rewrites(rewrites: Sequence[Rewrite]) -> Range | None:
    """The event times of whatever the commits removed or added; None where that is any time."""
    whole = cover_known(rewrite.within for rewrite in rewrites)
    return None if whole is None else Range(whole.low_us, whole.high_us + _MILLISECOND)


def _apply_marks(figures: FileFigures | None, file: LoggedFile) -> FileFigures | None:
    """What the log says of a file, without the rows that a deletion vector marks as deleted."""
    if figures is None or figures.rows is None:
        return figures
    return replace(figures, rows=figures.rows - file.marked)


def _sum_rows(files: Iterable[FileFigures | None]) -> int | None:
    return total(None if figures is None else figures.rows for figures in files)


def _find_times(figures: FileFigures | None) -> Range | None:
    """The event times of a file; None where it does not show them."""
    if figures is None or figures.low_us is None or figures.high_us is None:
        return None
    return Range(figures.low_us, figures.high_us)
