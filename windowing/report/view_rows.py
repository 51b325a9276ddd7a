"""Facts of outputs and of refused rows -> sections: sizes, lateness, corrections, refusals."""

import json
from collections.abc import Sequence
from typing import Any

from windowing.columns import kept_name
from windowing.report.ages import Ages, label_bars
from windowing.report.charts import (
    TIMES,
    Figure,
    Series,
    break_line,
    draw_bars,
    draw_lines,
    draw_rows,
    label_apart,
    to_time,
)
from windowing.report.facts import Facts, Lateness, Output, Refusal, Revised, Revisions, Shape, Was
from windowing.report.rows import Refused
from windowing.report.section import (
    DRAWN,
    TABLED,
    Cell,
    Chart,
    Column,
    Part,
    Section,
    make_table,
    name_newest,
    numbers,
)
from windowing.report.status import describe_age
from windowing.report.text import NONE, count, datum, instant_us, plain
from windowing.spec.duration import Duration

_MOST_REASONS = 20


def show_outputs(facts: Facts) -> Section:
    """Each output: how large, what readers see, and how its rows lie in time."""
    columns = (
        Column("window"),
        Column("kind", "long"),
        *numbers("rows", "version"),
        Column("published"),
    )
    rows = [(o.name, o.kind, o.rows, o.version, _published_cell(o)) for o in facts.outputs]
    text = "nothing is published yet"
    if facts.published is not None:
        text = f"published: run {facts.published.told.run}"
        if facts.published.accepted is not None:
            text += f", although expectations failed: {facts.published.accepted}"
    parts = [Part(text=text, table=make_table("outputs", columns, rows))]
    for place, output in enumerate(facts.outputs):
        if output.revisions is not None:
            parts.append(_show_shape(f"shape{place}", output, output.revisions))
    return Section("outputs", "Outputs", tuple(parts))


def show_lateness(facts: Facts) -> Section:
    """How far behind the watermark late rows were, and what would have accepted them."""
    title = ("lateness", "Lateness")
    watermark = facts.pipeline.watermark
    allowed = "forever"
    if watermark.allowed_lateness_us is not None:
        allowed = f"{Duration(watermark.allowed_lateness_us)}"
    settings = f"The spec has a delay of {Duration(watermark.delay_us)} and allows lateness of "
    found = facts.lateness
    if found is None:
        text = f"{settings}{allowed}. No row was late."
        return Section(*title, (Part(text=text),))
    if found.unread is not None:
        text = f"{settings}{allowed}. Late rows were not read, because {found.unread}."
        return Section(*title, (Part(text=text),))
    text = (
        f"{settings}{allowed}. This is about rows that were late for all of their windows, and "
        "about those that were late for some (partial). The count `late` of runs has only the "
        "first. How late all other rows were is not recorded."
    )
    if found.unknown_rows:
        text += f" Left out are {count(found.unknown_rows, 'row')} without an event time."
    late = f"{count(found.behind.total, 'row')} late for all or some of their windows"
    label = f"{late}, by how far behind the watermark they were."
    chart = Chart("behind", label, _draw_ages([("late rows", found.behind)]))
    columns = (Column("behind the watermark"), *numbers("rows"))
    bars = make_table("late rows by lateness", columns, _list_bars(found.behind))
    return Section(*title, (Part(text=text, chart=chart, table=bars), _show_enough(found)))


def show_corrections(facts: Facts) -> Section:
    """What runs changed, how far back, and which windows were revised most."""
    parts = (
        _show_changes_by_run(facts),
        _show_revised(facts.outputs),
        _show_back(facts.outputs),
        _show_most_revised(facts.outputs),
    )
    return Section("corrections", "Corrections", parts)


def show_refusals(facts: Facts) -> Section:
    """Why rows were refused, and some of them where they were asked for.

    Rows that were late for some of their windows were accepted, and are told apart.
    """
    title = ("refused", "Refused rows")
    if not facts.refusals:
        return Section(*title, (Part(text="none"),))
    parts = [_show_reasons(facts.refusals)]
    if facts.samples is not None:
        parts.append(_show_refused_rows(facts, facts.samples.refused))
    return Section(*title, tuple(parts))


