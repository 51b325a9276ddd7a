"""From a spec to published windows, by nothing but `tidemark`."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tidemark


@pytest.fixture
def pipeline(spark: SparkSession, tmp_path: Path) -> tidemark.Pipeline:
    """Counts of orders by the hour; the source has three orders, and one has a broken time."""
    (tmp_path / "orders.yaml").write_text(
        """\
name: orders
lake: lake
source: {table: bronze/orders, event_time: ordered_at, key: [shop], event_id: id, zone: UTC}
watermark: {delay: 0 seconds, allowed_lateness: 0 seconds}
aggregates: {orders: count()}
windows:
  hourly: {kind: tumbling, size: 1 hour}
"""
    )
    orders = [
        ("A1", "north", "2026-03-02 10:05:00"),
        ("A2", "north", "2026-03-02 10:20:00"),
        ("A3", "north", "2026-03-02 11:00:00"),
        ("A4", "north", "noon"),
    ]
    rows = spark.createDataFrame(orders, "id string, shop string, ordered_at string")
    rows.write.format("delta").save(str(tmp_path / "bronze" / "orders"))
    return tidemark.load_pipeline(tmp_path / "orders.yaml")


def counted(
    spark: SparkSession, pipeline: tidemark.Pipeline, *, published: bool
) -> list[tuple[int, int]]:
    """(hour of the window, its orders) of every row."""
    rows = tidemark.read(spark, pipeline, "hourly", published).orderBy("window_start").collect()
    return [(row["window_start"].astimezone(UTC).hour, row["orders"]) for row in rows]


def test_a_pipeline_is_run_validated_published_and_read(
    spark: SparkSession, pipeline: tidemark.Pipeline
) -> None:
    assert tidemark.publish(pipeline) == tidemark.Publication(0, {}, is_new=False)
    report = tidemark.run(spark, pipeline)
    assert (report.read, report.accepted, report.quarantined) == (4, 3, 1)
    assert report.windows == {"hourly": tidemark.Changed(inserted=2)}
    with pytest.raises(tidemark.UsageError, match="has not been published yet"):
        counted(spark, pipeline, published=True)
    with pytest.raises(tidemark.ExpectationsFailed, match="has not been validated"):
        tidemark.publish(pipeline)
    validation = tidemark.validate(spark, pipeline)
    assert validation.passed
    publication = tidemark.publish(pipeline)
    assert (publication.run, publication.outputs["hourly"]["rows"]) == (report.run, 2)
    assert counted(spark, pipeline, published=True) == [(10, 2), (11, 1)]


@pytest.mark.slow
def test_a_range_is_backfilled(spark: SparkSession, pipeline: tidemark.Pipeline) -> None:
    tidemark.run(spark, pipeline)
    late = spark.createDataFrame(
        [("A5", "north", "2026-03-02 10:59:00")], "id string, shop string, ordered_at string"
    )
    late.write.format("delta").mode("append").save(pipeline.source.table.text)
    assert tidemark.run(spark, pipeline).late == 1
    done: list[tuple[int, int]] = []
    report = tidemark.backfill(
        spark,
        pipeline,
        datetime(2026, 3, 2, 10, tzinfo=UTC),
        datetime(2026, 3, 2, 11, tzinfo=UTC),
        progress=lambda chunk, chunks: done.append((chunk, chunks)),
    )
    assert report.windows == {"hourly": tidemark.Changed(updated=1)}
    assert done == [(0, 1), (1, 1)]
    assert counted(spark, pipeline, published=False) == [(10, 3), (11, 1)]


@pytest.mark.slow
def test_a_period_is_closed_and_reopened(spark: SparkSession, pipeline: tidemark.Pipeline) -> None:
    tidemark.run(spark, pipeline)
    ten = datetime(2026, 3, 2, 10, tzinfo=UTC)
    closed = tidemark.close_period(spark, pipeline, ten.replace(hour=11), "invoiced")
    assert (closed.frozen, closed.published, closed.changed) == ({"hourly": 1}, None, True)
    assert not tidemark.close_period(spark, pipeline, ten.replace(hour=11), "again").changed
    late = spark.createDataFrame(
        [("A5", "north", "2026-03-02 10:59:00")], "id string, shop string, ordered_at string"
    )
    late.write.format("delta").mode("append").save(pipeline.source.table.text)
    tidemark.run(spark, pipeline)
    tidemark.backfill(spark, pipeline, ten, ten.replace(hour=11))
    assert counted(spark, pipeline, published=False) == [(10, 2), (11, 1)]
    assert tidemark.validate(spark, pipeline).passed
    reopened = tidemark.reopen_period(spark, pipeline, "a bill was wrong")
    assert reopened.windows == {"hourly": tidemark.Changed(updated=1)}
    assert counted(spark, pipeline, published=False) == [(10, 3), (11, 1)]
    assert tidemark.reopen_period(spark, pipeline, "again").until is None


def test_a_damaged_ledger_is_refused(spark: SparkSession, pipeline: tidemark.Pipeline) -> None:
    tidemark.run(spark, pipeline)
    for file in pipeline.table("_ledger").local.rglob("*.parquet"):
        file.unlink()
    with pytest.raises(tidemark.StateRefused, match="TABLE_CHANGED"):
        tidemark.publish(pipeline)
