"""State in fewer rows: what was kept of a pane or a session batch by batch becomes one partial, as merging makes it anyway.

panes[key, pane, judged_by], several rows each -> those admitted to the same windows, merged -> one commit: the old go, the new come
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.microbatch.context import Batch
from windowing import delta
from windowing.aggregates.algebra import Part
from windowing.columns import BATCH, FIRST, GENERATION, JUDGED, LAST, PANE, RUN, START
from windowing.crash import crashpoint
from windowing.merge.rule import complete
from windowing.panes import frame as partials
from windowing.panes import table as state
from windowing.panes.rule import COMPACTED, Family, families, fragments_table
from windowing.source import table as source
from windowing.spec.kinds import Session

_GROUP, _N = "__group", "__n"


def compact(batch: Batch) -> dict[str, int]:
    """Merges rows of every table of partials; by table how many fewer there are."""
    schema = source.read(batch.spark, batch.pipeline).schema
    found: dict[str, int] = {}
    for family in families(batch.pipeline):
        kept = partials.parts(partials.algebras(batch.pipeline, family.aggregates, schema).values())
        found[family.table] = _panes(batch, family, kept)
    for window in batch.pipeline.sessions:
        kept = partials.parts(partials.algebras(batch.pipeline, window.aggregates, schema).values())
        found[fragments_table(window)] = _fragments(batch, window, kept)
    return found


def _panes(batch: Batch, family: Family, kept: Sequence[Part]) -> int:
    """Rows of one key and pane that count in the same windows: surely those that were on time, and those judged by the same W."""
    path = batch.pipeline.table(family.table)
    if not delta.exists(batch.spark, path):
        return 0
    judged = F.when(~_on_time(batch.pipeline.watermark.allowed_lateness_us), F.col(JUDGED))
    rows = delta.read(batch.spark, path).withColumn(_GROUP, judged)
    group = (*batch.keys, PANE, _GROUP)
    return _merged(
        path, rows, Crowd(group, (*batch.keys, PANE, BATCH, JUDGED), F.col(_GROUP), ()), kept
    )


def _on_time(lateness_us: int | None) -> Column:
    """True for panes none of whose windows was closed when they came; the earliest of them ends after the pane has begun."""
    if lateness_us is None:
        return F.lit(True)
    first_end = F.unix_micros(PANE) + F.lit(1 + lateness_us)
    return F.col(JUDGED).isNull() | (first_end > F.unix_micros(JUDGED))


def _fragments(batch: Batch, window: Session, kept: Sequence[Part]) -> int:
    """Fragments of one stored session; it can only grow, or be made anew from events."""
    path = batch.pipeline.table(fragments_table(window))
    if not delta.exists(batch.spark, path):
        return 0
    spans = delta.read(batch.spark, complete(batch.pipeline, window).path).select(
        *batch.keys, START, F.col(LAST).alias("__until")
    )
    same = [F.col(f"f.`{k}`") == F.col(f"s.`{k}`") for k in batch.keys]
    inside = (F.col(FIRST) >= F.col(START)) & (F.col(FIRST) <= F.col("__until"))
    rows = delta.read(batch.spark, path)
    placed = (
        rows.alias("f")
        .join(spans.alias("s"), [*same, inside])
        .select("f.*", F.col(START).alias(_GROUP))
    )
    ends = (F.min(FIRST).alias(FIRST), F.max(LAST).alias(LAST))
    nothing = F.lit(None).cast("timestamp_ltz")
    return _merged(
        path,
        placed,
        Crowd((*batch.keys, _GROUP), (*batch.keys, FIRST, LAST, BATCH), nothing, ends),
        kept,
    )


@dataclass(frozen=True)
class Crowd:
    """Which rows become one (`group`), what tells one of them from another, and the W and the bounds of the one."""

    group: tuple[str, ...]
    identity: tuple[str, ...]
    judged: Column
    ends: tuple[Column, ...]


def _merged(path: str, rows: DataFrame, crowd: Crowd, kept: Sequence[Part]) -> int:
    """One commit: groups of several rows become one row each; how many rows fewer there are."""
    many = rows.groupBy(*crowd.group).agg(F.count("*").alias(_N)).where(F.col(_N) > 1)
    same = [F.col(f"r.`{c}`").eqNullSafe(F.col(f"m.`{c}`")) for c in crowd.group]
    old = rows.alias("r").join(many.alias("m"), same, "left_semi").localCheckpoint(eager=True)
    columns = [c for c in rows.columns if c != _GROUP]
    stamps = [
        F.max(RUN).alias(RUN),
        F.max(GENERATION).alias(GENERATION),
        F.lit(COMPACTED).cast("bigint").alias(BATCH),
    ]
    one = (
        old.groupBy(*crowd.group)
        .agg(*(p.merged() for p in kept), *stamps, *crowd.ends)
        .withColumn(JUDGED, crowd.judged)
    )
    new = one.select(*columns).localCheckpoint(eager=True)
    before, after = old.count(), new.count()
    if before:
        state.swap(path, old.select(*columns), new, crowd.identity)
    crashpoint("maintain.compacted")
    return before - after
