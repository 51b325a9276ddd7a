"""One chunk of a backfill: what counts in [start, end) is read anew from the source, its state replaced, its windows recomputed.

    source at a version -> counted again -> state of the range swapped -> windows that overlap -> outputs

Every write replaces a range or is a MERGE of what differs, so a chunk that was killed is simply done again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.admission import Batch, digested, timed
from jobs.contribution import named
from windowing import delta
from windowing.admit.again import INSIDE, LIVE, accepted_again, with_history
from windowing.admit.frame import PARTIAL
from windowing.admit.table import REFUSED, kept_name
from windowing.columns import DIGEST, END, FIRST, JUDGED, LAST, MISSED, PANE, ROWS, START, TOUCHED, WHY
from windowing.columns import T as TIME
from windowing.grid.zone import moment
from windowing.merge import frame as merges
from windowing.merge import table as outputs
from windowing.panes import frame as partials
from windowing.panes import table as state
from windowing.panes.algebra import Algebra
from windowing.panes.frame import Range
from windowing.panes.rule import Family, families, pane_end, pane_start, span
from windowing.spec.pipeline import Pipeline, Session, Sliding, Tumbling
from windowing.windows import aligned, session


@dataclass(frozen=True)
class Chunk:
    """Event times [start, end), microseconds, read from the source at `version`."""

    start_us: int
    end_us: int
    version: int

    def holds(self) -> Column:
        """True for events of the chunk."""
        return (F.col(TIME) >= F.lit(self.start_us)) & (F.col(TIME) < F.lit(self.end_us))


def widened(family: Family, chunk: Chunk) -> Chunk:
    """The chunk, widened to whole panes of `family`."""
    return Chunk(pane_start(family, chunk.start_us), pane_end(family, chunk.end_us - 1), chunk.version)


def counted(batch: Batch, chunk: Chunk) -> DataFrame:
    """Every event that counts in the chunk and in what its panes and sessions reach beyond it.

    -> source rows + [t, digest, inside, live, missed, judged_by]
    """
    spans = [near_sessions(batch, w, chunk) for w in batch.pipeline.sessions]
    low, high = _extent(batch.pipeline, chunk, spans)
    rows = timed(batch, digested(delta.read(batch.spark, batch.pipeline.source.table, chunk.version)))
    rows = rows.where(F.col(WHY).isNull() & (F.col(TIME) >= F.lit(low)) & (F.col(TIME) < F.lit(high))).withColumn(INSIDE, chunk.holds())
    history = with_history(rows, _refused(batch), _partial(batch))
    return accepted_again(history, _elsewhere(batch, chunk), batch.pipeline)


def near_sessions(batch: Batch, window: Session, chunk: Chunk) -> DataFrame:
    """The stored sessions that have an event time in the chunk."""
    stored = delta.read(batch.spark, batch.pipeline.table(window.name))
    return stored.where((F.col(START) < F.lit(moment(chunk.end_us))) & (F.col(LAST) >= F.lit(moment(chunk.start_us))))


def swap_ids(batch: Batch, chunk: Chunk, events: DataFrame) -> None:
    """The ids accepted in the chunk become those of `events`."""
    event_id = batch.pipeline.source.event_id
    if event_id is None:
        return
    name, at = F.col(f"`{event_id}`"), F.timestamp_micros(TIME).alias("event_time")
    ids = events.where(F.col(INSIDE) & name.isNotNull()).select(name.cast("string").alias("event_id"), at, F.col(DIGEST).alias("digest"))
    _replace(batch, state.SEEN, batch.stamp.on(ids), "event_time", chunk)


def resolve(batch: Batch, chunk: Chunk, events: DataFrame, label: str) -> None:
    """Refused rows of the chunk that count now say by which backfill."""
    taken = events.where(F.col(INSIDE)).groupBy(DIGEST).agg(F.count("*").alias("__n"), F.count_if(LIVE).alias("__before"))
    for table in REFUSED:
        if not delta.exists(batch.spark, batch.pipeline.table(table)):
            continue
        rows = _with_digest(batch, _between(delta.read(batch.spark, batch.pipeline.table(table)), "event_time", chunk))
        nth = F.row_number().over(Window.partitionBy(DIGEST, "outcome", F.col("resolved_by").isNull()).orderBy("run"))
        room = F.when(F.col("outcome") == PARTIAL, F.col("__n")).otherwise(F.col("__n") - F.col("__before"))
        due = F.col("resolved_by").isNull() & (F.col("__nth") <= F.coalesce(room, F.lit(0)))
        marked = rows.withColumn("__nth", nth).join(taken, DIGEST, "left")
        marked = marked.withColumn("resolved_by", F.when(due, F.lit(label)).otherwise(F.col("resolved_by")))
        _replace(batch, table, marked.drop("__nth", "__n", "__before", DIGEST).localCheckpoint(eager=True), "event_time", chunk)


def repair_family(batch: Batch, family: Family, chunk: Chunk, events: DataFrame) -> dict[str, int]:
    """Swaps the panes of the chunk and recomputes every window that overlaps them."""
    wide, source = widened(family, chunk), delta.read(batch.spark, batch.pipeline.source.table, chunk.version).schema
    algebras = partials.algebras(batch.pipeline, family.aggregates, source)
    within = Range(wide.start_us, wide.end_us)
    inside = events.where(wide.holds())
    kept = partials.parts(algebras.values())
    fresh = partials.panes(inside, (*batch.keys, JUDGED), family, kept, within)
    stamped = batch.stamp.on(fresh.withColumnRenamed(JUDGED, "__judged")).withColumn(JUDGED, F.col("__judged")).drop("__judged")
    _replace(batch, family.table, stamped, PANE, wide)
    counts: dict[str, int] = {}
    for window in family.windows:
        own = {a.name: algebras[a.name] for a in window.aggregates}
        counts |= _recompute(batch, window, family, wide, own)
    return counts


def accepted_in(batch: Batch, chunk: Chunk) -> int:
    """How many events of the chunk (widened to panes) the state holds."""
    held = 0
    for family in families(batch.pipeline)[:1]:
        panes = _between(delta.read(batch.spark, batch.pipeline.table(family.table)), PANE, widened(family, chunk))
        held = int(panes.agg(F.coalesce(F.sum(ROWS), F.lit(0))).collect()[0][0])
    return held


def partial_in(batch: Batch, chunk: Chunk) -> dict[str, int]:
    """How many events of the chunk missed each window and were not taken in since."""
    if not delta.exists(batch.spark, batch.pipeline.table("_late")):
        return {}
    late = _between(delta.read(batch.spark, batch.pipeline.table("_late")), "event_time", chunk)
    open_rows = late.where((F.col("outcome") == PARTIAL) & F.col("resolved_by").isNull())
    names = open_rows.select(F.explode("missed.window").alias("window")).groupBy("window").count()
    return {f"partial.{row['window']}": -int(row["count"]) for row in names.collect()}


def repair_sessions(batch: Batch, window: Session, chunk: Chunk, events: DataFrame) -> dict[str, int]:
    """Swaps the fragments of every session with an event time in the chunk and recomputes what they and the new ones touch."""
    source = delta.read(batch.spark, batch.pipeline.source.table, chunk.version).schema
    algebras = partials.algebras(batch.pipeline, window.aggregates, source)
    kept = partials.parts(algebras.values())
    spans = near_sessions(batch, window, chunk).localCheckpoint(eager=True)
    fresh = partials.fragments(_members(events, spans, window, batch.keys), batch.keys, window.gap_us, kept).localCheckpoint(eager=True)
    stored = delta.read(batch.spark, batch.pipeline.table(window.name))
    joined = session.touched(stored, fresh, batch.keys, window.gap_us).join(spans, [*batch.keys, START], "left_anti")
    joined = joined.localCheckpoint(eager=True)
    fragments = delta.read(batch.spark, batch.pipeline.table(state.fragments_table(window)))
    others = session.members(fragments, joined, batch.keys).select(*fresh.columns).localCheckpoint(eager=True)
    _swap_fragments(batch, window, _leaving(batch, fragments, spans, chunk), fresh)
    marked = fresh.unionByName(others).withColumn(TOUCHED, F.lit(1).cast("bigint"))
    new = merges.values(session.windows(marked, batch.keys, window.gap_us, kept), window, batch.keys, algebras)
    changed = merges.replacements(new, spans.unionByName(joined.select(*spans.columns)), window, batch.keys)
    return named(window, outputs.write(batch.spark, batch.pipeline, window, changed, batch.stamp.run))


def _members(events: DataFrame, spans: DataFrame, window: Session, keys: Iterable[str]) -> DataFrame:
    """The events of the chunk and those of the sessions it reaches into, as far as they were admitted to `window`."""
    bounds = spans.select(*keys, F.unix_micros(START).alias("__low"), F.unix_micros(LAST).alias("__high"))
    same = [F.col(f"e.`{k}`") == F.col(f"s.`{k}`") for k in keys]
    near = F.col(TIME).between(F.col("__low"), F.col("__high"))
    outside = events.where(~F.col(INSIDE) & ~F.coalesce(F.array_contains(MISSED, window.name), F.lit(False)))
    return events.where(INSIDE).unionByName(outside.alias("e").join(bounds.alias("s"), [*same, near], "left_semi"))


def _leaving(batch: Batch, fragments: DataFrame, spans: DataFrame, chunk: Chunk) -> DataFrame:
    """The fragments that the chunk's new ones replace: those of `spans`, and what a try that was killed had put into the chunk."""
    over = (F.col(FIRST) < F.lit(moment(chunk.end_us))) & (F.col(LAST) >= F.lit(moment(chunk.start_us)))
    return session.members(fragments, spans, batch.keys).unionByName(fragments.where(over)).distinct()


