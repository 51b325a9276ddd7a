"""Every row read gets one outcome: checked rows -> rows + [outcome, reason, missed].

Judged in the order of the law: quarantined, duplicate of an accepted event, late, copy inside the batch, accepted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windowing.admit.rule import Cut
from windowing.columns import DIGEST, FIRST, LAST, MISSED, OUTCOME, START, WHY
from windowing.columns import T as TIME
from windowing.spec.kinds import Chained, Punctuation
from windowing.spec.pipeline import Pipeline
from windowing.windows.session import chained

ACCEPTED, LATE, DUPLICATE, QUARANTINED, PARTIAL = (
    "accepted",
    "late",
    "duplicate",
    "quarantined",
    "partial",
)
_KNOWN = "__known"
_NO_MISSED = "array<struct<window:string,until:timestamp_ltz>>"


@dataclass(frozen=True)
class Memory:
    """What was accepted before: `ids` (distinct `event_id`s, or None if nothing was) and the stored sessions by window."""

    ids: DataFrame | None = None
    sessions: Mapping[str, DataFrame] = field(default_factory=dict)


@dataclass(frozen=True)
class Law:
    """What lateness is judged by: W of the run, the allowed lateness and the cuts that follow; W None: nothing is late."""

    watermark_us: int | None
    lateness_us: int | None
    cuts: tuple[Cut, ...] = ()

    @property
    def can_be_late(self) -> bool:
        """False on a first load and with `allowed_lateness: forever`."""
        return self.watermark_us is not None and self.lateness_us is not None


def judged(checked: DataFrame, pipeline: Pipeline, law: Law, memory: Memory) -> DataFrame:
    """Adds `__outcome`, `__why` (now for every refused row) and `__missed` (the windows an event came too late for)."""
    known = _with_known(checked, pipeline.source.event_id, memory.ids)
    fresh = F.col(WHY).isNull() & ~F.col(_KNOWN)
    missed = _with_missed(known, pipeline, law, memory, fresh)
    own = _missed_own(pipeline)
    late = fresh & (own > 0) & (own == _belongs(pipeline)) & _every_window_closed(law, pipeline)
    outcome = (
        F.when(F.col(WHY).isNotNull(), QUARANTINED)
        .when(F.col(_KNOWN), DUPLICATE)
        .when(late, LATE)
        .otherwise(ACCEPTED)
    )
    first = _with_copies(missed.withColumn(OUTCOME, outcome), pipeline)
    return first.withColumn(WHY, _reason(pipeline)).drop(_KNOWN)


def plain(checked: DataFrame) -> DataFrame:
    """`judged` where nothing can be late and there are no ids: a row is quarantined or accepted."""
    outcome = F.when(F.col(WHY).isNotNull(), QUARANTINED).otherwise(ACCEPTED)
    return checked.withColumn(OUTCOME, outcome).withColumn(MISSED, F.array().cast(_NO_MISSED))


def admitted_to(accepted: DataFrame, window: str) -> DataFrame:
    """The accepted events that were not late for `window`."""
    return accepted.where(~F.array_contains(F.col(MISSED)["window"], window))


def _with_known(rows: DataFrame, event_id: str | None, ids: DataFrame | None) -> DataFrame:
    if event_id is None or ids is None:
        return rows.withColumn(_KNOWN, F.lit(False))
    known = ids.select(F.col("event_id").alias("__id"), F.lit(True).alias(_KNOWN))
    joined = rows.join(known, F.col(f"`{event_id}`").cast("string") == F.col("__id"), "left").drop(
        "__id"
    )
    return joined.withColumn(_KNOWN, F.coalesce(_KNOWN, F.lit(False)))


def _with_missed(
    rows: DataFrame, pipeline: Pipeline, law: Law, memory: Memory, fresh: Column
) -> DataFrame:
    entries = [_entry(F.col(TIME) < F.lit(c.some_us), c.window, c.some_us) for c in law.cuts]
    for window in pipeline.chained if law.can_be_late else ():
        rows = _with_session_flag(
            rows, window, pipeline.source.key, law, memory.sessions.get(window.name), fresh
        )
        entries.append(_entry(F.col(_flag(window)), window.name, None))
    every = F.filter(F.array(*entries), lambda m: m.isNotNull()) if entries else F.array()
    return rows.withColumn(MISSED, every.cast(_NO_MISSED)).drop(
        *(_flag(s) for s in pipeline.chained)
    )


def _marks(window: Punctuation) -> Column:
    return F.coalesce(F.col(f"`{window.marker}`"), F.lit(False))


def _missed_own(pipeline: Pipeline) -> Column:
    """How many windows a row missed of those that hold it; a late marker misses the one that it would have ended, which doesn't."""
    named = F.col(MISSED)["window"]
    ends = [
        (_marks(w) & F.array_contains(named, w.name)).cast("int")
        for w in pipeline.windows
        if isinstance(w, Punctuation)
    ]
    return reduce(lambda x, y: x - y, ends, F.size(MISSED))


def _belongs(pipeline: Pipeline) -> Column:
    """How many of the pipeline's outputs a row has a window in."""
    ends = [_marks(w).cast("int") for w in pipeline.windows if isinstance(w, Punctuation)]
    return reduce(lambda x, y: x - y, ends, F.lit(len(pipeline.windows)))


def _entry(missed: Column, window: str, until_us: int | None) -> Column:
    until = (
        F.lit(None).cast("timestamp_ltz")
        if until_us is None
        else F.timestamp_micros(F.lit(until_us))
    )
    return F.when(missed, F.struct(F.lit(window).alias("window"), until.alias("until")))


