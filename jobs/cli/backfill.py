"""The command that reprocesses a range of event time: backfill."""

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import click

from jobs.cli.format import print_changed_days, print_changes, print_evolved, print_nulls, print_run
from jobs.cli.options import TIMES, Instant, common, ordered
from jobs.cli.spark import open_to_write
from jobs.cli.validation import preload_expectations, validate_option, validate_written
from jobs.console import Printer, show_progress
from windowing.doctor.rule import name_command
from windowing.errors import ExpectationsFailed, UsageError
from windowing.report.text import count, interval
from windowing.spec.kinds import zone_of
from windowing.spec.words import join_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.backfill import BackfillPlan
    from jobs.reconcile import Checked
    from windowing.report.rule import RunReport
    from windowing.spec.pipeline import Pipeline


@click.command()
@common
@click.option(
    "--from",
    "start",
    type=Instant(),
    help=f"Start of the range of event time, inclusive. {TIMES}",
)
@click.option(
    "--to",
    "end",
    type=Instant(),
    help="End of the range of event time, exclusive.",
)
@click.option("--dry-run", is_flag=True, help="Print the plan and write nothing.")
@click.option(
    "--check",
    is_flag=True,
    help="Reprocess a copy and report what differs; exit 3 if anything does.",
)
@click.option(
    "--source",
    "version",
    type=click.Choice(("read", "newest")),
    default="read",
    show_default=True,
    help="Which version of the source to read: the one that was read last, or the newest, with all "
    "that was updated or deleted in it. The newest needs no range.",
)
@validate_option
def backfill(
    pipeline: "Pipeline",
    *,
    printer: Printer,
    start: datetime | None,
    end: datetime | None,
    dry_run: bool,
    check: bool,
    version: str,
    validate: bool,
) -> None:
    """Reprocess a range of event time as if all had been on time.

    Late and refused rows of the range are accepted if they are valid; the watermark stays where it
    is. Scheduled runs may go on meanwhile. Rerun the command to resume a backfill that was
    interrupted.

    With --source newest, what is new in the source is read first, and runs wait meanwhile. Rows
    that were updated or deleted in it are followed: the event times that they had and have are
    reprocessed, those of the range or, without one, all of them.
    """
    bounds = _check_range(start, end, version)
    if dry_run and check:
        raise UsageError("--dry-run and --check: give one of them, because each only looks")
    only_looks = dry_run or check
    if bounds is None or version == "newest":
        if only_looks:
            raise UsageError(
                "--source newest writes; leave it out, or leave out --dry-run and --check, which "
                "write nothing"
            )
        _follow(printer, pipeline, bounds, validate=validate)
        return
    if validate and only_looks:
        raise UsageError(
            "--validate needs a backfill that writes; leave it out, or leave out --dry-run and "
            "--check, which write nothing"
        )
    if dry_run:
        _plan(printer, pipeline, *bounds)
    elif check:
        _check(printer, pipeline, *bounds)
    else:
        _backfill(printer, pipeline, *bounds, validate=validate)


def _check_range(
    start: datetime | None, end: datetime | None, version: str
) -> tuple[datetime, datetime] | None:
    """The range that was given; None where none was, which the newest version does not need."""
    if start is not None and end is not None:
        ordered(start, end)
        return start, end
    if start is None and end is None and version == "newest":
        return None
    missing = [name for name, at in (("--from", start), ("--to", end)) if at is None]
    raise UsageError(
        f"{' and '.join(missing)}: missing; a backfill reprocesses a range of event time, such as "
        "--from 2013-03-10 --to 2013-03-11"
    )


def _plan(printer: Printer, pipeline: "Pipeline", start: datetime, end: datetime) -> None:
    from jobs.backfill import plan

    _print_plan(printer, pipeline, plan(pipeline, start, end))


def _open_session(pipeline: "Pipeline") -> "SparkSession":
    """A session for a range of any length; Busy before it starts, if another process writes."""
    from jobs.sessions.profiles import FULL

    return open_to_write(pipeline, FULL)


def _check(printer: Printer, pipeline: "Pipeline", start: datetime, end: datetime) -> None:
    session = _open_session(pipeline)
    from jobs.reconcile import check_range
    from windowing.report.difference import lines

    with show_progress(f"check {pipeline.name} {interval(start, end)}", "chunk") as progress:
        found = check_range(session, pipeline, start, end, progress)
    result = "the range agrees with the source"
    if not found.agrees:
        result = "the range differs from the source"
    printer.line(
        f"{pipeline.name}, {interval(start, end)}: {result}; {_describe_reprocessed(found)}"
    )
    if not found.agrees:
        print_changes(printer, found)
        for example in found.examples:
            for line in lines(example):
                printer.line(f"  {line}")
    printer.finish(found.as_json())
    if not found.agrees:
        raise ExpectationsFailed(
            f"{pipeline.name}: `tidemark backfill` of the same range would make these changes"
        )


