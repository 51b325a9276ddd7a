"""The command that shows rows of an output: show."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from jobs.cli.format import how_many
from jobs.cli.options import (
    TIMES,
    Instant,
    common,
    key_option,
    keys_of,
    limit_option,
    ordered,
    window_of,
)
from jobs.cli.spark import spark
from jobs.console import Printer
from windowing.columns import END, LAST, START
from windowing.errors import UsageError
from windowing.report.text import instant_us, interval

if TYPE_CHECKING:
    from windowing.report.rows import Rows
    from windowing.spec.pipeline import Pipeline

_DERIVED = ("is_closed", "is_final")


@click.command()
@common
@click.argument("window")
@key_option
@click.option(
    "--from", "start", type=Instant(), help="Only windows that end after this time. " + TIMES
)
@click.option("--to", "end", type=Instant(), help="Only windows that begin before this time.")
@click.option("--reverse", is_flag=True, help="Newest windows first.")
@click.option(
    "--published", is_flag=True, help="What readers see: the version that passed its expectations."
)
@click.option("--as-of", metavar="RUN", help="As run RUN left it; v7 is version 7 of the table.")
@limit_option
def show(
    pipeline: "Pipeline",
    window: str,
    *,
    as_json: bool,
    keys: tuple[str, ...],
    start: datetime | None,
    end: datetime | None,
    reverse: bool,
    published: bool,
    as_of: str | None,
    limit: int,
) -> None:
    """Rows of the output WINDOW, oldest window first.

    A window is open until the watermark has passed its end, then closed; it is final when no event can change it any more.
    """
    chosen, wanted_keys = window_of(pipeline, window), keys_of(pipeline, keys)
    ordered(start, end)
    if as_of is not None and (published or not re.fullmatch(r"v?\d{1,18}", as_of, re.ASCII)):
        raise UsageError(
            f"--as-of {as_of!r} is not a run such as 3 or a version such as v7, given without --published"
        )
    session = spark()
    from jobs.show import Wanted, look

    seen = look(
        session,
        pipeline,
        chosen,
        Wanted(wanted_keys, start, end, reverse, limit),
        published=published,
        as_of=as_of,
    )
    printer = Printer(as_json=as_json)
    if seen.version is None:
        printer.line(f"{pipeline.name}: no rows, there is no run yet")
    else:
        title = f"{pipeline.name}.{window}, version {seen.version.number}, watermark {instant_us(seen.version.watermark_us)}"
        printer.data(*_windows(seen.rows, pipeline.source.key), title)
        printer.line(how_many(seen.rows))
    printer.finish({"pipeline": pipeline.name, "window": window, **seen.as_json()})


def _windows(found: "Rows", keys: Sequence[str]) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows as people read them: one column for the bounds, one for what is derived from the watermark."""
    hidden = {*keys, START, END, LAST, *_DERIVED}
    last = [LAST] if LAST in found.columns else []
    shown = [c for c in found.columns if c not in hidden]
    rows = [
        [*(r[k] for k in keys), _bounds(r), *(r[c] for c in (*last, *shown)), _state(r)]
        for r in found.rows
    ]
    return [*keys, "window", *last, *shown, "state"], rows


def _bounds(row: Mapping[str, Any]) -> str:
    start, end = row[START], row[END]
    if start is None and end is None:
        return "all time"
    return (
        interval(start, end)
        if isinstance(start, datetime) and isinstance(end, datetime)
        else f"[{start}, {end})"
    )


def _state(row: Mapping[str, Any]) -> str:
    return "final" if row["is_final"] else "closed" if row["is_closed"] else "open"