def _show_reasons(refusals: Sequence[Refusal]) -> Part:
    """How many rows were refused by reason, and how many were late for some windows alone."""
    most = sorted(refusals, key=lambda each: -each.rows)[:_MOST_REASONS]
    labels = label_apart(f"{each.outcome}: {each.reason}" for each in most)
    series = [
        Series("refused", [0 if each.is_partial else each.unresolved for each in most]),
        Series("accepted later", [each.resolved for each in most]),
    ]
    partial = sum(each.rows for each in refusals if each.is_partial)
    total = count(sum(each.rows for each in refusals) - partial, "refused row")
    text = ""
    if partial:
        missed = [each.unresolved if each.is_partial else 0 for each in most]
        series.append(Series("accepted, late for some windows", missed))
        total += f" and {count(partial, 'partly late row')}"
        text = "Rows whose outcome is partial were accepted, and late for some of their windows."
    label = f"{total} by reason, the {len(most)} most frequent reasons."
    chart = Chart("reasons", label, draw_rows(labels, series, "rows"))
    columns = (Column("outcome"), Column("reason", "long"), *numbers("rows", "accepted later"))
    rows = [(each.outcome, each.reason, each.rows, each.resolved) for each in refusals]
    return Part(text=text, chart=chart, table=make_table("refused rows by reason", columns, rows))


def show_lost_values(facts: Facts) -> Section:
    """Expressions that were NULL although their input had a value."""
    columns = (Column("step"), Column("expression", "long"), Column("rows", "n"))
    rows = [(lost.step, lost.column, lost.rows) for lost in facts.lost[::-1][:TABLED]]
    title = "No value (NULL) although the input had one"
    table = make_table(name_newest("lost values", len(facts.lost)), columns, rows)
    return Section("lost", title, (Part(text="" if rows else "none", table=table),))


def _published_cell(output: Output) -> Cell:
    if output.published is None:
        return Cell("not yet", "warn")
    newest = output.published == output.version
    return Cell(f"version {output.published}", "good" if newest else "warn")


def _show_shape(name: str, output: Output, found: Revisions) -> Part:
    title = f"{output.name}: rows by the start of their window"
    if found.unread is not None:
        return Part(title, f"not read, because {found.unread}")
    if found.shape is None:
        return Part(title, "no window has a start")
    shape = found.shape
    stretch = f"{Duration(shape.width_us)}"
    label = f"{count(output.rows, 'row')} of {output.name}, in stretches of {stretch}."
    if len(break_line(shape.starts_us, ())[0]) > len(shape.starts_us):
        label += " The line is broken where no window begins for longer than usual."
    note = ""
    if shape.published is None:
        is_published = output.published is not None
        note = "nothing is published yet"
        if is_published:
            note = "the published version was not read, because it was removed or needs Spark"
    columns = (Column("from"), *numbers("newest", "published"))
    published: Sequence[int | None] = shape.published or [None] * len(shape.starts_us)
    cells = zip(map(instant_us, shape.starts_us), shape.newest, published, strict=True)
    table = make_table(f"rows of {output.name}, stretches of {stretch}", columns, cells)
    return Part(title, note, Chart(name, label, _draw_shape(shape), "half"), table)


def _draw_shape(shape: Shape) -> Figure:
    series = [Series("newest", shape.newest)]
    if shape.published is not None:
        series.append(Series("published", shape.published))
    starts, broken = break_line(shape.starts_us, series)
    return draw_lines([to_time(start) for start in starts], broken, TIMES, "rows")


def _show_enough(found: Lateness) -> Part:
    """Which allowed lateness would have been enough for how many of the late rows."""
    text = (
        "A row is accepted where the allowed lateness is at least how far it is behind the "
        "watermark. It is proposed from late rows alone, which do not show what it would cost."
    )
    columns = (Column("share of the late rows", "n"), Column("enough allowed lateness"))
    rows = [
        (f"{share} %", f"{Duration(_round_up(length))}")
        for share, length in found.behind.within.items()
    ]
    return Part("Which lateness would be enough", text, table=make_table("", columns, rows))


