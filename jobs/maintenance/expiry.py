"""What `retention` no longer keeps: what refused rows said, by the arrival of their run; windows and state, by the watermark."""

from collections.abc import Mapping

from delta.tables import DeltaTable
from pyspark.sql import Column
from pyspark.sql import functions as F

from jobs.microbatch.context import Batch
from windowing import delta
from windowing.admit.digest import EMPTIED, digest_of
from windowing.admit.table import REFUSED
from windowing.columns import DIGEST, END, META, PANE, RUN, kept_name
from windowing.crash import crashpoint
from windowing.grid.frame import instant
from windowing.ledger.table import WATERMARKS
from windowing.panes.rule import SEEN, families
from windowing.source import table as source
from windowing.spec.kinds import Aligned, Global
from windowing.windows.gaps import filled


def expire(batch: Batch, watermark_us: int | None) -> dict[str, int]:
    """Deletes what is older than the spec keeps it, and empties refused rows that are; by table how many rows."""
    pipeline, kept = batch.pipeline, batch.pipeline.retention
    found: dict[str, int] = {}
    if kept.refused_us is not None:
        runs = _runs_before(batch, batch.arrival_us - kept.refused_us)
        found |= {table: _empty(batch, table, F.col(RUN).isin(runs)) for table in REFUSED if runs}
    if watermark_us is None:
        return found
    horizon = pipeline.watermark.dedupe_horizon_us
    if pipeline.source.event_id is not None and horizon is not None:
        found[SEEN] = _delete(batch, SEEN, F.col("event_time") <= instant(watermark_us - horizon))
    if kept.output_us is not None:
        old = F.col(END) <= instant(watermark_us - kept.output_us)
        found |= {
            w.name: _delete(batch, w.name, old) for w in pipeline.windows if isinstance(w, Aligned)
        }
    if kept.state_us is not None:
        found |= _panes(batch, watermark_us - kept.state_us)
    return found


def _runs_before(batch: Batch, arrival_us: int) -> list[int]:
    marks = delta.read(batch.spark, batch.pipeline.table(WATERMARKS)).where(
        F.col("arrival") < instant(arrival_us)
    )
    return [row[RUN] for row in marks.select(RUN).distinct().collect()]


def _panes(batch: Batch, until_us: int) -> Mapping[str, int]:
    """Panes that began before `until_us`; those of families that show windows without events stay, their first event counts."""
    found = {}
    for family in families(batch.pipeline):
        if not any(isinstance(w, Global) or filled(w) for w in family.windows):
            found[family.table] = _delete(batch, family.table, F.col(PANE) < instant(until_us))
    return found


def _empty(batch: Batch, table: str, old: Column) -> int:
    """Takes the columns of the source from old refused rows, but for the key, in one commit.

    What remains is that they were refused, and their digest: without it a row that the source still has would count from now on. By the
    key they can be erased.
    """
    path = batch.pipeline.table(table)
    if not delta.exists(batch.spark, path):
        return 0
    if EMPTIED not in delta.read(batch.spark, path).columns:
        batch.spark.sql(f"alter table delta.`{path}` add columns (`{EMPTIED}` bigint)")
    rows = delta.read(batch.spark, path)
    due = old & F.col(EMPTIED).isNull()
    n = rows.where(due).count()
    if n:
        own = [
            f
            for f in rows.schema.fields
            if f.name not in (*META, DIGEST, EMPTIED, *map(kept_name, batch.keys))
        ]
        said: dict[str, str | Column] = {f"`{f.name}`": F.lit(None).cast(f.dataType) for f in own}
        schema, earlier = (
            source.schema(batch.spark, batch.pipeline),
            source.earlier_types(batch.spark, batch.pipeline),
        )
        DeltaTable.forPath(batch.spark, path).update(
            due, {**said, EMPTIED: digest_of(rows, schema, earlier)}
        )
    crashpoint("maintain.expired")
    return n


def _delete(batch: Batch, table: str, old: Column) -> int:
    path = batch.pipeline.table(table)
    if not delta.exists(batch.spark, path):
        return 0
    n = delta.read(batch.spark, path).where(old).count()
    if n:
        DeltaTable.forPath(batch.spark, path).delete(old)
    crashpoint("maintain.expired")
    return n