def _swap_fragments(batch: Batch, window: Session, old: DataFrame, new: DataFrame) -> None:
    """One commit: the fragments `old` go, `new` come."""
    path = batch.pipeline.table(state.fragments_table(window))
    stamped = batch.stamp.on(new)
    leaving = old.select(*stamped.columns).withColumn("__op", F.lit("D"))
    source = leaving.unionByName(stamped.withColumn("__op", F.lit("I"))).localCheckpoint(eager=True)
    ids = [*batch.keys, FIRST, LAST, "generation", "batch"]
    same = " and ".join([*(f"t.`{c}` = s.`{c}`" for c in ids), "s.__op = 'D'"])
    values: dict[str, str | Column] = {f"`{c}`": f"s.`{c}`" for c in stamped.columns}
    target = DeltaTable.forPath(batch.spark, path).alias("t")
    target.merge(source.alias("s"), same).whenMatchedDelete().whenNotMatchedInsert("s.__op = 'I'", values).execute()


def _recompute(
    batch: Batch, window: Tumbling | Sliding, family: Family, wide: Chunk, algebras: dict[str, Algebra]
) -> dict[str, int]:
    beyond, kept = span(window), partials.parts(algebras.values())
    reach = Chunk(wide.start_us - beyond, wide.end_us + beyond, wide.version)
    panes = _between(delta.read(batch.spark, batch.pipeline.table(family.table)), PANE, reach)
    lateness = batch.pipeline.watermark.allowed_lateness_us
    touched = panes.withColumn(TOUCHED, F.lit(1).cast("bigint"))
    found = aligned.windows(touched, window, batch.keys, kept, lateness, Range(reach.start_us, reach.end_us))
    over = (F.col(START) < F.lit(moment(wide.end_us))) & (F.col(END) > F.lit(moment(wide.start_us)))
    stored = delta.read(batch.spark, batch.pipeline.table(window.name)).where(over)
    changed = merges.replacements(merges.values(found.where(over), window, batch.keys, algebras), stored, window, batch.keys)
    return named(window, outputs.write(batch.spark, batch.pipeline, window, changed, batch.stamp.run))