def _round_up(length_us: int) -> int:
    """To whole seconds, so that it can be written into a spec and is enough."""
    return -(-length_us // 1_000_000) * 1_000_000


def _draw_ages(groups: Sequence[tuple[str, Ages]]) -> Figure:
    series = [Series(name, ages.bars) for name, ages in groups]
    return draw_rows(label_bars(), series, "rows")


def _list_bars(ages: Ages) -> list[tuple[str, int]]:
    return [(label, rows) for label, rows in zip(label_bars(), ages.bars, strict=True) if rows]


def _show_changes_by_run(facts: Facts) -> Part:
    runs = facts.runs[-DRAWN:]
    if not runs:
        return Part("By run", "none")
    changes = ("inserted", "updated", "deleted")
    series = [Series(name, [getattr(ran.changed, name) for ran in runs]) for name in changes]
    label = f"Rows of all outputs that {count(len(runs), 'run')} inserted, updated and deleted."
    figure = draw_bars([ran.run for ran in runs], series, "run", "rows")
    rows = [(ran.run, *(getattr(ran.changed, name) for name in changes)) for ran in runs[::-1]]
    caption = name_newest("changes by run", len(facts.runs), DRAWN)
    table = make_table(caption, numbers("run", *changes), rows)
    return Part("By run", chart=Chart("changes", label, figure), table=table)


def _show_revised(outputs: Sequence[Output]) -> Part:
    """How many windows were revised, and whether they had ended by then."""
    read = _list_read(outputs)
    text = (
        "For each window that was revised: how long before its newest change it had ended by the "
        "watermark. A window that is still open is completed and not corrected. What a backfill, a "
        "changed spec or an erasure has written has the number of the run before, so corrections "
        "by these are not dated: where one has updated an output, a row with that number counts as "
        "not known."
    )
    columns = (
        Column("window"),
        *numbers("corrected", "while open", "not known"),
        Column("furthest back"),
    )
    rows = [
        (name, found.back.total, found.open_rows, found.unknown_rows, _furthest(found.back))
        for name, found in read
    ]
    table = make_table("revised windows", columns, rows)
    if not any(found.back.total for _, found in read):
        text = f"{text} {_say_none(outputs)}"
    return Part("Revised windows", text, table=table)


def _show_back(outputs: Sequence[Output]) -> Part:
    """By how far back the newest change of a revised window lay."""
    title = "By how far back"
    groups = [(name, found.back) for name, found in _list_read(outputs) if found.back.total]
    if not groups:
        return Part(title, "none")
    total = sum(ages.total for _, ages in groups)
    label = f"{count(total, 'corrected window')} by how far back the correction went."
    columns = (Column("back"), *numbers(*(name for name, _ in groups)))
    bars = zip(label_bars(), *(ages.bars for _, ages in groups), strict=True)
    table = make_table(
        "corrected windows by how far back", columns, [bar for bar in bars if any(bar[1:])]
    )
    return Part(title, chart=Chart("back", label, _draw_ages(groups)), table=table)


def _list_read(outputs: Sequence[Output]) -> list[tuple[str, Revisions]]:
    return [(o.name, o.revisions) for o in outputs if o.revisions and o.revisions.unread is None]


def _say_none(outputs: Sequence[Output]) -> str:
    """That no correction was found, and whether there may be one all the same."""
    found = [output.revisions for output in outputs if output.revisions]
    if any(each.unknown_rows or each.unread is not None for each in found):
        return "Of no window is it known that it was changed after it had ended."
    return "No window was changed after it had ended."


def _furthest(back: Ages) -> str:
    return describe_age(back.within[100]) if back.total else NONE


def _show_most_revised(outputs: Sequence[Output]) -> Part:
    """The windows of highest revision, and what they were in earlier versions."""
    found = [(o.name, each) for o in outputs if o.revisions for each in o.revisions.most]
    if not found:
        return Part("Most revised windows", "none was revised")
    has_keys = any(revised.key for _, revised in found)
    columns = [Column("window"), Column("from, to"), *([Column("key", "long")] if has_keys else [])]
    columns += [*numbers("revision", "run"), Column("history", "long")]
    rows = [_revised_values(name, revised) for name, revised in found]
    text = "Its history is from the versions that are still there, oldest first."
    table = make_table("most revised windows of each output", columns, rows)
    return Part("Most revised windows", text, table=table)


def _revised_values(name: str, revised: Revised) -> tuple[Any, ...]:
    history = "; ".join(map(_describe_past, revised.history)) or NONE
    key = (_join_values(revised.key),) if revised.key else ()
    return (name, revised.place, *key, revised.revision, revised.run, history)


def _describe_past(was: Was) -> str:
    values = f": {_join_values(was.values)}" if was.values else ""
    return f"run {was.run}, revision {was.revision}{values}"


def _join_values(values: Any) -> str:
    return ", ".join(f"{column}={_show_value(value)}" for column, value in values.items())


def _show_value(value: Any) -> str:
    """A value of a row; a nested one as JSON."""
    if isinstance(value, list | dict):
        return json.dumps(plain(value), ensure_ascii=False)
    return datum(value)


def _show_refused_rows(facts: Facts, refused: Refused) -> Part:
    keys = [*facts.pipeline.source.key]
    if facts.pipeline.source.event_id:
        keys.append(facts.pipeline.source.event_id)
    columns = [Column("outcome"), *(Column(key) for key in keys), Column("event time")]
    columns += [Column("run", "n"), Column("reason", "long")]
    rows = []
    for row in refused.rows:
        known = [datum(row.get(kept_name(key))) for key in keys]
        rows.append((row["outcome"], *known, row["event_time"], row["run"], row["reason"]))
    total = count(sum(refused.counts.values()), "row")
    table = make_table(f"{len(rows):,} of {total}, newest run first", columns, rows)
    return Part("Samples", "" if rows else "none", table=table)
