"""Facts of validations and publications -> sections: expectations over time, reasons, alarms."""

from collections import Counter
from collections.abc import Mapping, Sequence

from windowing.report.charts import Series, draw_bars
from windowing.report.facts import Check, Facts, FailingRows, Validated
from windowing.report.publications import VALIDATED
from windowing.report.section import (
    TABLED,
    Cell,
    Chart,
    Column,
    Link,
    Part,
    Section,
    Table,
    make_table,
    name_newest,
    numbers,
)
from windowing.report.text import count, datum, instant_us, list_others, row_cells

_MOST_CHECKS = 1_000
_VERDICTS = {"met": "good", "failed": "bad", "warning": "warn", "accepted": "warn"}
_SIGNS = {"met": "+", "failed": "x", "warning": "!", "accepted": "a", "": "."}
_LEGEND = (
    "The history has one sign for each validation, oldest first: + met, x failed, ! failed as a "
    "warning, a failed and accepted, . not evaluated."
)


def show_quality(facts: Facts, docs: str | None) -> Section:
    """Every expectation of the newest validation, failing ones first, with its history."""
    if not facts.validations:
        return Section("quality", "Quality", (Part(text="nothing was validated yet"),))
    checks = facts.checks
    broken = sum(not check.success for check in checks)
    evaluated = count(len(checks), "expectation")
    text = f"run {facts.validations[-1].run}: {evaluated}, {broken or 'none'} broken"
    link = None if docs is None else Link("Data Docs", docs)
    verdicts = _count_verdicts(facts.validations)
    parts = [Part("", text, _chart_verdicts(verdicts), _tabulate_verdicts(verdicts), link)]
    parts.append(_show_checks(facts.validations))
    if facts.samples is not None:
        parts += [_show_failing(each, facts) for each in facts.samples.failing]
    elif broken:
        advice = "`tidemark validate NAME --failing` prints the keys of failing rows, and so does "
        parts.append(Part(text=f"{advice}this page with --samples."))
    return Section("quality", "Quality", tuple(parts))


def show_publishings(facts: Facts) -> Section:
    """The newest publications, why each was made, and what it held back."""
    columns = (
        *numbers("publication", "run"),
        Column("at"),
        Column("why", "long"),
        Column("held back", "long"),
    )
    rows = []
    for each in facts.publishings[::-1][:TABLED]:
        told = each.told
        why = Cell(told.why, "" if told.cause == VALIDATED else "warn")
        rows.append((told.number, told.run, told.at, why, ", ".join(each.held)))
    table = make_table(name_newest("publications", len(facts.publishings)), columns, rows)
    text = "" if rows else "nothing is published yet"
    return Section("publications", "Publications", (Part(text=text, table=table),))


def show_alarms(facts: Facts) -> Section:
    """Figures of runs that are wrong most likely."""
    columns = (Column("run", "n"), Column("alarm", "long"), Column("beyond the limit of the spec"))
    rows = []
    for raised in facts.alarms[::-1][:TABLED]:
        is_beyond = Cell("yes", "bad") if raised.alarm.holds else "no"
        rows.append((raised.run, raised.alarm.text, is_beyond))
    table = make_table(name_newest("alarms", len(facts.alarms)), columns, rows)
    text = "All runs are judged by the limits as the spec is now." if rows else "none"
    return Section("alarms", "Alarms", (Part(text=text, table=table),))


def _count_verdicts(validations: Sequence[Validated]) -> list[tuple[int, ...]]:
    """Of each validation its place, its run, and how many expectations have each verdict."""
    counted = []
    for place, each in enumerate(validations, start=1):
        found = Counter(check.verdict for check in each.checks)
        counted.append((place, each.run, *(found[verdict] for verdict in _VERDICTS)))
    return counted


def _chart_verdicts(counted: Sequence[tuple[int, ...]]) -> Chart:
    # Two validations may be of one run, and each has a bar.
    places = [f"{place}. run {run}" for place, run, *_ in counted]
    series = [Series(name, [row[at] for row in counted]) for at, name in enumerate(_VERDICTS, 2)]
    label = f"Expectations by verdict of {count(len(counted), 'validation')}."
    return Chart("verdicts", label, draw_bars(places, series, "validation", "expectations"))


def _tabulate_verdicts(counted: Sequence[tuple[int, ...]]) -> Table | None:
    columns = numbers("validation", "run", *_VERDICTS)
    return make_table("verdicts, newest validation first", columns, counted[::-1])


def _show_checks(validations: Sequence[Validated]) -> Part:
    columns = (
        Column("window"),
        Column("expectation", "long"),
        Column("holds", "long"),
        Column("observed"),
        Column("detail", "long"),
        Column("history", "history"),
    )
    checks = validations[-1].checks
    verdicts = [_find_verdicts(each) for each in validations]
    rows = []
    for check in checks[:_MOST_CHECKS]:
        history = "".join(_SIGNS[found.get(check.name, "")] for found in verdicts)
        values = (check.window, check.expectation, _holds_cell(check), check.observed)
        rows.append((*values, check.detail, history))
    caption = f"expectations as of {instant_us(validations[-1].at_us)}"
    if len(checks) > len(rows):
        caption = f"the first {len(rows):,} of {len(checks):,} {caption}, failing ones first"
    return Part(text=_LEGEND, table=make_table(caption, columns, rows))


def _find_verdicts(validation: Validated) -> Mapping[tuple[str, str, str], str]:
    """By the name of each expectation its verdict; of two that are called alike the first one's."""
    return {check.name: check.verdict for check in reversed(validation.checks)}


def _holds_cell(check: Check) -> Cell:
    words = {"met": "yes", "failed": "no", "warning": "no (warning)"}
    text = words.get(check.verdict, f"no, accepted: {check.accepted}")
    return Cell(text, _VERDICTS[check.verdict])


def _show_failing(each: FailingRows, facts: Facts) -> Part:
    title = f"{each.window} fails {each.expectation}"
    if each.failing is None:
        return Part(title, "No single row is to blame, or it could not be evaluated.")
    keys, window = facts.pipeline.source.key, facts.pipeline.window(each.window)
    others = list_others(each.failing.columns, keys)
    columns = [Column(name) for name in (*keys, "window", *others)]
    rows = [list(map(datum, row_cells(row, keys, window, others))) for row in each.failing.rows]
    shown = f"{len(rows):,} of {count(each.failing.total, 'row')}"
    return Part(title, table=make_table(shown, columns, rows))
