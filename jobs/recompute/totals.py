"""One chunk of a backfill, its events: what counts in [start, end) is read anew from the source, and refused rows that count now say so.

    source at a version -> counted again -> ids swapped, refused rows resolved; state and windows follow in rebuild.py
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.admission import Batch, timed
from jobs.history import elsewhere, known, partly_late, refused_digests, uncopied
from windowing import delta
from windowing.admit.again import INSIDE, LIVE, accepted_again, with_history
from windowing.admit.digest import with_row_digest
from windowing.admit.frame import PARTIAL
from windowing.admit.table import REFUSED
from windowing.columns import DIGEST, LAST, PANE, ROWS, START, WHY
from windowing.columns import T as TIME
from windowing.crash import crashpoint
from windowing.grid.frame import instant
from windowing.grid.zone import moment
from windowing.merge.rule import complete, output
from windowing.panes import table as state
from windowing.panes.frame import Range
from windowing.panes.rule import Family, families, pane_end, pane_start
from windowing.source import table as source
from windowing.spec.kinds import Global, Session
from windowing.windows import aligned


@dataclass(frozen=True)
class Chunk:
    """Event times [start, end), microseconds, read from the source at `version`."""

    start_us: int
    end_us: int
    version: int
    batch: int | None = None
    """The batch whose changes of the source ask for it; None where someone does."""
    asked: tuple[int, int] | None = None
    """The whole range that someone asked for, of which this is a part."""

    def holds(self) -> Column:
        """True for events of the chunk."""
        return (F.col(TIME) >= F.lit(self.start_us)) & (F.col(TIME) < F.lit(self.end_us))


class Everything(Chunk):
    """All events there are: state is overwritten whole, columns included."""


def widened(family: Family, chunk: Chunk) -> Chunk:
    """The chunk, widened to whole panes of `family`."""
    return type(chunk)(pane_start(family, chunk.start_us), pane_end(family, chunk.end_us - 1), chunk.version)


def reaching(batch: Batch, family: Family, chunk: Chunk) -> Chunk:
    """The chunk, widened to all panes of the windows that overlap it where state may be gone, which then comes from the source."""
    wide = widened(family, chunk)
    if not batch.worn:
        return wide
    reaches = [aligned.reach(w, Range(wide.start_us, wide.end_us)) for w in family.windows if not isinstance(w, Global)]
    low, high = min([wide.start_us, *(r.low_us for r in reaches)]), max([wide.end_us, *(r.high_us for r in reaches)])
    return widened(family, type(chunk)(low, high, chunk.version))


def nearby(batch: Batch, chunk: Chunk, low_us: int, high_us: int) -> DataFrame:
    """Every row of the source that can count, with an event time from `low_us` to before `high_us`.

    -> source rows + [t, why (null), digest, inside]
    """
    rows = source.read(batch.spark, batch.pipeline, chunk.version)
    digested = with_row_digest(rows, source.earlier_types(batch.spark, batch.pipeline))
    held = timed(batch, digested).where(F.col(WHY).isNull() & (F.col(TIME) >= F.lit(low_us)) & (F.col(TIME) < F.lit(high_us)))
    return held.withColumn(INSIDE, chunk.holds())


def counted(batch: Batch, chunk: Chunk, rows: DataFrame, disputed: Sequence[tuple[int, int]] = ()) -> DataFrame:
    """Every event that counts in the chunk and in what its panes and sessions reach beyond it, of the `nearby` rows.

    An id that was accepted within a `disputed` range [from, to), microseconds, may be gone from there: the source has changed it.

    -> source rows + [t, digest, inside, live, missed, judged_by]
    """
    history = uncopied(batch, with_history(rows, refused_digests(batch), partly_late(batch)))
    events = accepted_again(history, elsewhere(batch, [(chunk.start_us, chunk.end_us), *disputed]), batch.pipeline)
    return events.where(INSIDE).unionByName(known(batch, events.where(~F.col(INSIDE))))


def near_sessions(batch: Batch, window: Session, chunk: Chunk) -> DataFrame:
    """The stored sessions that have an event time in the chunk."""
    stored = delta.read(batch.spark, complete(batch.pipeline, window).path)
    return stored.where((F.col(START) < instant(chunk.end_us)) & (F.col(LAST) >= instant(chunk.start_us)))


def swap_ids(batch: Batch, chunk: Chunk, events: DataFrame) -> None:
    """The ids accepted in the chunk become those of `events`."""
    event_id = batch.pipeline.source.event_id
    if event_id is None:
        return
    name, at = F.col(f"`{event_id}`"), F.timestamp_micros(TIME).alias("event_time")
    ids = events.where(F.col(INSIDE) & name.isNotNull()).select(name.cast("string").alias("event_id"), at, F.col(DIGEST).alias("digest"))
    replace(batch, state.SEEN, batch.stamp.on(ids), "event_time", chunk)


def accepted_before(batch: Batch, chunk: Chunk, events: DataFrame) -> Mapping[str, int]:
    """How many of the events that the chunk is compared by were accepted before: as panes say or, where they may be gone, events.

    Those of keys that no output shows were erased.
    """
    held_now = accepted_in(batch, chunk)
    if not batch.worn or (chunk.batch is not None and held_now):
        return {"before": held_now}
    outputs = [delta.read(batch.spark, output(batch.pipeline, w).path).select(*batch.keys) for w in batch.pipeline.windows]
    shown = reduce(DataFrame.unionByName, outputs).distinct()
    return {"before": events.where(F.col(INSIDE) & F.col(LIVE)).join(shown, list(batch.keys), "left_semi").count(), "by_events": 1}


def accepted_since(batch: Batch, chunk: Chunk, events: DataFrame, before: Mapping[str, int]) -> int:
    """How many more than `before` count once the chunk is repaired."""
    now = events.where(INSIDE).count() if "by_events" in before else accepted_in(batch, chunk)
    return now - before.get("before", 0)


def accepted_in(batch: Batch, chunk: Chunk) -> int:
    """How many events of the chunk (widened to panes) the state holds; where only sessions do, all there are."""
    if not _any(batch):
        return 0
    for family in families(batch.pipeline)[:1]:
        return _summed(between(delta.read(batch.spark, batch.pipeline.table(family.table)), PANE, widened(family, chunk)))
    if batch.pipeline.ordered:
        return between(delta.read(batch.spark, batch.pipeline.table(state.EVENTS)), "event_time", chunk).count()
    return held(batch)


def _any(batch: Batch) -> bool:
    """Whether anything was ever accepted."""
    tables = [*(f.table for f in families(batch.pipeline)), *map(state.fragments_table, batch.pipeline.sessions), state.EVENTS]
    return any(delta.exists(batch.spark, batch.pipeline.table(table)) for table in tables)


def held(batch: Batch) -> int:
    """How many events count; those that came too late for a session window are not in its fragments."""
    for family in families(batch.pipeline)[:1]:
        if delta.exists(batch.spark, batch.pipeline.table(family.table)):
            return _summed(delta.read(batch.spark, batch.pipeline.table(family.table)))
    for window in batch.pipeline.sessions[:1]:
        if delta.exists(batch.spark, path := batch.pipeline.table(state.fragments_table(window))):
            return _summed(delta.read(batch.spark, path)) + still_partial(batch).get(window.name, 0)
    events = batch.pipeline.table(state.EVENTS)
    return delta.read(batch.spark, events).count() if delta.exists(batch.spark, events) else 0


def _summed(partials: DataFrame) -> int:
    return int(partials.agg(F.coalesce(F.sum(ROWS), F.lit(0))).collect()[0][0])


def partial_in(batch: Batch, chunk: Chunk) -> dict[str, int]:
    """How many events of the chunk missed each window and were not taken in since, as the ledger counts them back."""
    found = still_partial(batch, lambda late: between(late, "event_time", chunk))
    return {f"partial.{name}": -n for name, n in found.items()}


def still_partial(batch: Batch, of: Callable[[DataFrame], DataFrame] = lambda late: late) -> dict[str, int]:
    """By window how many events missed it and were not taken in since, among the rows that `of` leaves of `_late`."""
    if not delta.exists(batch.spark, batch.pipeline.table("_late")):
        return {}
    late = of(delta.read(batch.spark, batch.pipeline.table("_late")))
    open_rows = late.where((F.col("outcome") == PARTIAL) & F.col("resolved_by").isNull())
    names = open_rows.select(F.explode("missed.window").alias("window")).groupBy("window").count()
    return {str(row["window"]): int(row["count"]) for row in names.collect()}


def extent(batch: Batch, chunk: Chunk) -> tuple[int, int]:
    """The event times [low, high) from which rows are needed: the chunk, its panes and its sessions."""
    wide = [chunk, *(reaching(batch, f, chunk) for f in families(batch.pipeline))]
    lows, highs = [c.start_us for c in wide], [c.end_us for c in wide]
    for window in batch.pipeline.sessions:
        ends = near_sessions(batch, window, chunk).agg(F.min(F.unix_micros(START)), F.max(F.unix_micros(LAST))).first()
        if ends is not None and ends[0] is not None:
            lows.append(ends[0])
            highs.append(ends[1] + 1)
    return min(lows), max(highs)


def refused_after(batch: Batch, run: int, chunk: Chunk) -> bool:
    """Whether a run after `run` refused a row with an event time in the chunk."""
    there = [table for table in REFUSED if delta.exists(batch.spark, batch.pipeline.table(table))]
    return any(
        not between(delta.read(batch.spark, batch.pipeline.table(table)), "event_time", chunk).where(F.col("run") > run).isEmpty()
        for table in there
    )


def between(rows: DataFrame, column: str, chunk: Chunk) -> DataFrame:
    """The rows whose `column` lies in the chunk."""
    return rows.where((F.col(column) >= instant(chunk.start_us)) & (F.col(column) < instant(chunk.end_us)))


def replace(batch: Batch, table: str, rows: DataFrame, column: str, chunk: Chunk) -> None:
    """One commit: the rows of `table` whose `column` lies in the chunk become `rows`."""
    writer, path = rows.write.format("delta").mode("overwrite"), batch.pipeline.table(table)
    if isinstance(chunk, Everything):
        delta.widen_names(batch.spark, path, rows.schema)
        writer.option("overwriteSchema", "true").options(**delta.properties(rows.schema)).save(path)
    else:
        delta.create(batch.spark, path, rows.schema, delta.properties(rows.schema))
        low, high = (moment(us).isoformat(sep=" ") for us in (chunk.start_us, chunk.end_us))
        writer.option("replaceWhere", f"`{column}` >= timestamp_ltz'{low}' and `{column}` < timestamp_ltz'{high}'").save(path)
    crashpoint("state.swapped")
