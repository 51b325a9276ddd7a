"""The command that compares publications: diff."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from jobs.cli.changed_spec import tell_changed_spec
from jobs.cli.options import common, limit_option
from jobs.console import Printer
from windowing.report.text import count, datum, instant, list_others, row_cells
from windowing.values import is_same

if TYPE_CHECKING:
    from windowing.report.compared import ChangedRow, OutputDifference, Side
    from windowing.spec.kinds import Window
    from windowing.spec.pipeline import Pipeline

_NUMBER = click.IntRange(min=0)


@click.command()
@common
@click.option(
    "--from",
    "since",
    type=_NUMBER,
    metavar="NUMBER",
    help="The publication to begin with; without it what readers see now.",
)
@click.option(
    "--to",
    "until",
    type=_NUMBER,
    metavar="NUMBER",
    help="The publication to end with; without it what the newest finished run has left.",
)
@limit_option
def diff(
    pipeline: "Pipeline", *, printer: Printer, since: int | None, until: int | None, limit: int
) -> None:
    """Show which rows differ between publications, or since the last.

    `publish --list` has their numbers. A row that changed twice in between differs once, and one
    in which nothing but revision and run differs does not.
    """
    from jobs.diff import compare

    found = compare(pipeline, since, until, limit)
    first, last = _describe_side(found.since), _describe_side(found.until)
    printer.line(f"{pipeline.name}: from {first} to {last}")
    for name, difference in found.outputs.items():
        _print_difference(printer, pipeline, name, difference)
    for name in found.added:
        printer.line(f"{name}: every row is new, because this output is not in {first}")
    for name in found.removed:
        printer.line(f"{name}: every row is gone, because this output is not in {last}")
    printer.finish({"pipeline": pipeline.name, **found.as_json()})
    tell_changed_spec(pipeline, found.changed)


def _describe_side(side: "Side") -> str:
    if side.publication is None:
        return f"the newest rows, of run {side.run}"
    return f"publication {side.publication}, of run {side.run}, {instant(side.at)}"


def _print_difference(
    printer: Printer, pipeline: "Pipeline", name: str, found: "OutputDifference"
) -> None:
    if not found.count:
        printer.line(f"{name}: no row differs")
        return
    columns = list_others(found.rows[0].values, pipeline.source.key)
    window = pipeline.window(name)
    rows = [_to_cells(row, pipeline.source.key, window, columns) for row in found.rows]
    numbers = f"{found.inserted:,} inserted, {found.updated:,} updated, {found.deleted:,} deleted"
    printer.table(["change", *pipeline.source.key, "window", *columns], rows, f"{name}: {numbers}")
    if found.count > len(found.rows):
        shown = f"{len(found.rows):,} of {count(found.count, 'row')}"
        printer.line(f"{shown}; --limit shows more")


def _to_cells(
    row: "ChangedRow", keys: Sequence[str], window: "Window", columns: Sequence[str]
) -> list[Any]:
    values = [_to_cell(row.before, row.after, column) for column in columns]
    return [row.change, *map(datum, row_cells(row.values, keys, window)), *values]


def _to_cell(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, column: str) -> str:
    """A value, and where both sides have the row and it differs what it was."""
    if before is None or after is None or is_same(before[column], after[column]):
        return datum((after or before or {})[column])
    return f"{datum(before[column])} → {datum(after[column])}"
