"""Refused rows of a range: what they were, whether some are new, and which are resolved.

Equal rows have one digest, and nothing else tells them apart. So of each digest a number of refused
rows is resolved when the range is recomputed, those of the earliest runs first:

    accepted anew = accepted rows - those of them that were accepted before, which no table has
    no longer in the source = refused rows - (rows in the source - accepted rows)
    resolved = accepted anew, or the greater of both where the source may change

Partly late rows are not counted: they miss no window any more, so all of them are resolved.
"""

from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.microbatch.context import RunContext
from jobs.microbatch.refused_rows import read_refused_tables, with_digest
from jobs.recompute.swap import replace_range
from jobs.recompute.time_range import TimeRange
from windowing.admit.again import INSIDE, LIVE
from windowing.admit.outcomes import PARTIAL, REFUSED
from windowing.columns import DIGEST
from windowing.grid.frame import between
from windowing.rows import column_named, is_true
from windowing.storage import delta
from windowing.storage.pinned_rows import pin_rows

QUARANTINE = "_quarantine"


def refused_digests(batch: RunContext, tables: Iterable[str] = tuple(REFUSED)) -> DataFrame:
    """The digests of rows that were refused and are not resolved, one for each row."""
    found = []
    for rows in read_refused_tables(batch, tables).values():
        found.append(with_digest(batch, rows.where(_is_open())).select(DIGEST))
    if not found:
        return delta.rows(batch.spark, [], f"{DIGEST} bigint")
    return reduce(DataFrame.unionByName, found)


def partly_late(batch: RunContext) -> DataFrame:
    """The partly late rows that are not resolved: [digest, missed, watermark]."""
    late = batch.find_rows("_late")
    if late is None:
        columns = (
            f"{DIGEST} bigint, missed array<struct<window:string,until:timestamp_ltz>>, "
            "watermark timestamp_ltz"
        )
        return delta.rows(batch.spark, [], columns)
    is_partial = F.col("outcome") == PARTIAL
    rows = late.where(is_partial & F.col("resolved_by").isNull())
    return with_digest(batch, rows).select(DIGEST, "missed", "watermark")


def refused_after(batch: RunContext, run: int, chunk: TimeRange) -> bool:
    """Whether a run after `run` refused a row with an event time in the chunk."""
    for stored in read_refused_tables(batch).values():
        refused = between(stored, "event_time", chunk.start_us, chunk.end_us)
        if not refused.where(F.col("run") > run).isEmpty():
            return True
    return False


def resolve_refused_rows(
    batch: RunContext, chunk: TimeRange, rows: DataFrame, events: DataFrame, label: str
) -> None:
    """Marks the refused rows of the chunk that are accepted now as resolved by `label`.

    `rows` are the source rows near the chunk, and `events` are those of them that are accepted. A
    row that a changing source contains no more is resolved too. So is every partly late row,
    because it misses no window any more.
    """
    stored = read_refused_tables(batch)
    refused = {
        table: _checkpoint_refused_in(batch, table_rows, chunk)
        for table, table_rows in stored.items()
    }
    open_rows = {table: table_rows.where(_is_open()) for table, table_rows in refused.items()}
    valid = [table_rows for table, table_rows in open_rows.items() if table != QUARANTINE]
    to_resolve = _count_rows_to_resolve(batch, rows, events, valid)
    # Equal rows may lie in several tables. Those of the first tables are resolved first.
    in_earlier_tables: list[DataFrame] = []
    for table, table_rows in refused.items():
        earlier = _count_by_digest(in_earlier_tables, "__earlier", to_resolve)
        marked = _mark_resolved(table_rows, to_resolve, earlier, label)
        kept = marked.select(*(column_named(c) for c in stored[table].columns))
        replace_range(batch, table, pin_rows(kept), "event_time", chunk)
        in_earlier_tables.append(open_rows[table])


def _mark_resolved(
    refused: DataFrame, to_resolve: DataFrame, earlier: DataFrame, label: str
) -> DataFrame:
    """The refused rows of one table, those that are due resolved by `label`.

    Of each digest the first `__to_resolve` rows are due, less the `__earlier` ones of other tables.
    """
    is_partial = F.col("outcome") == PARTIAL
    is_unresolved = F.col("resolved_by").isNull()
    alike = Window.partitionBy(DIGEST, is_partial, is_unresolved).orderBy("run")
    counted = (
        refused.withColumn("__nth", F.row_number().over(alike))
        .join(to_resolve, DIGEST, "left")
        .join(earlier, DIGEST, "left")
    )
    place = F.col("__nth") + F.coalesce("__earlier", F.lit(0))
    # A digest that no accepted event has joins nothing, so the comparison is null.
    is_accepted = is_true(place <= F.col("__to_resolve"))
    is_due = is_unresolved & (is_accepted | is_partial)
    resolved_by = F.when(is_due, F.lit(label)).otherwise(F.col("resolved_by"))
    return counted.withColumn("resolved_by", resolved_by)


def _checkpoint_refused_in(batch: RunContext, stored: DataFrame, chunk: TimeRange) -> DataFrame:
    """The refused rows of the chunk with their digest, computed before the range is replaced."""
    inside = between(stored, "event_time", chunk.start_us, chunk.end_us)
    return pin_rows(with_digest(batch, inside))


def _count_rows_to_resolve(
    batch: RunContext, rows: DataFrame, events: DataFrame, valid: Sequence[DataFrame]
) -> DataFrame:
    """How many refused rows of each digest are to be resolved: [__digest, __to_resolve].

    `valid` are the open ones that were not quarantined.
    """
    accepted = F.count("*")
    # Events that were accepted before have no refused row.
    accepted_anew = accepted - F.count_if(LIVE)
    inside = events.where(INSIDE).groupBy(DIGEST)
    counts = inside.agg(accepted.alias("__accepted"), accepted_anew.alias("__to_resolve"))
    counts = pin_rows(counts)
    if not batch.source_may_change:
        return counts.drop("__accepted")
    left = _count_by_digest([rows.where(INSIDE)], "__left", counts)
    refused = _count_by_digest(valid, "__refused", counts)
    both = refused.join(counts, DIGEST, "full").join(left, DIGEST, "left")
    without_source_row = (
        F.coalesce("__refused", F.lit(0))
        - F.coalesce("__left", F.lit(0))
        + F.coalesce("__accepted", F.lit(0))
    )
    most = F.greatest(F.coalesce("__to_resolve", F.lit(0)), without_source_row)
    return pin_rows(both.select(DIGEST, most.alias("__to_resolve")))


def _count_by_digest(frames: Sequence[DataFrame], name: str, like: DataFrame) -> DataFrame:
    """How many rows of each digest all `frames` have: [__digest, name].

    Without frames there are no rows; their column is then that of `like`.
    """
    digests = [rows.select(DIGEST) for rows in frames]
    none = like.select(DIGEST).limit(0)
    together = reduce(DataFrame.unionByName, digests, none)
    return together.groupBy(DIGEST).agg(F.count("*").alias(name))


def _is_open() -> Column:
    """True for rows that were refused and are not resolved."""
    return F.col("resolved_by").isNull() & (F.col("outcome") != PARTIAL)
