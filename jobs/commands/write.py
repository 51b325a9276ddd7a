"""The commands that read the source and write outputs: run, backfill."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import click

from jobs.commands.engine import spark, writing
from jobs.commands.options import TIMES, Instant, common, ordered
from jobs.commands.output import Printer, console
from windowing.report.text import count, instant, interval

if TYPE_CHECKING:
    from jobs.backfill import BackfillPlan
    from windowing.report.rule import RunReport
    from windowing.spec.pipeline import Pipeline

Progress = Callable[[int, int], None]
_COUNTS = ("read", "accepted", "late", "duplicate", "quarantined")


@click.command()
@common
@click.option("--arrival", type=Instant(), help="Stands for the host clock, for replays. " + TIMES)
def run(pipeline: "Pipeline", *, as_json: bool, arrival: datetime | None) -> None:
    """One scheduled run: everything that is new, then stop."""
    session = writing(pipeline)
    from jobs.run import run as run_once

    report = run_once(session, pipeline, arrival)
    printer = Printer(as_json=as_json)
    if report.run is None:
        printer.line(f"{pipeline.name}: nothing new; watermark {instant(report.watermark)}")
    else:
        _print_report(printer, f"{pipeline.name}, run {report.run}", report)
    printer.finish(report.as_json())


@click.command()
@common
@click.option("--from", "start", type=Instant(), required=True, help="Start of event time; the instant itself is inside. " + TIMES)
@click.option("--to", "end", type=Instant(), required=True, help="End of event time; the instant itself is outside.")
@click.option("--dry-run", is_flag=True, help="Print what would be done and write nothing.")
def backfill(pipeline: "Pipeline", *, as_json: bool, start: datetime, end: datetime, dry_run: bool) -> None:
    """Recompute a range of event time as if all had been on time.

    Late and refused rows of the range are taken in; the watermark stays where it is.
    """
    ordered(start, end)
    if dry_run:
        session = spark()
        from jobs.backfill import plan

        planned = plan(session, pipeline, start, end)
        _print_plan(Printer(as_json=as_json), pipeline, planned)
        return
    session = writing(pipeline)
    from jobs.backfill import backfill as backfill_range

    with _progress(f"{pipeline.name} {interval(start, end)}") as progress:
        report = backfill_range(session, pipeline, start, end, progress)
    printer = Printer(as_json=as_json)
    printer.line(f"{pipeline.name}, backfill of {interval(start, end)}: {_recounted(report)}")
    _print_changes(printer, report)
    printer.finish(report.as_json())


def _print_report(printer: Printer, title: str, report: "RunReport") -> None:
    printer.table([*_COUNTS, "watermark"], [[*(getattr(report, c) for c in _COUNTS), instant(report.watermark)]], title)
    _print_changes(printer, report)


def _recounted(report: "RunReport") -> str:
    """A backfill's `accepted` is how many more events count than before it."""
    return f"{count(report.read, 'event')} recounted, {report.accepted:+,} accepted"


def _print_changes(printer: Printer, report: "RunReport") -> None:
    changes = [[name, c.inserted, c.updated, c.deleted] for name, c in report.windows.items()]
    printer.table(["window", "inserted", "updated", "deleted"], changes)


def _print_plan(printer: Printer, pipeline: "Pipeline", plan: "BackfillPlan") -> None:
    printer.line(f"{pipeline.name}: {count(len(plan.chunks), 'chunk')}, read from version {plan.source_version} of {pipeline.source.table}")
    printer.table(["chunk", "event times"], [[n, interval(*bounds)] for n, bounds in enumerate(plan.chunks, 1)])
    printer.table(["window", "recomputed"], [[name, interval(*bounds)] for name, bounds in plan.windows.items()])
    printer.finish(plan.as_json())


@contextmanager
def _progress(title: str) -> Iterator[Progress]:
    """A progress bar on stderr: on a terminal it moves, elsewhere each chunk is a line."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    if not sys.stderr.isatty():
        yield lambda done, total: click.echo(f"{title}: {done} of {count(total, 'chunk')} done", err=True)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(sys.stderr)) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