def _extent(pipeline: Pipeline, chunk: Chunk, spans: list[DataFrame]) -> tuple[int, int]:
    """The event times [low, high) from which rows are needed."""
    wide = [chunk, *(widened(f, chunk) for f in families(pipeline))]
    lows, highs = [c.start_us for c in wide], [c.end_us for c in wide]
    for rows in spans:
        ends = rows.agg(F.min(F.unix_micros(START)), F.max(F.unix_micros(LAST))).first()
        if ends is not None and ends[0] is not None:
            lows.append(ends[0])
            highs.append(ends[1] + 1)
    return min(lows), max(highs)


def _refused(batch: Batch) -> DataFrame:
    """The digests of rows that were refused and not taken in since, one for each row."""
    found = []
    for table in REFUSED:
        if delta.exists(batch.spark, batch.pipeline.table(table)):
            rows = delta.read(batch.spark, batch.pipeline.table(table)).where(F.col("resolved_by").isNull() & (F.col("outcome") != PARTIAL))
            found.append(_with_digest(batch, rows).select(DIGEST))
    return reduce(DataFrame.unionByName, found) if found else batch.spark.createDataFrame([], f"{DIGEST} bigint")


def _partial(batch: Batch) -> DataFrame:
    """The partly late rows that were not taken in since: [digest, missed, watermark]."""
    if not delta.exists(batch.spark, batch.pipeline.table("_late")):
        return batch.spark.createDataFrame([], f"{DIGEST} bigint, missed array<struct<window:string,until:timestamp>>, watermark timestamp")
    rows = delta.read(batch.spark, batch.pipeline.table("_late")).where((F.col("outcome") == PARTIAL) & F.col("resolved_by").isNull())
    return _with_digest(batch, rows).select(DIGEST, "missed", "watermark")


