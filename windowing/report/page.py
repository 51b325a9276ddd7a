"""Facts -> one HTML page.

Every value is escaped. The page has counts and reasons, never values of refused rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from windowing.ledger.rule import COUNTS
from windowing.report.curve import Line, draw_curves
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
class Link:
    """Words, and the page that they lead to."""

    text: str
    href: str


@dataclass(frozen=True)
class Section:
    """A heading, a sentence with a link behind it, and a table; each may be empty."""

    title: str
    text: str = ""
    columns: tuple[Column, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    link: Link | None = None


def render_page(facts: Facts, now: datetime, docs: str | None = None) -> str:
    """The page as HTML; `now` is the time of its making that it shows.

    `docs` is where the Data Docs of the newest validation lie, as seen from the page.
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    drawn = facts.runs[-10 * SHOWN :]
    accepted = Line("accepted", [run.accepted for run in drawn])
    late = Line("late", [run.late for run in drawn])
    curve = draw_curves("accepted and late rows per run", [accepted, late])
    highest = max([*accepted.values, *late.values], default=0)
    curve_range = ""
    if drawn:
        curve_range = f"run {drawn[0].run} to {drawn[-1].run}"
    return environment.from_string(TEMPLATE).render(
        name=facts.pipeline.name,
        subtitle=f"from {facts.pipeline.source.table}, made {instant(now.replace(microsecond=0))}",
        notices=_list_notices(facts),
        cards=_list_cards(facts),
        curve=Markup(curve),
        curve_range=curve_range,
        curve_top=count(highest, "row"),
        sections=[*(describe(facts) for describe in _SECTIONS), _describe_quality(facts, docs)],
    )


def _list_notices(facts: Facts) -> list[str]:
    """What someone should check: unfinished steps and the first ten broken expectations."""
    notices = [f"{what} was begun and not finished" for what in facts.unfinished]
    broken = [check for check in facts.checks if not check.success]
    for check in broken[:10]:
        observed = check.observed or "nothing"
        what = f"run {check.run} breaks {check.expectation} of {check.window}"
        notices.append(f"{what}: observed {observed}")
    return notices


def _list_cards(facts: Facts) -> list[tuple[str, str]]:
    """The figures at the top of the page, each with its label before it."""
    cards = [
        ("watermark", instant_us(facts.watermark_us)),
        ("runs", cell(len(facts.runs))),
    ]
    for name in _list_counts(facts):
        cards.append((name, cell(facts.total(name))))
    cards.append(("batches read row by row", cell(facts.total("row_by_row"))))
    return cards


def _list_counts(facts: Facts) -> list[str]:
    """The outcomes that the page shows: that of erased rows only where there are any."""
    return [name for name in COUNTS if name != "erased" or facts.total(name)]


def _describe_outputs(facts: Facts) -> Section:
    columns = (
        Column("window"),
        Column("kind", long=True),
        Column("rows", number=True),
        Column("version", number=True),
        Column("published"),
    )
    rows = [(o.name, o.kind, o.rows, o.version, _published_cell(o)) for o in facts.outputs]
    text = "nothing is published yet"
    if facts.published_run is not None:
        text = f"published: run {facts.published_run}"
    if facts.accepted_because is not None:
        text += f", although expectations failed: {facts.accepted_because}"
    return Section("Outputs", text, columns, _to_cells(rows))


def _published_cell(output: Output) -> Cell:
    if output.published is None:
        return Cell("not yet", "warn")
    newest = output.published == output.version
    return Cell(f"version {output.published}", "good" if newest else "warn")


def _describe_changes(facts: Facts) -> Section:
    columns = (Column("window"), Column("step"), *_CHANGED)
    rows = []
    for output in facts.outputs:
        for step, change in output.changes:
            rows.append((output.name, step, *_changed_values(change)))
    text = "" if rows else "nothing has run yet"
    return Section("What the last steps changed", text, columns, _to_cells(rows))


_CHANGED = (
    Column("inserted", number=True),
    Column("updated", number=True),
    Column("deleted", number=True),
)


def _changed_values(change: Changed) -> tuple[int, int, int]:
    return change.inserted, change.updated, change.deleted


