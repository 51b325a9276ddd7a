"""The command that processes what is new in the source: run."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from jobs.cli.format import print_changes, print_evolved, print_nulls
from jobs.cli.options import TIMES, Instant, common
from jobs.cli.spark import light_write_session, quick_write_session, write_session
from jobs.cli.validation import preload_expectations, validate_option, validate_written
from jobs.console import Printer
from windowing.errors import UsageError
from windowing.grid.zone import micros
from windowing.report.text import instant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windowing.report.rule import RunReport
    from windowing.spec.pipeline import Pipeline

_COUNTS = ("read", "accepted", "late", "duplicate", "quarantined")


@click.command()
@common
@click.option("--arrival", type=Instant(), help=f"Use this time instead of the host clock. {TIMES}")
@validate_option
def run(pipeline: "Pipeline", *, as_json: bool, arrival: datetime | None, validate: bool) -> None:
    """Process everything that is new in the source, then stop.

    Prints how many rows had each outcome, the watermark, and how many rows of each output changed.
    An interrupted run is finished first.
    """
    if arrival is not None:
        _refuse_future(pipeline, arrival)
    printer = Printer(as_json=as_json)
    report = _find_nothing_new(pipeline, arrival)
    if report is not None:
        _print_report(printer, pipeline, report)
        printer.finish(report.as_json())
        return
    if validate:
        preload_expectations()
    session = _open_session(pipeline)
    from jobs.run import run as run_once

    report = run_once(session, pipeline, arrival)
    _print_report(printer, pipeline, report)
    if validate:
        validate_written(printer, session, pipeline)
    printer.finish(report.as_json())


def _find_nothing_new(pipeline: "Pipeline", arrival: datetime | None) -> "RunReport | None":
    """The report where there is nothing to do, which is known without a JVM; Busy as a run is."""
    from jobs.preflight.lock_file import probe
    from jobs.preflight.nothing_new import find_nothing_new

    probe(pipeline)
    return find_nothing_new(pipeline, micros(arrival or datetime.now(UTC)))


def _open_session(pipeline: "Pipeline") -> "SparkSession":
    """The session that suits what is new; Busy before it starts, if another process writes."""
    from jobs.preflight.run_size import estimate_next_run

    size = estimate_next_run(pipeline)
    if size is not None and size.is_tiny:
        return light_write_session(pipeline)
    if size is not None and size.is_short:
        return quick_write_session(pipeline)
    return write_session(pipeline)


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


def _print_report(printer: Printer, pipeline: "Pipeline", report: "RunReport") -> None:
    print_evolved(printer, pipeline, report)
    if report.run is None:
        printer.line(f"{pipeline.name}: nothing new; watermark {instant(report.watermark)}")
        return
    counts = [getattr(report, name) for name in _COUNTS]
    title = f"{pipeline.name}, run {report.run}"
    printer.table([*_COUNTS, "watermark"], [[*counts, instant(report.watermark)]], title)
    print_nulls(printer, report)
    print_changes(printer, report)
