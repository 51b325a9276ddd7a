"""Every row read gets one outcome: checked rows -> rows + [outcome, reason, missed].

Admission decides in this order: quarantined, duplicate of an accepted event, late, copy inside the
batch, accepted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windowing.admit.outcomes import ACCEPTED, DUPLICATE, LATE, QUARANTINED
from windowing.admit.rule import Cut
from windowing.columns import DIGEST, FIRST, LAST, MISSED, OUTCOME, START, TIME, WHY
from windowing.rows import are_equal, column_named, is_true
from windowing.spec.description import describe_window
from windowing.spec.kinds import AnySession
from windowing.spec.kinds import Window as EventWindow
from windowing.spec.pipeline import Pipeline
from windowing.windows.session import add_chains

_KNOWN = "__known"
_MISSED_TYPE = "array<struct<window:string,until:timestamp_ltz>>"


@dataclass(frozen=True)
class Memory:
    """What was accepted before.

    `ids` are distinct `event_id`s, or None if nothing was accepted; `sessions` are the stored
    sessions by window.
    """

    ids: DataFrame | None = None
    sessions: Mapping[str, DataFrame] = field(default_factory=dict)


@dataclass(frozen=True)
class Law:
    """What decides lateness: W of the run, the allowed lateness and the cuts that follow from both.

    Nothing is late where W is None.
    """

    watermark_us: int | None
    lateness_us: int | None
    cuts: tuple[Cut, ...] = ()

    @property
    def can_be_late(self) -> bool:
        """False on a first load and with `allowed_lateness: forever`."""
        return self.watermark_us is not None and self.lateness_us is not None


def judge_rows(checked: DataFrame, pipeline: Pipeline, law: Law, memory: Memory) -> DataFrame:
    """Adds `__outcome`, `__why` and `__missed`.

    `__why` is now there for every refused row, and `__missed` has the windows that an event is late
    for. checked[..., __t, __why, __digest] -> checked + [__outcome, __missed].
    """
    with_known = _with_known(checked, pipeline.source.event_id, memory.ids)
    fresh = F.col(WHY).isNull() & ~F.col(_KNOWN)
    with_missed = _with_missed(with_known, pipeline, law, memory, fresh)
    missed_count = _count_missed(pipeline)
    missed_any = missed_count > 0
    missed_all = missed_count == _count_outputs(pipeline)
    late = fresh & missed_any & missed_all & _every_window_closed(law, pipeline)
    outcome = (
        F.when(F.col(WHY).isNotNull(), QUARANTINED)
        .when(F.col(_KNOWN), DUPLICATE)
        .when(late, LATE)
        .otherwise(ACCEPTED)
    )
    decided = _with_copies(with_missed.withColumn(OUTCOME, outcome), pipeline)
    return decided.withColumn(WHY, _explain_outcome(pipeline)).drop(_KNOWN)


def accept_valid_rows(checked: DataFrame) -> DataFrame:
    """`judge_rows` where nothing can be late and there are no ids.

    A row is quarantined or accepted.
    """
    outcome = F.when(F.col(WHY).isNotNull(), QUARANTINED).otherwise(ACCEPTED)
    nothing_missed = F.array().cast(_MISSED_TYPE)
    return checked.withColumn(OUTCOME, outcome).withColumn(MISSED, nothing_missed)


def refuse_copies(copies: DataFrame, pipeline: Pipeline) -> DataFrame:
    """`judge_rows` for valid rows that are known to be copies of accepted events."""
    nothing_missed = F.array().cast(_MISSED_TYPE)
    decided = copies.withColumns({OUTCOME: F.lit(DUPLICATE), MISSED: nothing_missed})
    return decided.withColumn(WHY, _explain_outcome(pipeline))


def admitted_to(accepted: DataFrame, window: str) -> DataFrame:
    """The accepted events that were not late for `window`."""
    return accepted.where(~F.array_contains(F.col(MISSED)["window"], window))


def _with_known(rows: DataFrame, event_id: str | None, ids: DataFrame | None) -> DataFrame:
    """Adds `__known`: whether the row's id was accepted before. A null id never was."""
    if event_id is None or ids is None:
        return rows.withColumn(_KNOWN, F.lit(False))
    known = ids.select(F.col("event_id").alias("__id"), F.lit(True).alias(_KNOWN))
    same_id = column_named(event_id).cast("string") == F.col("__id")
    joined = rows.join(known, same_id, "left").drop("__id")
    return joined.withColumn(_KNOWN, is_true(F.col(_KNOWN)))