def _every_window_closed(law: Law, pipeline: Pipeline) -> Column:
    """True where the event's last window is late in every output that has a cut (sessions have one window for each event)."""
    closed = F.lit(True)
    for cut in law.cuts:
        found = pipeline.window(cut.window)
        past = F.col(TIME) < F.lit(cut.all_us)
        closed = closed & (past | _marks(found) if isinstance(found, Punctuation) else past)
    return closed


def _flag(session: Chained) -> str:
    return f"__late_{session.name}"


def _with_session_flag(
    rows: DataFrame,
    session: Chained,
    keys: Sequence[str],
    law: Law,
    stored: DataFrame | None,
    fresh: Column,
) -> DataFrame:
    """Marks the events that touch a final session or whose chain has closed beyond the allowed lateness."""
    late = late_points(rows.where(fresh).select(*keys, TIME), stored, keys, session.gap_us, law)
    marked = late.select(*keys, TIME, F.lit(True).alias(_flag(session)))
    return rows.join(marked, [*keys, TIME], "left").withColumn(
        _flag(session), F.coalesce(_flag(session), F.lit(False))
    )


def late_points(
    points: DataFrame, stored: DataFrame | None, keys: Sequence[str], gap_us: int, law: Law
) -> DataFrame:
    """The (key, t) that are late for sessions of `gap_us`. points[keys, t] x stored[keys, window_start, window_end, last_event]."""
    closed_us = (law.watermark_us or 0) - (law.lateness_us or 0)
    suspects = (
        points.where(F.col(TIME) + F.lit(gap_us) <= F.lit(closed_us)).select(*keys).distinct()
    )
    pool = points.join(suspects, [*keys], "left_semi").distinct()
    if stored is None:
        return _late_chains(pool, pool.limit(0), keys, gap_us, closed_us)
    near = stored.join(suspects, [*keys], "left_semi")
    final = F.unix_micros(LAST) + F.lit(2 * gap_us) <= F.lit(closed_us)
    walled = _touching(pool, near.where(final), keys, gap_us)
    free = pool.join(walled, [*keys, TIME], "left_anti")
    return walled.unionByName(_late_chains(free, near.where(~final), keys, gap_us, closed_us))


def _touching(points: DataFrame, final: DataFrame, keys: Sequence[str], gap_us: int) -> DataFrame:
    reach = F.unix_micros(LAST) + F.lit(gap_us)
    bounds = final.select(
        *keys, (F.unix_micros(START) - F.lit(gap_us)).alias("__low"), reach.alias("__high")
    )
    same = [F.col(f"p.`{k}`") == F.col(f"f.`{k}`") for k in keys]
    return points.alias("p").join(
        bounds.alias("f"),
        [*same, F.col(TIME).between(F.col("__low"), F.col("__high"))],
        "left_semi",
    )


def _late_chains(
    points: DataFrame, open_sessions: DataFrame, keys: Sequence[str], gap_us: int, closed_us: int
) -> DataFrame:
    at = F.timestamp_micros(TIME)
    spans = points.select(*keys, at.alias(FIRST), at.alias(LAST), TIME)
    if START in open_sessions.columns:
        known = open_sessions.select(
            *keys, F.col(START).alias(FIRST), LAST, F.lit(None).cast("bigint").alias(TIME)
        )
        spans = spans.unionByName(known)
    chains = chained(spans, keys, gap_us)
    last = F.max(F.unix_micros(LAST)).over(Window.partitionBy(*keys, "__chain"))
    ended = chains.withColumn("__ended", last + F.lit(gap_us) <= F.lit(closed_us))
    return ended.where(F.col("__ended") & F.col(TIME).isNotNull()).select(*keys, TIME)


def copies_order(pipeline: Pipeline) -> list[Column]:
    """The order of events that have one id; their digests tell apart what is equal in all else."""
    return [F.col(TIME), *(F.col(f"`{c}`") for c in pipeline.source.order_by), F.col(DIGEST)]


def _with_copies(rows: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Of the copies of one id the first non-late one stays accepted, the others become duplicates."""
    event_id = pipeline.source.event_id
    if event_id is None:
        return rows
    judged_here = F.col(OUTCOME).isin(ACCEPTED, LATE) & F.col(f"`{event_id}`").isNotNull()
    ranked = Window.partitionBy(F.col(f"`{event_id}`").cast("string")).orderBy(
        OUTCOME, *copies_order(pipeline)
    )
    copies = rows.where(judged_here)
    placed = copies.withColumn("__place", F.row_number().over(ranked)).withColumn(
        "__best", F.first(OUTCOME).over(ranked)
    )
    second = (F.col("__best") == ACCEPTED) & (F.col("__place") > 1)
    resolved = placed.withColumn(OUTCOME, F.when(second, DUPLICATE).otherwise(F.col(OUTCOME))).drop(
        "__place", "__best"
    )
    return resolved.unionByName(rows.where(~judged_here | F.col(OUTCOME).isNull()))


def _reason(pipeline: Pipeline) -> Column:
    event_id = pipeline.source.event_id or ""
    return (
        F.when(F.col(WHY).isNotNull(), F.col(WHY))
        .when(F.col(OUTCOME) == DUPLICATE, f"{event_id} was accepted before")
        .when(F.col(OUTCOME) == LATE, "every window it belongs to had closed")
        .when(F.size(MISSED) > 0, "some of its windows had closed")
    )
