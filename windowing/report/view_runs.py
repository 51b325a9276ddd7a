"""Facts of runs -> sections: watermark, rows, times, changes and backfills."""

from collections.abc import Sequence
from typing import Any

from windowing.ledger.rule import COUNTS
from windowing.report.charts import (
    Figure,
    Series,
    choose_unit,
    draw_bars,
    draw_lines,
    in_unit,
    name_axis,
)
from windowing.report.facts import Facts, Ran
from windowing.report.rule import Changed
from windowing.report.section import (
    DRAWN,
    TABLED,
    Chart,
    Column,
    Part,
    Section,
    make_table,
    name_newest,
    name_newest_drawn,
    numbers,
)
from windowing.report.status import describe_age
from windowing.report.text import NONE, count, instant_us
from windowing.spec.duration import SECOND, Duration

CHANGED = numbers("inserted", "updated", "deleted")
NO_RUN = "nothing has run yet"


def show_watermark(facts: Facts) -> Section:
    """How far the watermark, and the newest event, lay behind each run."""
    title = ("watermark", "Watermark and lag")
    runs = _list_drawn(facts)
    if not runs:
        return Section(*title, (Part(text=NO_RUN),))
    delay = Duration(facts.pipeline.watermark.delay_us)
    text = (
        f"The watermark follows the highest accepted event time by the delay of {delay}. Lag is "
        "how far it lies behind the arrival that the run was given."
    )
    chart = Chart("lag", _describe_lag(runs[-1]), _draw_lag(runs))
    columns = (
        Column("run", "n"),
        *(Column(name) for name in ("arrival", "watermark", "newest event", "lag")),
        Column("lag of the newest event"),
    )
    rows = []
    for ran in runs[::-1][:TABLED]:
        times = map(instant_us, (ran.arrival_us, ran.watermark_us, ran.last_us))
        rows.append((ran.run, *times, _age(ran.lag_us), _age(ran.event_lag_us)))
    table = make_table(name_newest_drawn("watermarks", len(facts.runs)), columns, rows)
    return Section(*title, (Part(text=text, chart=chart, table=table),))


def show_runs(facts: Facts) -> Section:
    """Where the rows of each run went."""
    runs = _list_drawn(facts)
    if not runs:
        return Section("runs", "Runs", (Part(text=NO_RUN),))
    shown = list_counts(facts)
    ways = [name for name in shown if name != "read"]
    series = [Series(name, [getattr(ran, name) for ran in runs]) for name in ways]
    figure = draw_bars([ran.run for ran in runs], series, "run", "rows")
    label = f"Rows by outcome of {count(len(runs), 'run')}, run {runs[0].run} to {runs[-1].run}."
    columns = (Column("run", "n"), Column("arrival"), Column("watermark"))
    table = make_table(
        name_newest_drawn("runs", len(facts.runs)),
        (*columns, *numbers(*shown), *CHANGED),
        [_run_values(ran, shown) for ran in runs[::-1][:TABLED]],
    )
    return Section("runs", "Runs", (Part(chart=Chart("rows", label, figure), table=table),))


def show_run_times(facts: Facts) -> Section:
    """How long each run took, by the times that the ledger has."""
    title = ("times", "Run times and cost")
    timed = [ran for ran in facts.runs if ran.took_us is not None]
    if not timed:
        return Section(*title, (Part(text="no run has times in the ledger yet"),))
    runs = timed[-DRAWN:]
    known = [ran for ran in runs if ran.closing_us is not None]
    text = (
        "A run is timed from the record of its first batch until its end, by the clock of its "
        "host; the start of Spark lies before. CPU time and bytes are not recorded."
    )
    if len(known) < len(runs):
        text += (
            f" For {count(len(runs) - len(known), 'run')} the ledger does not record when the last "
            "batch was done, so batches and closing are one time."
        )
    label = f"Seconds of {count(len(runs), 'run')}; the newest took {_seconds(runs[-1].took_us)} s."
    columns = numbers(
        "run", "batches", "seconds", "of them closing", "rows read", "rows per second"
    )
    rows = [_time_values(ran) for ran in runs[::-1][:TABLED]]
    caption = name_newest_drawn("run times", len(timed))
    table = make_table(caption, (*columns, Column("until readers saw it")), rows)
    chart = Chart("times", label, _draw_times(runs))
    return Section(*title, (Part(text=text, chart=chart, table=table),))