def _with_digest(batch: Batch, refused: DataFrame) -> DataFrame:
    """Refused rows with the digest that the source row had."""
    schema = delta.read(batch.spark, batch.pipeline.source.table).schema
    names = [kept_name(f.name) for f in schema.fields if f.dataType.typeName() != "map" and kept_name(f.name) in refused.columns]
    return refused.withColumn(DIGEST, F.xxhash64(*(f"`{n}`" for n in names)))


def _elsewhere(batch: Batch, chunk: Chunk) -> DataFrame | None:
    """The ids that were accepted with an event time outside the chunk."""
    if batch.pipeline.source.event_id is None or not delta.exists(batch.spark, batch.pipeline.table(state.SEEN)):
        return None
    seen = delta.read(batch.spark, batch.pipeline.table(state.SEEN))
    at = F.col("event_time")
    return seen.where((at < F.lit(moment(chunk.start_us))) | (at >= F.lit(moment(chunk.end_us)))).select("event_id").distinct()


def _between(rows: DataFrame, column: str, chunk: Chunk) -> DataFrame:
    return rows.where((F.col(column) >= F.lit(moment(chunk.start_us))) & (F.col(column) < F.lit(moment(chunk.end_us))))


def _replace(batch: Batch, table: str, rows: DataFrame, column: str, chunk: Chunk) -> None:
    """One commit: the rows of `table` whose `column` lies in the chunk become `rows`."""
    low, high = (moment(us).isoformat(sep=" ") for us in (chunk.start_us, chunk.end_us))
    where = f"`{column}` >= timestamp'{low}' and `{column}` < timestamp'{high}'"
    rows.write.format("delta").mode("overwrite").option("replaceWhere", where).save(batch.pipeline.table(table))