def _with_missed(
    rows: DataFrame, pipeline: Pipeline, law: Law, memory: Memory, fresh: Column
) -> DataFrame:
    """Adds `__missed`: the windows that a row is late for; sessions only if it is `fresh`."""
    entries = []
    for cut in law.cuts:
        is_late = F.col(TIME) < F.lit(cut.some_us)
        entries.append(_missed_entry(is_late, cut.window, cut.some_us))
    if law.can_be_late:
        for window in pipeline.chained:
            stored = memory.sessions.get(window.name)
            rows = _with_session_flag(rows, window, pipeline.source.key, law, stored, fresh)
            entries.append(_missed_entry(F.col(_session_flag(window)), window.name, None))
    missed = F.array()
    if entries:
        # An entry is null where the row is not late for its window.
        missed = F.filter(F.array(*entries), lambda entry: entry.isNotNull())
    flags = [_session_flag(session) for session in pipeline.chained]
    return rows.withColumn(MISSED, missed.cast(_MISSED_TYPE)).drop(*flags)


def _is_marker(window: EventWindow) -> Column | None:
    """True for rows that end a window and are in none; None for kinds that have no such rows."""
    marker = describe_window(window).marker
    if marker is None:
        return None
    return is_true(column_named(marker.name))


def _count_missed(pipeline: Pipeline) -> Column:
    """How many windows a row is late for, of those that would contain it.

    A late marker is also late for the window that it would have ended, but which excludes it.
    """
    named = F.col(MISSED)["window"]
    count = F.size(MISSED)
    for window in pipeline.windows:
        marker = _is_marker(window)
        if marker is not None:
            ended = marker & F.array_contains(named, window.name)
            count = count - ended.cast("int")
    return count


def _count_outputs(pipeline: Pipeline) -> Column:
    """How many of the pipeline's outputs have a window that contains the row."""
    count = F.lit(len(pipeline.windows))
    for window in pipeline.windows:
        marker = _is_marker(window)
        if marker is not None:
            count = count - marker.cast("int")
    return count


def _missed_entry(missed: Column, window: str, until_us: int | None) -> Column:
    if until_us is None:
        until = F.lit(None).cast("timestamp_ltz")
    else:
        until = F.timestamp_micros(F.lit(until_us))
    return F.when(missed, F.struct(F.lit(window).alias("window"), until.alias("until")))


def _every_window_closed(law: Law, pipeline: Pipeline) -> Column:
    """True where the event is late for its last window in every output that has a cut.

    Sessions have no cut and one window for each event.
    """
    closed = F.lit(True)
    for cut in law.cuts:
        window = pipeline.window(cut.window)
        past = F.col(TIME) < F.lit(cut.all_us)
        marker = _is_marker(window)
        if marker is not None:
            past = past | marker
        closed = closed & past
    return closed


def _session_flag(session: AnySession) -> str:
    return f"__late_{session.name}"


def _with_session_flag(
    rows: DataFrame,
    session: AnySession,
    keys: Sequence[str],
    law: Law,
    stored: DataFrame | None,
    fresh: Column,
) -> DataFrame:
    """Marks the events that are late for `session`.

    They touch a final session, or their chain closed more than the allowed lateness ago.
    """
    flag = _session_flag(session)
    points = rows.where(fresh).select(*keys, TIME)
    late = late_points(points, stored, keys, session.gap_us, law)
    marked = late.select(*keys, TIME, F.lit(True).alias(flag))
    joined = rows.join(marked, [*keys, TIME], "left")
    return joined.withColumn(flag, is_true(F.col(flag)))


