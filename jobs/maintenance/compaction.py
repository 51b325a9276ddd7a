"""Compaction: several state rows of one pane or session become one, merged as reading merges them.

panes[key, pane, judged_by], several rows each -> rows admitted to the same windows, merged
-> one commit that deletes the old rows and adds the new ones
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.context import RunContext
from windowing.aggregates.algebra import Part, merge_parts
from windowing.columns import BATCH, FIRST, GENERATION, JUDGED, LAST, PANE, RUN, START
from windowing.crash import crashpoint
from windowing.location import Location
from windowing.panes import frame as partials
from windowing.panes.rule import COMPACTED, Family, fragments_table, pane_families
from windowing.rows import are_equal, are_same
from windowing.source import table as source
from windowing.spec.kinds import Session
from windowing.storage.merges import swap_rows
from windowing.storage.pinned_rows import pin_rows

_GROUP = "__group"
"""What the rows that become one have in common."""
_SIZE = "__size"
"""How many rows a group has."""


def compact_state(batch: RunContext) -> dict[str, int]:
    """Merges rows in all tables of partial aggregates; returns how many fewer each table has."""
    pipeline = batch.pipeline
    schema = source.read(batch.spark, pipeline).schema
    removed: dict[str, int] = {}
    for family in pane_families(pipeline):
        algebras = partials.algebras_of(pipeline, family.aggregates, schema)
        kept = partials.parts_of(algebras.values())
        removed[family.table] = _compact_panes(batch, family, kept)
    for window in pipeline.sessions:
        algebras = partials.algebras_of(pipeline, window.aggregates, schema)
        kept = partials.parts_of(algebras.values())
        removed[fragments_table(window)] = _compact_fragments(batch, window, kept)
    return removed


def _compact_panes(batch: RunContext, family: Family, kept: Sequence[Part]) -> int:
    """Merges rows of one key and pane that count in the same windows.

    Rows surely do so if they were on time for all windows, or if they were judged by the same W.
    """
    path = batch.pipeline.table(family.table)
    stored = batch.find_rows(family.table)
    if stored is None:
        return 0
    on_time = _is_on_time(batch.pipeline.watermark.allowed_lateness_us)
    # Null for all rows that were on time, so they form one group.
    judged = F.when(~on_time, F.col(JUDGED))
    rows = stored.withColumn(_GROUP, judged)
    crowd = Crowd(
        group=(*batch.keys, PANE, _GROUP),
        identity=(*batch.keys, PANE, BATCH, JUDGED),
        judged=F.col(_GROUP),
        ends=(),
    )
    return _merge_crowds(path, rows, crowd, kept)


def _is_on_time(lateness_us: int | None) -> Column:
    """True for rows that were late for none of their windows.

    The earliest window of a pane ends at least one microsecond after the pane has begun.
    """
    if lateness_us is None:
        return F.lit(True)
    first_end = F.unix_micros(PANE) + F.lit(1 + lateness_us)
    return F.col(JUDGED).isNull() | (first_end > F.unix_micros(JUDGED))


def _compact_fragments(batch: RunContext, window: Session, kept: Sequence[Part]) -> int:
    """Merges the fragments of each stored session.

    That is safe because a session only grows by new events, and a backfill rebuilds its fragments
    from accepted events.
    """
    path = batch.pipeline.table(fragments_table(window))
    rows = batch.find_rows(path.name)
    if rows is None:
        return 0
    sessions = batch.read_complete(window)
    spans = sessions.select(*batch.keys, START, F.col(LAST).alias("__until"))
    same_key = are_equal("f", "s", batch.keys)
    inside = (F.col(FIRST) >= F.col(START)) & (F.col(FIRST) <= F.col("__until"))
    joined = rows.alias("f").join(spans.alias("s"), [*same_key, inside])
    placed = joined.select("f.*", F.col(START).alias(_GROUP))
    crowd = Crowd(
        group=(*batch.keys, _GROUP),
        identity=(*batch.keys, FIRST, LAST, BATCH),
        judged=F.lit(None).cast("timestamp_ltz"),
        ends=(F.min(FIRST).alias(FIRST), F.max(LAST).alias(LAST)),
    )
    return _merge_crowds(path, placed, crowd, kept)


@dataclass(frozen=True)
class Crowd:
    """Which state rows become one row, and what that row contains.

    Rows that agree in `group` become one. `identity` are the columns that identify a single row;
    `judged` and `ends` are the W and the bounds of the merged row.
    """

    group: tuple[str, ...]
    identity: tuple[str, ...]
    judged: Column
    ends: tuple[Column, ...]


def _merge_crowds(path: Location, rows: DataFrame, crowd: Crowd, kept: Sequence[Part]) -> int:
    """Merges every group of several rows in one commit; returns how many rows fewer there are."""
    old = _select_crowds(rows, crowd)
    stamps = [
        F.max(RUN).alias(RUN),
        F.max(GENERATION).alias(GENERATION),
        F.lit(COMPACTED).cast("bigint").alias(BATCH),
    ]
    grouped = old.groupBy(*crowd.group).agg(*merge_parts(kept), *stamps, *crowd.ends)
    columns = [c for c in rows.columns if c != _GROUP]
    merged = grouped.withColumn(JUDGED, crowd.judged).select(*columns)
    new = pin_rows(merged)
    before = old.count()
    after = new.count()
    if before:
        swap_rows(path, old.select(*columns), new, crowd.identity)
    crashpoint("maintain.compacted")
    return before - after


def _select_crowds(rows: DataFrame, crowd: Crowd) -> DataFrame:
    """The rows of groups with several rows, computed here because they are read three times."""
    sizes = rows.groupBy(*crowd.group).agg(F.count("*").alias(_SIZE))
    crowded = sizes.where(F.col(_SIZE) > 1)
    same_group = are_same("r", "m", crowd.group)
    old = rows.alias("r").join(crowded.alias("m"), same_group, "left_semi")
    return pin_rows(old)
