"""How far a run of several batches has come, on stderr."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from jobs.console import open_console
from windowing.report.text import count
from windowing.spec.duration import MINUTE, SECOND, Duration

if TYPE_CHECKING:
    from jobs.microbatch.bound import Progress as Found
    from jobs.microbatch.bound import Watch


@contextmanager
def watch_batches(title: str) -> "Iterator[Watch]":
    """What a run calls: a progress bar, or a line for each batch where there is no terminal."""
    if not sys.stderr.isatty():
        yield _Lines(title).print_line
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[found]}", markup=False),
        TimeElapsedColumn(),
    )
    pace = Pace()
    with Progress(*columns, console=open_console(sys.stderr)) as bar:
        # Most runs are one batch, and show no bar.
        task = bar.add_task(title, total=1.0, visible=False, found="")

        def update(found: "Found") -> None:
            left_s = pace.estimate_left(found.share, time.monotonic())
            text = describe_progress(found, left_s)
            bar.update(task, completed=found.share, visible=True, found=text)

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


class _Lines:
    def __init__(self, title: str) -> None:
        self._title = title
        self._pace = Pace()

    def print_line(self, progress: "Found") -> None:
        left_s = self._pace.estimate_left(progress.share, time.monotonic())
        click.echo(f"{self._title}: {describe_progress(progress, left_s)}", err=True)


def describe_progress(progress: "Found", left_s: float | None) -> str:
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