def late_points(
    points: DataFrame, stored: DataFrame | None, keys: Sequence[str], gap_us: int, law: Law
) -> DataFrame:
    """The (key, t) that are late for sessions of `gap_us`.

    points[keys, t] x stored[keys, window_start, window_end, last_event] -> [keys, t].
    """
    closed_us = (law.watermark_us or 0) - (law.lateness_us or 0)
    # Only keys with a point old enough are read further, because stored sessions can be many.
    old = points.where(F.col(TIME) + F.lit(gap_us) <= F.lit(closed_us))
    suspects = old.select(*keys).distinct()
    pool = points.join(suspects, [*keys], "left_semi").distinct()
    if stored is None:
        return _late_chains(pool, pool.limit(0), keys, gap_us, closed_us)
    near = stored.join(suspects, [*keys], "left_semi")
    final = F.unix_micros(LAST) + F.lit(2 * gap_us) <= F.lit(closed_us)
    touching = _touching_points(pool, near.where(final), keys, gap_us)
    others = pool.join(touching, [*keys, TIME], "left_anti")
    late = _late_chains(others, near.where(~final), keys, gap_us, closed_us)
    return touching.unionByName(late)


def _touching_points(
    points: DataFrame, final: DataFrame, keys: Sequence[str], gap_us: int
) -> DataFrame:
    """The points within the session gap of a final session, both ends included."""
    low = F.unix_micros(START) - F.lit(gap_us)
    high = F.unix_micros(LAST) + F.lit(gap_us)
    bounds = final.select(*keys, low.alias("__low"), high.alias("__high"))
    same_key = are_equal("p", "f", keys)
    within = F.col(TIME).between(F.col("__low"), F.col("__high"))
    return points.alias("p").join(bounds.alias("f"), [*same_key, within], "left_semi")


def _late_chains(
    points: DataFrame, open_sessions: DataFrame, keys: Sequence[str], gap_us: int, closed_us: int
) -> DataFrame:
    """The points whose chain, with the open sessions that it joins, ended by `closed_us`."""
    at = F.timestamp_micros(TIME)
    spans = points.select(*keys, at.alias(FIRST), at.alias(LAST), TIME)
    if START in open_sessions.columns:
        no_time = F.lit(None).cast("bigint").alias(TIME)
        known = open_sessions.select(*keys, F.col(START).alias(FIRST), LAST, no_time)
        spans = spans.unionByName(known)
    chains = add_chains(spans, keys, gap_us)
    last = F.max(F.unix_micros(LAST)).over(Window.partitionBy(*keys, "__chain"))
    ended = chains.withColumn("__ended", last + F.lit(gap_us) <= F.lit(closed_us))
    return ended.where(F.col("__ended") & F.col(TIME).isNotNull()).select(*keys, TIME)


def copies_order(pipeline: Pipeline) -> list[Column]:
    """The order of events that have one id; their digests order what is equal in all else."""
    order_by = [column_named(c) for c in pipeline.source.order_by]
    return [F.col(TIME), *order_by, F.col(DIGEST)]


def _with_copies(rows: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Of the copies of one id the first that is not late stays accepted, others become duplicates.

    Where all copies are late, they stay late.
    """
    event_id = pipeline.source.event_id
    if event_id is None:
        return rows
    has_id = column_named(event_id).isNotNull()
    may_be_copy = F.col(OUTCOME).isin(ACCEPTED, LATE) & has_id
    # "accepted" sorts before "late", so the first outcome of an id says whether any is accepted.
    copies_of_id = Window.partitionBy(column_named(event_id).cast("string"))
    ranked = copies_of_id.orderBy(OUTCOME, *copies_order(pipeline))
    copies = rows.where(may_be_copy).withColumn("__place", F.row_number().over(ranked))
    copies = copies.withColumn("__best", F.first(OUTCOME).over(ranked))
    follows_accepted = (F.col("__best") == ACCEPTED) & (F.col("__place") > 1)
    outcome = F.when(follows_accepted, DUPLICATE).otherwise(F.col(OUTCOME))
    decided = copies.withColumn(OUTCOME, outcome).drop("__place", "__best")
    return decided.unionByName(rows.where(~may_be_copy | F.col(OUTCOME).isNull()))


def _explain_outcome(pipeline: Pipeline) -> Column:
    """The reason why a row is refused or partly late; null for other accepted rows."""
    event_id = pipeline.source.event_id or ""
    return (
        F.when(F.col(WHY).isNotNull(), F.col(WHY))
        .when(F.col(OUTCOME) == DUPLICATE, f"{event_id} was accepted before")
        .when(F.col(OUTCOME) == LATE, "every window it belongs to had closed")
        .when(F.size(MISSED) > 0, "some of its windows had closed")
    )