def _backfill(
    printer: Printer, pipeline: "Pipeline", start: datetime, end: datetime, *, validate: bool
) -> None:
    if validate:
        preload_expectations()
    session = _open_session(pipeline)
    report = _backfill_range(printer, session, pipeline, start, end)
    if validate:
        validate_written(printer, session, pipeline)
    printer.finish(report.as_json())


def _follow(
    printer: Printer,
    pipeline: "Pipeline",
    bounds: "tuple[datetime, datetime] | None",
    *,
    validate: bool,
) -> None:
    """Follows the newest version of the source, and reprocesses the range if there is one."""
    if validate:
        preload_expectations()
    session = _open_session(pipeline)
    from jobs.run import follow_rewrites

    start, end = bounds or (None, None)
    report = follow_rewrites(session, pipeline, start, end)
    print_run(printer, pipeline, report)
    _print_followed(printer, pipeline, report)
    if bounds is not None:
        reprocessed = _backfill_range(printer, session, pipeline, *bounds)
        report = replace(reprocessed, followed=report.followed, evolved=report.evolved)
    if validate:
        validate_written(printer, session, pipeline)
    printer.finish(report.as_json())


def _print_followed(printer: Printer, pipeline: "Pipeline", report: "RunReport") -> None:
    """Prints which event times followed the source, and which were left out."""
    from windowing.report.rule import half_open

    followed = report.followed
    if followed is None:
        printer.line(
            f"{pipeline.name}: no row that was read before has been updated or deleted in "
            f"{pipeline.source.table} since the last run"
        )
        return
    rows = count(followed.rows, "row")
    printer.line(f"{pipeline.name}: {rows} of the source were updated or deleted")
    for times in followed.ranges:
        printer.line(f"  reprocessed: {interval(*half_open(times))}")
    for times in followed.left_out:
        low, high = half_open(times)
        words = ("--from", low.isoformat(), "--to", high.isoformat())
        printer.line(
            f"  left out, because it is outside the range: {interval(low, high)}; "
            f"{name_command(pipeline, 'backfill', *words)} reprocesses it"
        )


def _backfill_range(
    printer: Printer, session: "SparkSession", pipeline: "Pipeline", start: datetime, end: datetime
) -> "RunReport":
    """Reprocesses the range and prints what that changed."""
    from jobs.backfill import backfill as backfill_range

    with show_progress(f"{pipeline.name} {interval(start, end)}", "chunk") as progress:
        report = backfill_range(session, pipeline, start, end, progress)
    print_evolved(printer, pipeline, report)
    printer.line(
        f"{pipeline.name}, backfill of {interval(start, end)}: {_describe_reprocessed(report)}"
    )
    if report.caught_up:
        now = join_names(f"{name} {n:,}" for name, n in report.caught_up.items())
        printer.line(f"partly late events that count fully now: {now}")
    if report.erased:
        rows = count(report.erased, "row")
        printer.line(f"{rows} of the range left out, because the key was erased")
    print_nulls(printer, report)
    print_changed_days(printer, report)
    if report.versions_unread:
        versions = count(report.versions_unread, "version")
        printer.line(
            f"{pipeline.source.table} has {versions} that this backfill did not read; "
            f"{name_command(pipeline, 'run')} reads what was appended, and "
            f"{name_command(pipeline, 'backfill', '--source newest')} follows rows that were "
            "updated or deleted, too"
        )
    return report


def _describe_reprocessed(report: "RunReport | Checked") -> str:
    """Of a backfill, `accepted` is by how much the number of accepted events changes."""
    return f"{count(report.read, 'event')} reprocessed, {report.accepted:+,} accepted"


def _print_plan(printer: Printer, pipeline: "Pipeline", plan: "BackfillPlan") -> None:
    printer.line(
        f"{pipeline.name}: {count(len(plan.chunks), 'chunk')}, "
        f"read from version {plan.source_version} of {pipeline.source.table}"
    )
    chunks = [[n, interval(*bounds)] for n, bounds in enumerate(plan.chunks, 1)]
    printer.table(["chunk", "event times"], chunks)
    windows = [
        [name, interval(*bounds, zone_of(pipeline.window(name)))]
        for name, bounds in plan.windows.items()
    ]
    printer.table(["window", "recomputed"], windows)
    printer.finish(plan.as_json())
