"""Facts -> the page as values.

`view_runs`, `view_rows` and `view_quality` say what each section has.
What is not known is said on the page, so that a missing number is not taken for a zero.
"""

from datetime import datetime

from windowing.grid.zone import micros
from windowing.report.facts import Facts
from windowing.report.section import Cell, Section, View
from windowing.report.status import describe_age
from windowing.report.text import NONE, cell, count, instant, instant_us
from windowing.report.view_quality import show_alarms, show_publishings, show_quality
from windowing.report.view_rows import (
    show_corrections,
    show_lateness,
    show_lost_values,
    show_outputs,
    show_refusals,
)
from windowing.report.view_runs import (
    list_counts,
    show_backfills,
    show_changes,
    show_run_times,
    show_runs,
    show_watermark,
)

_NAMED = 10
"""So many broken expectations stand at the top of the page."""
_WITHOUT_VALUES = (
    "No key and no value of a row is on this page, but times of events are, such as the newest "
    "one of each run and the bounds of sessions. To add refused rows, the keys of failing rows and "
    "the values of revised windows, run `tidemark report SPEC --samples --output PAGE`."
)
_WITH_VALUES = (
    "This page contains keys and values of rows, because it was made with --samples. "
    "Protect it like the tables."
)


def view_facts(facts: Facts, now: datetime, docs: str | None = None) -> View:
    """The page made at `now`; `docs` is where the newest Data Docs lie, as seen from it."""
    source = facts.pipeline.source.table
    with_values = facts.samples is not None
    return View(
        title=facts.pipeline.name,
        subtitle=f"from {source}, made {instant(now.replace(microsecond=0))}",
        notices=_list_notices(facts),
        privacy=Cell(_WITH_VALUES, "bad") if with_values else Cell(_WITHOUT_VALUES, "soft"),
        cards=_list_cards(facts, now),
        sections=_list_sections(facts, docs),
    )


def _list_sections(facts: Facts, docs: str | None) -> tuple[Section, ...]:
    return (
        show_watermark(facts),
        show_outputs(facts),
        show_lateness(facts),
        show_corrections(facts),
        show_refusals(facts),
        show_quality(facts, docs),
        show_publishings(facts),
        show_alarms(facts),
        show_runs(facts),
        show_run_times(facts),
        show_changes(facts),
        show_backfills(facts),
        show_lost_values(facts),
    )


def _list_notices(facts: Facts) -> tuple[str, ...]:
    """What someone should check: unfinished steps and broken expectations, ten of them by name."""
    notices = [f"{what} was begun and not finished" for what in facts.unfinished]
    broken = [check for check in facts.checks if not check.success]
    for check in broken[:_NAMED]:
        observed = check.observed or "nothing"
        what = f"run {check.run} breaks {check.expectation} of {check.window}"
        accepted = "" if check.accepted is None else f", accepted: {check.accepted}"
        notices.append(f"{what}: observed {observed}{accepted}")
    if len(broken) > _NAMED:
        more = count(len(broken) - _NAMED, "more broken expectation")
        notices.append(f"{more}: see Quality")
    return tuple(notices)


def _list_cards(facts: Facts, now: datetime) -> tuple[tuple[str, str], ...]:
    """The figures at the top of the page, each with its label before it."""
    behind = NONE
    if facts.watermark_us is not None:
        behind = describe_age(micros(now) - facts.watermark_us)
    seen = NONE if facts.published is None else cell(facts.published.told.run)
    cards = [
        ("watermark", instant_us(facts.watermark_us)),
        ("lag of the watermark", behind),
        ("published run", seen),
        ("runs", cell(len(facts.runs))),
    ]
    for name in list_counts(facts):
        cards.append((name, cell(facts.total(name))))
    cards.append(("batches read row by row", cell(facts.total("row_by_row"))))
    return tuple(cards)
