"""The command that recomputes a range of event time: backfill."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import click

from jobs.cli.format import print_changes, print_evolved, print_nulls
from jobs.cli.options import TIMES, Instant, common, ordered
from jobs.cli.spark import asking, writing
from jobs.console import Printer, console
from windowing.errors import ExpectationsFailed
from windowing.report.text import count, interval

if TYPE_CHECKING:
    from jobs.backfill import BackfillPlan
    from jobs.reconcile import Checked
    from windowing.report.rule import RunReport
    from windowing.spec.pipeline import Pipeline

Progress = Callable[[int, int], None]


@click.command()
@common
@click.option(
    "--from",
    "start",
    type=Instant(),
    required=True,
    help="Start of event time; the instant itself is inside. " + TIMES,
)
@click.option(
    "--to",
    "end",
    type=Instant(),
    required=True,
    help="End of event time; the instant itself is outside.",
)
@click.option(
    "--dry-run", "how", flag_value="plan", help="Print what would be done and write nothing."
)
@click.option(
    "--check",
    "how",
    flag_value="check",
    help="Recompute on a copy and report what differs; exit 3 if anything does.",
)
def backfill(
    pipeline: "Pipeline", *, as_json: bool, start: datetime, end: datetime, how: str | None
) -> None:
    """Recompute a range of event time as if all had been on time.

    Late and refused rows of the range are taken in; the watermark stays where it is. Scheduled runs go on meanwhile. Asked for again
    after it was killed, it goes on where it was.
    """
    ordered(start, end)
    does = {None: _backfill, "plan": _plan, "check": _check}
    does[how](Printer(as_json=as_json), pipeline, start, end)


def _plan(printer: Printer, pipeline: "Pipeline", start: datetime, end: datetime) -> None:
    session = asking()
    from jobs.backfill import plan

    _print_plan(printer, pipeline, plan(session, pipeline, start, end))


def _check(printer: Printer, pipeline: "Pipeline", start: datetime, end: datetime) -> None:
    session = writing(pipeline)
    from jobs.reconcile import check
    from windowing.report.difference import lines

    with _progress(f"check {pipeline.name} {interval(start, end)}") as progress:
        found = check(session, pipeline, start, end, progress)
    said = "agrees with its events" if found.agrees else "is not what its events say"
    printer.line(f"{pipeline.name}, {interval(start, end)}: {said}; {_recounted(found)}")
    if not found.agrees:
        print_changes(printer, found)
        for line in (line for example in found.examples for line in lines(example)):
            printer.line(f"  {line}")
    printer.finish(found.as_json())
    if not found.agrees:
        raise ExpectationsFailed(
            f"{pipeline.name}: `tidemark backfill` of the same range would make these changes"
        )


def _backfill(printer: Printer, pipeline: "Pipeline", start: datetime, end: datetime) -> None:
    session = writing(pipeline)
    from jobs.backfill import backfill as backfill_range

    with _progress(f"{pipeline.name} {interval(start, end)}") as progress:
        report = backfill_range(session, pipeline, start, end, progress)
    print_evolved(printer, pipeline, report)
    printer.line(f"{pipeline.name}, backfill of {interval(start, end)}: {_recounted(report)}")
    print_nulls(printer, report)
    print_changes(printer, report)
    printer.finish(report.as_json())


def _recounted(report: "RunReport | Checked") -> str:
    """A backfill's `accepted` is how many more events count than before it."""
    return f"{count(report.read, 'event')} recounted, {report.accepted:+,} accepted"


def _print_plan(printer: Printer, pipeline: "Pipeline", plan: "BackfillPlan") -> None:
    printer.line(
        f"{pipeline.name}: {count(len(plan.chunks), 'chunk')}, read from version {plan.source_version} of {pipeline.source.table}"
    )
    printer.table(
        ["chunk", "event times"],
        [[n, interval(*bounds)] for n, bounds in enumerate(plan.chunks, 1)],
    )
    printer.table(
        ["window", "recomputed"],
        [[name, interval(*bounds)] for name, bounds in plan.windows.items()],
    )
    printer.finish(plan.as_json())


@contextmanager
def _progress(title: str) -> Iterator[Progress]:
    """A progress bar on stderr: on a terminal it moves, elsewhere each chunk is a line."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    if not sys.stderr.isatty():
        yield lambda done, total: click.echo(
            f"{title}: {done} of {count(total, 'chunk')} done", err=True
        )
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console(sys.stderr)) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
