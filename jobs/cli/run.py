"""The command that reads what is new in the source: run."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from jobs.cli.format import print_changes, print_evolved, print_nulls
from jobs.cli.options import TIMES, Instant, common
from jobs.cli.spark import writing
from jobs.console import Printer
from windowing.errors import UsageError
from windowing.report.text import instant

if TYPE_CHECKING:
    from windowing.report.rule import RunReport
    from windowing.spec.pipeline import Pipeline

_COUNTS = ("read", "accepted", "late", "duplicate", "quarantined")


@click.command()
@common
@click.option("--arrival", type=Instant(), help="Stands for the host clock, for replays. " + TIMES)
def run(pipeline: "Pipeline", *, as_json: bool, arrival: datetime | None) -> None:
    """One scheduled run: everything that is new, then stop."""
    if arrival is not None:
        _not_ahead(pipeline, arrival)
    session = writing(pipeline)
    from jobs.run import run as run_once

    report = run_once(session, pipeline, arrival)
    printer = Printer(as_json=as_json)
    print_evolved(printer, pipeline, report)
    if report.run is None:
        printer.line(f"{pipeline.name}: nothing new; watermark {instant(report.watermark)}")
    else:
        _print_report(printer, f"{pipeline.name}, run {report.run}", report)
    printer.finish(report.as_json())


def _not_ahead(pipeline: "Pipeline", arrival: datetime) -> None:
    """UsageError for an arrival that every later run would have to be after."""
    ahead = arrival - datetime.now(UTC)
    if ahead > timedelta(microseconds=pipeline.watermark.max_future_us):
        said = f"--arrival {instant(arrival)} is more than watermark.max_future ahead of this host's clock"
        raise UsageError(f"{said}; later runs would arrive then, too, until the clock is there")


def _print_report(printer: Printer, title: str, report: "RunReport") -> None:
    printer.table(
        [*_COUNTS, "watermark"],
        [[*(getattr(report, c) for c in _COUNTS), instant(report.watermark)]],
        title,
    )
    print_nulls(printer, report)
    print_changes(printer, report)
