"""The command that shows rows of an output: show."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from jobs.cli.changed_spec import tell_changed_spec
from jobs.cli.format import how_many
from jobs.cli.options import (
    common,
    key_option,
    keys_of,
    limit_option,
    ordered,
    window_of,
    windows_options,
)
from jobs.cli.pipeline_argument import WINDOW
from jobs.cli.spark import open_to_read
from jobs.console import Printer
from windowing.columns import LAST
from windowing.errors import UsageError
from windowing.report.text import instant_us, list_others, row_cells

if TYPE_CHECKING:
    from windowing.report.rows import Rows
    from windowing.spec.kinds import Window
    from windowing.spec.pipeline import Pipeline

_DERIVED = ("is_closed", "is_final")


@click.command()
@common
@click.argument("window", type=WINDOW, metavar="WINDOW")
@key_option
@windows_options
@click.option("--published", is_flag=True, help="Show the published version, which readers use.")
@click.option(
    "--as-of",
    metavar="RUN",
    help="Show the output as run RUN left it; v7 is version 7 of the table.",
)
@limit_option
def show(
    pipeline: "Pipeline",
    window: str,
    *,
    printer: Printer,
    keys: tuple[str, ...],
    start: datetime | None,
    end: datetime | None,
    reverse: bool,
    published: bool,
    as_of: str | None,
    limit: int,
) -> None:
    """Show rows of the output WINDOW, oldest window first.

    A window is open until the watermark has reached its end, then closed. It is final when only a
    backfill can still change it.
    """
    chosen = window_of(pipeline, window)
    wanted_keys = keys_of(pipeline, keys)
    ordered(start, end)
    if as_of is not None and (published or not re.fullmatch(r"v?\d{1,18}", as_of, re.ASCII)):
        raise UsageError(
            f"--as-of {as_of!r} is not a run such as 3 or a version such as v7, "
            "given without --published"
        )
    from jobs.sessions.profiles import choose_for_tables

    session = open_to_read(choose_for_tables(pipeline))
    from jobs.show import Wanted, show_windows

    wanted = Wanted(wanted_keys, start, end, reverse, limit)
    seen = show_windows(session, pipeline, chosen, wanted, published=published, as_of=as_of)
    if seen.version is None:
        printer.line(f"{pipeline.name}: no rows, because {seen.missing}")
    elif wanted_keys and not seen.rows.total:
        there = " there" if start or end else ""
        printer.line(f"{pipeline.name}.{window}: no row has this key{there}")
    else:
        watermark = instant_us(seen.version.watermark_us)
        title = f"{pipeline.name}.{window}, version {seen.version.number}, watermark {watermark}"
        columns, rows = _window_table(seen.rows, pipeline.source.key, chosen)
        printer.data(columns, rows, title)
        printer.line(how_many(seen.rows))
    printer.finish({"pipeline": pipeline.name, "window": window, **seen.as_json()})
    tell_changed_spec(pipeline, seen.changed)


def _window_table(
    found: "Rows", keys: Sequence[str], window: "Window"
) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows for people: one column for the bounds, and one for open, closed or final."""
    last_event = [LAST] if LAST in found.columns else []
    others = [*last_event, *list_others(found.columns, (*keys, LAST, *_DERIVED))]
    rows = [[*row_cells(row, keys, window, others), _state(row)] for row in found.rows]
    return [*keys, "window", *others, "state"], rows


def _state(row: Mapping[str, Any]) -> str:
    if row["is_final"]:
        return "final"
    return "closed" if row["is_closed"] else "open"
