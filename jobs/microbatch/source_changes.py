"""A source that changes its past: the event times of rows that were updated or deleted.

They are read from its change feed. A run that follows rewrites compares the source before and after
them.

updates, deletes -> few ranges of event time, recorded with the batch
-> a backfill of each after the run
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from json import dumps

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.foreign_errors.source_errors import lost_version_explained
from jobs.microbatch.admission import add_event_time
from jobs.microbatch.context import RunContext
from windowing.admit.digest import with_row_digest
from windowing.admit.erased import without_erased
from windowing.columns import DIGEST, TIME, kept_name, quoted
from windowing.grid.frame import between, instant
from windowing.grid.range import Range, split_ranges
from windowing.grid.zone import FIRST_US, LAST_US
from windowing.ledger.rule import LedgerExcerpt
from windowing.panes.rule import SEEN
from windowing.rows import column_named
from windowing.source import frame as source
from windowing.source.rewrites import cover_rewrites
from windowing.source.rule import CHANGE, FEED, merge_ranges, unsettled_ranges
from windowing.source.table import earlier_types, list_rewrites
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta
from windowing.storage.pinned_rows import pin_rows

_HOUR_US = 3_600_000_000
_ROW, _WEIGHT = "__row", "__weight"


@dataclass(frozen=True)
class Following:
    """How a run follows commits that removed rows of the source, which is otherwise refused.

    It passes over them and reprocesses the event times that they touched: those `within` a range,
    or all.
    """

    within: Range | None = None


@dataclass(frozen=True)
class Touched:
    """`rows` that commits removed or added otherwise than by appending, as the source stores them.

    An updated row is there as it was and as it is.
    """

    rows: DataFrame
    count: int


def note_of(batch: RunContext, rows: DataFrame, past: LedgerExcerpt) -> str | None:
    """The ranges to reprocess for the updates and deletes of a batch, as JSON for the ledger.

    Each range is [low, high) in microseconds; None where nothing was updated or deleted.
    """
    if CHANGE not in rows.columns:
        if not unsettled_ranges(past):
            return None
        # An id that is appended may be one that was accepted where the source has changed since.
        rows = rows.withColumn(CHANGE, F.lit("insert"))
    changed = _find_changed_ranges(batch, rows, past)
    return dumps({"ranges": _as_json(changed)}) if changed else None


def note_of_touched(
    batch: RunContext,
    appended: DataFrame,
    touched: Touched,
    past: LedgerExcerpt,
    following: Following,
) -> str:
    """The same for rows that commits touched, and which ranges are left out.

    There are no ranges where no row has an event time.
    """
    changed = touched.rows.withColumn(CHANGE, F.lit("delete"))
    feed = changed.unionByName(
        appended.withColumn(CHANGE, F.lit("insert")), allowMissingColumns=True
    )
    ranges = _find_changed_ranges(batch, feed, past)
    kept, left_out = split_ranges(ranges, following.within)
    note = {"ranges": _as_json(kept), "left_out": _as_json(left_out), "rows": touched.count}
    return dumps(note)


def _as_json(ranges: Sequence[Range]) -> list[list[int]]:
    return [[times.low_us, times.high_us + 1] for times in ranges]


def find_touched(
    spark: SparkSession, pipeline: Pipeline, appended: DataFrame, since: int, until: int
) -> Touched | None:
    """What the commits after version `since` of the source, up to `until`, have touched.

    None where none of them removed rows. `appended` are the rows of the other commits. It is what
    the source has at `until`, compared with what it had at `since` and with what was appended.
    """
    rewrites = list_rewrites(spark, pipeline, since + 1, until)
    if not rewrites:
        return None
    with lost_version_explained(pipeline):
        before = delta.read(spark, pipeline.source.table, since)
    after = delta.read(spark, pipeline.source.table, until)
    near = cover_rewrites(rewrites)
    weighed = [
        _weigh(spark, pipeline, select_near(rows, pipeline, near), after.schema, weight)
        for rows, weight in ((after, 1), (before, -1), (appended, -1))
    ]
    # Rows that are there as often as they were, or as they were appended, were not touched.
    by_digest = reduce(DataFrame.unionByName, weighed).groupBy(DIGEST)
    counted = by_digest.agg(F.first(_ROW).alias(_ROW), F.sum(_WEIGHT).alias(_WEIGHT))
    rows = pin_rows(counted.where(F.col(_WEIGHT) != 0))
    total = rows.agg(F.sum(F.abs(_WEIGHT))).collect()[0][0] or 0
    return Touched(rows.select(f"{_ROW}.*"), total)


def _weigh(
    spark: SparkSession, pipeline: Pipeline, rows: DataFrame, columns: T.StructType, weight: int
) -> DataFrame:
    """The events among `rows`, each with a weight: [__digest, __row (the columns), __weight]."""
    events = source.shape_rows(conform_rows(rows, columns), pipeline)
    # Parts are among what differs: a digest has nothing of a map that one may come from.
    digested = with_row_digest(events, earlier_types(spark, pipeline))
    row = F.struct(*[F.col(quoted(field.name)) for field in columns.fields])
    return digested.select(DIGEST, row.alias(_ROW), F.lit(weight).alias(_WEIGHT))


def conform_rows(rows: DataFrame, columns: T.StructType) -> DataFrame:
    """Rows of an earlier version of the source with the `columns` that it had later.

    Those that were added since are null, and types are the later ones.
    """
    conformed = []
    for field in columns.fields:
        value = F.lit(None).cast(field.dataType)
        if field.name in rows.columns:
            stored = rows.schema[field.name].dataType
            value = _conform(F.col(quoted(field.name)), stored, field.dataType)
        conformed.append(value.alias(field.name))
    return rows.select(conformed)


def _conform(value: Column, stored: T.DataType, wanted: T.DataType) -> Column:
    """A value of an earlier type as one of the type `wanted`; fields that were added are null."""
    if stored == wanted:
        return value
    if isinstance(stored, T.StructType) and isinstance(wanted, T.StructType):
        fields = []
        for field in wanted.fields:
            part = F.lit(None).cast(field.dataType)
            if field.name in stored.names:
                earlier = stored[field.name].dataType
                part = _conform(value.getField(field.name), earlier, field.dataType)
            fields.append(part.alias(field.name))
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(stored, T.ArrayType) and isinstance(wanted, T.ArrayType):
        kinds = stored.elementType, wanted.elementType
        return F.transform(value, lambda element: _conform(element, *kinds))
    if isinstance(stored, T.MapType) and isinstance(wanted, T.MapType):
        values = stored.valueType, wanted.valueType
        return F.transform_values(value, lambda _, part: _conform(part, *values))
    return value.cast(wanted)


def select_near(rows: DataFrame, pipeline: Pipeline, times: Range | None) -> DataFrame:
    """The rows with an event time of the range, by the statistics of their files; None for all."""
    if times is None:
        return rows
    column = F.col(quoted(pipeline.source.event_time.column or ""))
    return rows.where(column.between(instant(times.low_us), instant(times.high_us)))


def _find_changed_ranges(
    batch: RunContext, rows: DataFrame, past: LedgerExcerpt
) -> tuple[Range, ...]:
    """The event times of updated and deleted rows, before and after the change, as few ranges."""
    events = source.shape_rows(rows, batch.pipeline)
    # What became of rows that count nowhere changes nothing.
    others = without_erased(events, batch.keys, batch.erased)
    changed = _select_changed(batch, others, past)
    times = add_event_time(batch, changed.drop(*FEED)).select(TIME)
    copies = _read_copies(batch, others)
    if copies is not None:
        times = times.unionByName(copies)
    in_range = times.where(F.col(TIME).between(FIRST_US, LAST_US))
    # Grouping by hour keeps what is collected small however many rows were changed.
    hour = (F.col(TIME) / _HOUR_US).cast("bigint")
    by_hour = in_range.groupBy(hour).agg(F.min(TIME).alias("low"), F.max(TIME).alias("high"))
    ranges = [Range(row["low"], row["high"]) for row in by_hour.collect()]
    return merge_ranges(ranges)


def _select_changed(batch: RunContext, rows: DataFrame, past: LedgerExcerpt) -> DataFrame:
    """Updated and deleted rows, and inserted rows whose event id was somewhere else before."""
    changed = rows.where(F.col(CHANGE) != "insert")
    event_id = batch.pipeline.source.event_id
    if event_id is None:
        return changed
    id_text = F.col(f"`{event_id}`").cast("string")
    changed_ids = changed.select(id_text.alias("__id"))
    id_frames = [changed_ids, *_read_unsettled_ids(batch, past)]
    ids = reduce(DataFrame.unionByName, id_frames).distinct()
    inserted = rows.where(F.col(CHANGE) == "insert")
    moved = inserted.join(ids, id_text == F.col("__id"), "left_semi")
    return changed.unionByName(moved)


def _read_copies(batch: RunContext, rows: DataFrame) -> DataFrame | None:
    """When copies happened that earlier batches of the run refused, of ids that are changed now.

    In one batch with the change they would be inserted rows of such an id. -> [__t]
    """
    event_id = batch.pipeline.source.event_id
    copies = None if event_id is None else batch.find_rows("_duplicates")
    if event_id is None or copies is None:
        return None
    changed = rows.where(F.col(CHANGE) != "insert")
    ids = changed.select(column_named(event_id).cast("string").alias("__id"))
    own = copies.where((F.col("run") == batch.stamp.run) & F.col("resolved_by").isNull())
    is_changed = column_named(kept_name(event_id)).cast("string") == F.col("__id")
    return own.join(ids, is_changed, "left_semi").select(F.unix_micros("event_time").alias(TIME))


def _read_unsettled_ids(batch: RunContext, past: LedgerExcerpt) -> list[DataFrame]:
    """The accepted ids in ranges that the source has changed and no backfill has reprocessed yet.

    One frame for each such range: [__id].
    """
    ranges = unsettled_ranges(past)
    seen = batch.find_rows(SEEN) if ranges else None
    if seen is None:
        return []
    earlier = seen.where(batch.stamp.foreign)
    found = []
    for low, high in ranges:
        in_range = between(earlier, "event_time", low, high)
        found.append(in_range.select(F.col("event_id").alias("__id")))
    return found
