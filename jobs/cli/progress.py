"""How far a run of several batches has come, on stderr."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from jobs.console import show_share
from windowing.report.progress import RunProgress, Watch
from windowing.report.text import count
from windowing.spec.duration import MINUTE, SECOND, Duration


@contextmanager
def watch_batches(title: str) -> Iterator[Watch]:
    """What a run of several batches calls; a run of one batch shows nothing."""
    pace = Pace()
    with show_share(title) as show:

        def update(found: RunProgress) -> None:
            left_s = pace.estimate_left(found.share, time.monotonic())
            show(found.share, describe_progress(found, left_s))

        yield update


class Pace:
    """How fast a share grows from the first time that it is seen."""

    def __init__(self) -> None:
        self._first: tuple[float, float] | None = None

    def estimate_left(self, share: float, now_s: float) -> float | None:
        """The seconds until the share is 1; None while nothing is known of it."""
        if self._first is None:
            self._first = share, now_s
        first_share, first_s = self._first
        grown = share - first_share
        return (1 - share) * (now_s - first_s) / grown if grown > 0 else None


def describe_progress(progress: RunProgress, left_s: float | None) -> str:
    """How many rows of how many, in how many batches, and the time left as far as it is known."""
    rows = f"{progress.rows:,}"
    if progress.all_rows is not None:
        rows = f"{rows} of {progress.all_rows:,}"
    read = f"{rows} rows read in {count(progress.batches, 'batch', 'batches')}"
    parts = [f"{read} ({progress.share:.0%})"]
    if progress.batches:
        parts.append(f"{count(progress.windows, 'row')} of outputs changed")
    if left_s is not None and progress.share < 1:
        parts.append(f"about {_round_duration(left_s)} left")
    return ", ".join(parts)


def _round_duration(seconds: float) -> Duration:
    """Whole minutes, or seconds where there are few."""
    unit = SECOND if seconds < 90 else MINUTE
    return Duration(max(1, round(seconds * SECOND / unit)) * unit)
