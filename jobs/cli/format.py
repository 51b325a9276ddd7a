"""Prints what several commands report: numbers of rows, changes, and additions to the spec."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jobs.console import Printer
from windowing.ledger.rule import COUNTS
from windowing.report.text import count, describe_nulls, instant
from windowing.spec.fingerprint import AGGREGATE
from windowing.spec.words import join_names

if TYPE_CHECKING:
    from jobs.erase import Erased
    from jobs.reconcile import Checked
    from windowing.report.alarms import Alarm
    from windowing.report.rows import Rows
    from windowing.report.rule import RunReport
    from windowing.spec.pipeline import Pipeline


def how_many(found: "Rows") -> str:
    """The number of rows found, and how many of them are shown."""
    if found.total <= len(found.rows):
        return count(found.total, "row")
    return f"{len(found.rows):,} of {count(found.total, 'row')}; --limit shows more"


def join_evolved(names: Sequence[str]) -> str:
    """Windows and aggregates in one text; a window that is named stands for its aggregates."""
    windows = {name for name in names if AGGREGATE not in name}
    return join_names([name for name in names if not _is_part_of(name, windows)])


def _is_part_of(name: str, windows: set[str]) -> bool:
    window, aggregate, _ = name.partition(AGGREGATE)
    return bool(aggregate) and window in windows


def print_evolved(printer: Printer, pipeline: "Pipeline", report: "RunReport") -> None:
    """Prints the windows and aggregates that the spec has added or removed, if there are any."""
    if report.evolved:
        printer.line(
            f"{pipeline.name}: the spec has added or removed {join_evolved(report.evolved)}, "
            "so state was rebuilt from previously accepted events"
        )


def print_nulls(printer: Printer, report: "RunReport") -> None:
    """Prints a sentence for each column whose expression gave NULL."""
    for sentence in describe_nulls(report.gave_null):
        printer.line(sentence)


def describe_alarm(alarm: "Alarm") -> str:
    """An alarm as a line, with what follows from it where the spec holds outputs for it."""
    if not alarm.holds:
        return f"alarm: {alarm.text}"
    limit = f"alarms.{alarm.name}: {alarm.limit}"
    return f"alarm: {alarm.text}; this is beyond {limit}, so nothing is published"


def print_changes(printer: Printer, report: "RunReport | Checked | Erased") -> None:
    """Prints for each window how many rows were inserted, updated and deleted.

    A sentence says where changes of a closed period were stated beside the outputs.
    """
    changes = [[name, c.inserted, c.updated, c.deleted] for name, c in report.windows.items()]
    printer.table(["window", "inserted", "updated", "deleted"], changes)
    restated = [f"{name} {c.restated:,}" for name, c in report.windows.items() if c.restated]
    if restated:
        printer.line(
            f"restated of a closed period, and not shown: {join_names(restated)}; "
            "see `tidemark restatements`"
        )


def print_changed_days(printer: Printer, report: "RunReport") -> None:
    """`print_changes`, and a sentence that names the days of the windows that changed."""
    from windowing.report.changed import tell_days

    print_changes(printer, report)
    printer.line(tell_days(report.changed_days))


def print_run(printer: Printer, pipeline: "Pipeline", report: "RunReport") -> None:
    """Prints how many rows of a run had each outcome, and what that changed."""
    print_evolved(printer, pipeline, report)
    if report.run is None:
        printer.line(f"{pipeline.name}: nothing new; watermark {instant(report.watermark)}")
        return
    # Few pipelines have erased a key, so this outcome has a column only where a row has it.
    names = [name for name in COUNTS if name != "erased" or report.erased]
    counts = [getattr(report, name) for name in names]
    title = f"{pipeline.name}, run {report.run}"
    printer.table([*names, "watermark"], [[*counts, instant(report.watermark)]], title)
    print_nulls(printer, report)
    for alarm in report.alarms:
        printer.line(describe_alarm(alarm))
    print_changed_days(printer, report)
