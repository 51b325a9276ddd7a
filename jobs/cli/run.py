"""The command that processes what is new in the source: run."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from jobs.cli.format import print_run
from jobs.cli.lock import probe_lock
from jobs.cli.options import TIMES, Instant, common
from jobs.cli.progress import watch_batches
from jobs.cli.spark import open_to_write
from jobs.cli.task_log import tell_scheduler
from jobs.cli.validation import preload_expectations, validate_option, validate_written
from jobs.console import Printer
from windowing.errors import UsageError
from windowing.grid.zone import micros
from windowing.report.text import instant

if TYPE_CHECKING:
    from jobs.sessions.profiles import Profile
    from windowing.report.rule import RunReport
    from windowing.spec.pipeline import Pipeline


@click.command()
@common
@click.option("--arrival", type=Instant(), help=f"Use this time instead of the host clock. {TIMES}")
@validate_option
def run(
    pipeline: "Pipeline", *, printer: Printer, arrival: datetime | None, validate: bool
) -> None:
    """Process everything that is new in the source, then stop.

    Prints how many rows had each outcome, the watermark, and how many rows of each output changed.
    An interrupted run is finished first.
    """
    if arrival is not None:
        _refuse_future(pipeline, arrival)
    from windowing.storage.kept_open import lake_seen

    probe_lock(pipeline)
    with lake_seen(pipeline.root, pipeline.source.table):
        report = _find_nothing_new(pipeline, arrival)
        if report is not None:
            print_run(printer, pipeline, report)
            printer.finish(report.as_json())
            return
        profile = _choose_profile(pipeline)
    if validate:
        preload_expectations()
    session = open_to_write(pipeline, profile)
    from jobs.run import run as run_once

    with watch_batches(pipeline.name) as watch:
        report = run_once(session, pipeline, arrival, watch)
    print_run(printer, pipeline, report)
    if validate:
        validate_written(printer, session, pipeline)
    printer.finish(report.as_json())


def _find_nothing_new(pipeline: "Pipeline", arrival: datetime | None) -> "RunReport | None":
    """The report where there is nothing to do, which is known without a JVM."""
    from jobs.shortcuts.nothing_new import find_nothing_new

    return find_nothing_new(pipeline, micros(arrival or datetime.now(UTC)))


def _choose_profile(pipeline: "Pipeline") -> "Profile":
    """The profile of the session that suits what is new."""
    from jobs.sessions.profiles import choose_for_run
    from jobs.shortcuts.run_size import estimate_next_run

    size = estimate_next_run(pipeline)
    if size is not None:
        tell_scheduler(f"{pipeline.name}: {size.new_rows:,} new rows in the source")
    return choose_for_run(size)


def _refuse_future(pipeline: "Pipeline", arrival: datetime) -> None:
    """Raises UsageError for an arrival that is further ahead of the host clock than events may be.

    Arrivals never go back, so every later run would have that arrival, too.
    """
    ahead = arrival - datetime.now(UTC)
    if ahead > timedelta(microseconds=pipeline.watermark.max_future_us):
        raise UsageError(
            f"--arrival {instant(arrival)} is more than watermark.max_future ahead of this host's "
            "clock; every later run would reuse that arrival time until the host clock reaches it"
        )