def show_changes(facts: Facts) -> Section:
    """What the last steps changed in each output."""
    columns = (Column("window"), Column("step"), *CHANGED)
    rows = []
    for output in facts.outputs:
        for step, change in output.changes:
            rows.append((output.name, step, *changed_values(change)))
    table = make_table("changes of the last steps", columns, rows)
    return Section(
        "changes",
        "What the last steps changed",
        (Part(text="" if rows else NO_RUN, table=table),),
    )


def show_backfills(facts: Facts) -> Section:
    """The newest chunks of backfills."""
    columns = (Column("after run", "n"), Column("at"), Column("event times"), *CHANGED)
    rows = []
    for each in facts.backfills[::-1][:TABLED]:
        rows.append((each.run, instant_us(each.at_us), each.range, *changed_values(each.changed)))
    table = make_table(name_newest("backfills", len(facts.backfills)), columns, rows)
    return Section("backfills", "Backfills", (Part(text="" if rows else "none", table=table),))


def list_counts(facts: Facts) -> list[str]:
    """The outcomes that the page shows: that of erased rows only where there are any."""
    return [name for name in COUNTS if name != "erased" or facts.total(name)]


def changed_values(change: Changed) -> tuple[int, int, int]:
    """The three counts as cells."""
    return change.inserted, change.updated, change.deleted


def _list_drawn(facts: Facts) -> tuple[Ran, ...]:
    return facts.runs[-DRAWN:]


def _run_values(ran: Ran, shown: Sequence[str]) -> tuple[Any, ...]:
    times = (instant_us(ran.arrival_us), instant_us(ran.watermark_us))
    counts = (getattr(ran, name) for name in shown)
    return (ran.run, *times, *counts, *changed_values(ran.changed))


def _draw_lag(runs: Sequence[Ran]) -> Figure:
    lags, event_lags = [ran.lag_us for ran in runs], [ran.event_lag_us for ran in runs]
    unit, name = choose_unit([*lags, *event_lags])
    series = [
        Series("watermark", in_unit(lags, unit)),
        Series("newest event", in_unit(event_lags, unit)),
    ]
    return draw_lines([ran.run for ran in runs], series, name_axis("run"), f"{name} behind arrival")


def _describe_lag(newest: Ran) -> str:
    if newest.lag_us is None:
        return f"After run {newest.run} there was no watermark yet."
    return f"After run {newest.run} the watermark was {_age(newest.lag_us)} behind its arrival."


def _age(lag_us: int | None) -> str:
    if lag_us is None:
        return NONE
    return describe_age(lag_us) if lag_us >= 0 else f"{describe_age(-lag_us)} ahead"


def _draw_times(runs: Sequence[Ran]) -> Figure:
    closing = [ran.closing_us or 0 for ran in runs]
    before = [(ran.took_us or 0) - last for ran, last in zip(runs, closing, strict=True)]
    series = [Series("batches" if any(closing) else "run", in_unit(before, SECOND))]
    if any(closing):
        series.append(Series("closing", in_unit(closing, SECOND)))
    return draw_bars([ran.run for ran in runs], series, "run", "seconds")


def _time_values(ran: Ran) -> tuple[Any, ...]:
    took = ran.took_us or 0
    speed = f"{ran.read * SECOND / took:,.0f}" if took > 0 else NONE
    waited = NONE if ran.waited_us is None else describe_age(ran.waited_us)
    times = (_seconds(took), _seconds(ran.closing_us))
    return (ran.run, ran.batches, *times, ran.read, speed, waited)


def _seconds(length_us: int | None) -> str:
    return NONE if length_us is None else f"{length_us / SECOND:,.1f}"