def _describe_runs(facts: Facts) -> Section:
    shown = _list_counts(facts)
    counts = [Column(name, number=True) for name in shown]
    columns = (
        Column("run", number=True),
        Column("arrival"),
        Column("watermark"),
        *counts,
        *_CHANGED,
    )
    newest = facts.runs[::-1][:SHOWN]
    text = ""
    if not newest:
        text = "nothing has run yet"
    elif len(facts.runs) > SHOWN:
        text = f"the newest {SHOWN} of {count(len(facts.runs), 'run')}"
    return Section("Runs", text, columns, _to_cells(_run_values(run, shown) for run in newest))


def _run_values(run: Ran, shown: Sequence[str]) -> tuple[Any, ...]:
    times = (instant_us(run.arrival_us), instant_us(run.watermark_us))
    counts = (getattr(run, name) for name in shown)
    return (run.run, *times, *counts, *_changed_values(run.changed))


def _describe_backfills(facts: Facts) -> Section:
    columns = (Column("after run", number=True), Column("at"), Column("event times"), *_CHANGED)
    rows = []
    for each in facts.backfills[::-1][:SHOWN]:
        rows.append((each.run, instant_us(each.at_us), each.range, *_changed_values(each.changed)))
    return Section("Backfills", "" if rows else "none", columns, _to_cells(rows))


def _describe_refusals(facts: Facts) -> Section:
    columns = (
        Column("outcome"),
        Column("reason", long=True),
        Column("rows", number=True),
        Column("accepted later", number=True),
    )
    rows = [(r.outcome, r.reason, r.rows, r.resolved) for r in facts.refusals]
    return Section("Refused rows", "" if rows else "none", columns, _to_cells(rows))


def _describe_lost_values(facts: Facts) -> Section:
    columns = (Column("step"), Column("expression"), Column("rows", number=True))
    rows = [(lost.step, lost.column, lost.rows) for lost in facts.lost[::-1][:SHOWN]]
    title = "No value (NULL) although the input had one"
    return Section(title, "" if rows else "none", columns, _to_cells(rows))


def _describe_alarms(facts: Facts) -> Section:
    columns = (Column("run", number=True), Column("alarm", long=True), Column("held back"))
    rows = []
    for raised in facts.alarms[::-1][:SHOWN]:
        held = Cell("yes", "bad") if raised.alarm.holds else "no"
        rows.append((raised.run, raised.alarm.text, held))
    return Section("Alarms", "" if rows else "none", columns, _to_cells(rows))


def _describe_quality(facts: Facts, docs: str | None) -> Section:
    columns = (
        Column("window"),
        Column("expectation"),
        Column("holds"),
        Column("observed"),
        Column("detail", long=True),
    )
    if not facts.checks:
        return Section("Quality", "nothing was validated yet")
    broken = sum(not check.success for check in facts.checks)
    evaluated = count(len(facts.checks), "expectation")
    text = f"run {facts.checks[0].run}: {evaluated}, {broken or 'none'} broken"
    rows = []
    for check in facts.checks:
        row = (check.window, check.expectation, _holds_cell(check), check.observed, check.detail)
        rows.append(row)
    link = None if docs is None else Link("Data Docs", docs)
    return Section("Quality", text, columns, _to_cells(rows), link)


def _holds_cell(check: Check) -> Cell:
    if check.success:
        return Cell("yes", "good")
    if check.accepted is not None:
        return Cell(f"no, accepted: {check.accepted}", "warn")
    if check.severity == "critical":
        return Cell("no", "bad")
    return Cell("no (warning)", "warn")


_SECTIONS = (
    _describe_outputs,
    _describe_runs,
    _describe_changes,
    _describe_backfills,
    _describe_refusals,
    _describe_lost_values,
    _describe_alarms,
)
"""The sections of the page in their order, before that of quality."""


def _to_cells(rows: Iterable[Sequence[Any]]) -> tuple[tuple[Cell, ...], ...]:
    found = []
    for row in rows:
        found.append(tuple(_to_cell(value) for value in row))
    return tuple(found)


def _to_cell(value: Any) -> Cell:
    if isinstance(value, Cell):
        return value
    # An empty text looks like a value that isn't there.
    return Cell(cell(value) or NONE)
