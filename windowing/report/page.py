"""Facts -> one HTML page. Every value is escaped; there are counts and reasons on it, never values of refused rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from windowing.report.curve import Line, svg
from windowing.report.rule import Changed
from windowing.report.table import Check, Facts, Output, Ran
from windowing.report.template import TEMPLATE
from windowing.report.text import NONE, cell, count, instant, instant_us

SHOWN = 50
"""Runs in the table; the curve shows up to ten times as many."""


@dataclass(frozen=True)
class Column:
    """A column: numbers are aligned to the right, long texts may wrap."""

    name: str
    number: bool = False
    long: bool = False


@dataclass(frozen=True)
class Cell:
    """A value as text and the class that colours it."""

    text: str
    css: str = ""


@dataclass(frozen=True)
class Section:
    """A heading, a sentence and a table; either may be empty."""

    title: str
    text: str = ""
    columns: tuple[Column, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()


def page(facts: Facts, now: datetime) -> str:
    """The page as HTML; `now` is the time it says it was made."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    drawn = facts.runs[-10 * SHOWN :]
    curve = svg(
        "accepted and late rows per run",
        [Line("accepted", [r.accepted for r in drawn]), Line("late", [r.late for r in drawn])],
    )
    return environment.from_string(TEMPLATE).render(
        name=facts.pipeline.name,
        subtitle=f"from {facts.pipeline.source.table}, made {instant(now.replace(microsecond=0))}",
        notices=_notices(facts),
        cards=_cards(facts),
        curve=Markup(curve),
        curve_range=f"run {drawn[0].run} to {drawn[-1].run}" if drawn else "",
        curve_top=count(max((max(r.accepted, r.late) for r in drawn), default=0), "row"),
        sections=[part(facts) for part in _PARTS],
    )


def _notices(facts: Facts) -> list[str]:
    """What someone should look into."""
    broken = [c for c in facts.checks if not c.success]
    failed = [
        f"run {c.run} breaks {c.expectation} of {c.window}: observed {c.observed or 'nothing'}"
        for c in broken[:10]
    ]
    return [*(f"{what} was begun and not finished" for what in facts.unfinished), *failed]


def _cards(facts: Facts) -> list[tuple[str, str]]:
    counts = ("read", "accepted", "late", "duplicate", "quarantined")
    return [
        ("watermark", instant_us(facts.watermark_us)),
        ("runs", cell(len(facts.runs))),
        *((c, cell(facts.total(c))) for c in counts),
    ]


def _outputs(facts: Facts) -> Section:
    numbers = (Column("rows", number=True), Column("version", number=True))
    columns = (Column("window"), Column("kind", long=True), *numbers, Column("published"))
    rows = [(o.name, o.kind, o.rows, o.version, _published(o)) for o in facts.outputs]
    text = (
        "nothing is published yet"
        if facts.published_run is None
        else f"published: run {facts.published_run}"
    )
    return Section("Outputs", text, columns, _cells(rows))


def _published(output: Output) -> Cell:
    if output.published is None:
        return Cell("not yet", "warn")
    newest = output.published == output.version
    return Cell(f"version {output.published}", "good" if newest else "warn")


def _changes(facts: Facts) -> Section:
    columns = (Column("window"), Column("step"), *_THREE)
    rows = [(o.name, step, *_three(change)) for o in facts.outputs for step, change in o.changes]
    return Section(
        "What the last steps changed", "" if rows else "nothing has run yet", columns, _cells(rows)
    )


_THREE = (
    Column("inserted", number=True),
    Column("updated", number=True),
    Column("deleted", number=True),
)


def _three(change: Changed) -> tuple[int, int, int]:
    return change.inserted, change.updated, change.deleted


def _runs(facts: Facts) -> Section:
    numbers = ("read", "accepted", "late", "duplicate", "quarantined")
    columns = (
        Column("run", number=True),
        Column("arrival"),
        Column("watermark"),
        *(Column(n, number=True) for n in numbers),
        *_THREE,
    )
    newest = facts.runs[::-1][:SHOWN]
    more = (
        f"the newest {SHOWN} of {count(len(facts.runs), 'run')}" if len(facts.runs) > SHOWN else ""
    )
    return Section(
        "Runs",
        more if newest else "nothing has run yet",
        columns,
        _cells(_run(r, numbers) for r in newest),
    )


def _run(run: Ran, numbers: Sequence[str]) -> tuple[Any, ...]:
    times = (instant_us(run.arrival_us), instant_us(run.watermark_us))
    return (run.run, *times, *(getattr(run, n) for n in numbers), *_three(run.changed))


def _backfills(facts: Facts) -> Section:
    columns = (Column("after run", number=True), Column("at"), Column("event times"), *_THREE)
    rows = [
        (b.run, instant_us(b.at_us), b.range, *_three(b.changed))
        for b in facts.backfills[::-1][:SHOWN]
    ]
    return Section("Backfills", "" if rows else "none", columns, _cells(rows))


def _refusals(facts: Facts) -> Section:
    columns = (
        Column("outcome"),
        Column("reason", long=True),
        Column("rows", number=True),
        Column("taken in later", number=True),
    )
    rows = [(r.outcome, r.reason, r.rows, r.resolved) for r in facts.refusals]
    return Section("Refused rows", "" if rows else "none", columns, _cells(rows))


def _lost(facts: Facts) -> Section:
    columns = (Column("step"), Column("expression"), Column("rows", number=True))
    rows = [(lost.step, lost.column, lost.rows) for lost in facts.lost[::-1][:SHOWN]]
    title = "No value (NULL) although the input had one"
    return Section(title, "" if rows else "none", columns, _cells(rows))


def _quality(facts: Facts) -> Section:
    columns = (
        Column("window"),
        Column("expectation"),
        Column("holds"),
        Column("observed"),
        Column("detail", long=True),
    )
    if not facts.checks:
        return Section("Quality", "nothing was validated yet")
    broken = sum(not c.success for c in facts.checks)
    text = f"run {facts.checks[0].run}: {count(len(facts.checks), 'expectation')}, {broken or 'none'} broken"
    return Section(
        "Quality",
        text,
        columns,
        _cells((c.window, c.expectation, _holds(c), c.observed, c.detail) for c in facts.checks),
    )


def _holds(check: Check) -> Cell:
    if check.success:
        return Cell("yes", "good")
    return Cell("no", "bad") if check.severity == "critical" else Cell("no (warning)", "warn")


_PARTS = (_outputs, _runs, _changes, _backfills, _refusals, _lost, _quality)


def _cells(rows: Iterable[Sequence[Any]]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(
        tuple(v if isinstance(v, Cell) else Cell(cell(v) or NONE) for v in row) for row in rows
    )
