"""Digests of rows have no maps: what a source changes in a struct that has one, or gets one."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.run import follow_rewrites, run
from windowing.errors import StateRefused
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline

pytestmark = pytest.mark.slow


def make_pipeline(spark: SparkSession, root: Path, rows: str, path: str) -> Pipeline:
    """A pipeline that has read these rows and sums up a part of them."""
    spark.sql(f"create table delta.`{root}/trips` using delta as select * from values {rows}")
    spec: dict[str, Any] = {
        "name": "trips",
        "lake": str(root / "lake"),
        "source": {"table": str(root / "trips"), "event_time": "at", "key": ["shop"]},
        "watermark": {"delay": "0 seconds", "max_future": "36500 days"},
        "aggregates": {"paid": f"sum({path})"},
        "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
    }
    pipeline = load_pipeline(spec)
    run(spark, pipeline)
    return pipeline


def paid(spark: SparkSession, pipeline: Pipeline) -> float:
    """The only sum that the output shows."""
    (row,) = spark.read.format("delta").load(pipeline.table("hourly").text).collect()
    return float(row["paid"])


AT = "timestamp'2026-01-05 00:10:00Z'"


def test_an_update_beside_a_map_is_followed(spark: SparkSession, tmp_path: Path) -> None:
    trip = "named_struct('paid', 1.0D, 'tags', map('a', 'b'))"
    pipeline = make_pipeline(
        spark,
        tmp_path,
        f"('a', {AT}, {trip}), ('a', {AT}, {trip}) as t(shop, at, trip)",
        "trip.paid",
    )
    assert paid(spark, pipeline) == 2
    spark.sql(f"update delta.`{tmp_path}/trips` set trip.paid = 50.0D")
    report = follow_rewrites(spark, pipeline, None, None)
    assert report.followed is not None
    assert paid(spark, pipeline) == 100


def test_a_struct_that_gets_a_map_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    rows = f"('a', {AT}, named_struct('paid', 1.0D)) as t(shop, at, trip)"
    pipeline = make_pipeline(spark, tmp_path, rows, "trip.paid")
    table = f"delta.`{tmp_path}/trips`"
    spark.sql(f"alter table {table} add columns (trip.note string)")
    spark.sql(f"insert into {table} select 'a', {AT}, named_struct('paid', 2.0D, 'note', 'late')")
    run(spark, pipeline)
    assert paid(spark, pipeline) == 3
    spark.sql(f"alter table {table} add columns (trip.tags map<string, string>)")
    with pytest.raises(StateRefused, match="SOURCE_CHANGED.*'trip' has got a map or a VARIANT"):
        run(spark, pipeline)
