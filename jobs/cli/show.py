"""The commands that only look: show, late, state."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from jobs.commands.engine import spark
from jobs.commands.options import TIMES, Instant, as_of_option, common, key_option, keys_of, limit_option, ordered, range_options, window_of
from jobs.commands.output import Printer
from windowing.columns import END, LAST, START
from windowing.errors import UsageError
from windowing.report.text import count, instant_us, interval, size

if TYPE_CHECKING:
    from windowing.report.rows import Rows
    from windowing.spec.pipeline import Pipeline

OUTCOMES = ("late", "partial", "duplicate", "quarantined")
_DERIVED = ("is_closed", "is_final")


@click.command()
@common
@click.argument("window")
@key_option
@click.option("--from", "start", type=Instant(), help="Only windows that end after this time. " + TIMES)
@click.option("--to", "end", type=Instant(), help="Only windows that begin before this time.")
@click.option("--reverse", is_flag=True, help="Newest windows first.")
@click.option("--published", is_flag=True, help="What readers see: the version that passed its expectations.")
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
        raise UsageError(f"--as-of {as_of!r} is not a run such as 3 or a version such as v7, given without --published")
    session = spark()
    from jobs.show import Wanted, look

    seen = look(session, pipeline, chosen, Wanted(wanted_keys, start, end, reverse, limit), published=published, as_of=as_of)
    printer = Printer(as_json=as_json)
    if seen.version is None:
        printer.line(f"{pipeline.name}: no rows, there is no run yet")
    else:
        title = f"{pipeline.name}.{window}, version {seen.version.number}, watermark {instant_us(seen.version.watermark_us)}"
        printer.data(*_windows(seen.rows, pipeline.source.key), title)
        printer.line(_how_many(seen.rows))
    printer.finish({"pipeline": pipeline.name, "window": window, **seen.as_json()})


def _windows(found: "Rows", keys: Sequence[str]) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows as people read them: one column for the bounds, one for what is derived from the watermark."""
    hidden = {*keys, START, END, LAST, *_DERIVED}
    last = [LAST] if LAST in found.columns else []
    shown = [c for c in found.columns if c not in hidden]
    rows = [[*(r[k] for k in keys), _bounds(r), *(r[c] for c in (*last, *shown)), _state(r)] for r in found.rows]
    return [*keys, "window", *last, *shown, "state"], rows


def _bounds(row: Mapping[str, Any]) -> str:
    start, end = row[START], row[END]
    if start is None and end is None:
        return "all time"
    return interval(start, end) if isinstance(start, datetime) and isinstance(end, datetime) else f"[{start}, {end})"


def _state(row: Mapping[str, Any]) -> str:
    return "final" if row["is_final"] else "closed" if row["is_closed"] else "open"


def _how_many(found: "Rows") -> str:
    if found.total <= len(found.rows):
        return count(found.total, "row")
    return f"{len(found.rows):,} of {count(found.total, 'row')}; --limit shows more"


@click.command()
@common
@click.option("--outcome", "outcomes", type=click.Choice(OUTCOMES), multiple=True, help="Only rows with this outcome. May be repeated.")
@key_option
@range_options("event times")
@as_of_option("As run RUN left it.")
@limit_option
def late(
    pipeline: "Pipeline",
    *,
    as_json: bool,
    outcomes: tuple[str, ...],
    keys: tuple[str, ...],
    start: datetime | None,
    end: datetime | None,
    reverse: bool,
    as_of: str | None,
    limit: int,
) -> None:
    """Rows that were refused, newest run first.

    late: for every window; partial: for some of its windows; duplicate: its id was accepted before; quarantined: for a reason.
    """
    wanted_keys = keys_of(pipeline, keys)
    ordered(start, end)
    session = spark()
    from jobs.show import Wanted, refused

    found = refused(session, pipeline, outcomes or OUTCOMES, Wanted(wanted_keys, start, end, not reverse, limit), as_of)
    printer = Printer(as_json=as_json)
    printer.line(f"{pipeline.name}: " + ", ".join(f"{n:,} {outcome}" for outcome, n in found.counts.items()))
    if found.rows:
        names = [*pipeline.source.key, *([pipeline.source.event_id] if pipeline.source.event_id else [])]
        columns = ["outcome", *names, "event time", "run", "watermark", "reason", "resolved by"]
        printer.data(columns, [_refused(row, names) for row in found.rows])
    printer.finish({"pipeline": pipeline.name, **found.as_json()})


def _refused(row: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    missed = ", ".join(m["window"] for m in row.get("missed") or [])
    reason = f"{row['reason']}: {missed}" if missed else row["reason"]
    return [row["outcome"], *(row.get(n) for n in names), row["event_time"], row["run"], row["watermark"], reason, row["resolved_by"]]


@click.command()
@common
@click.option("--window", help="Also show what this window is made from: partial aggregates, or events where their order counts.")
@key_option
@range_options("state")
@as_of_option("As run RUN left it; with --window.")
@limit_option
def state(
    pipeline: "Pipeline",
    *,
    as_json: bool,
    window: str | None,
    keys: tuple[str, ...],
    start: datetime | None,
    end: datetime | None,
    reverse: bool,
    as_of: str | None,
    limit: int,
) -> None:
    """Tables that outputs are made from; --window: their newest rows."""
    if window is None and (keys or start or end or as_of):
        raise UsageError("--key, --from, --to and --as-of need --window, which says whose state to show")
    chosen, wanted_keys = None if window is None else window_of(pipeline, window), keys_of(pipeline, keys)
    ordered(start, end)
    session = spark()
    from jobs.show import Wanted, partials, state_tables

    tables = state_tables(session, pipeline)
    printer = Printer(as_json=as_json)
    result: dict[str, object] = {"pipeline": pipeline.name, "tables": [t.as_json() for t in tables]}
    columns = ["table", "windows", "rows", "files", "size", "newest run", "newest batch"]
    if tables:
        printer.table(columns, [[t.table, ", ".join(t.windows), t.rows, t.files, size(t.bytes), t.run, t.batch] for t in tables])
    else:
        printer.line(f"{pipeline.name}: no state, there is no run yet")
    if chosen is not None:
        found = partials(session, pipeline, chosen, Wanted(wanted_keys, start, end, not reverse, limit), as_of)
        if tables:
            printer.data(found.columns, [[row[c] for c in found.columns] for row in found.rows], f"what {chosen.name} is made from")
            printer.line(_how_many(found))
        result["partials"] = found.as_json()
    printer.finish(result)
