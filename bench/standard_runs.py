"""The pipelines and rows of the standard runs whose cost is measured and limited."""

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline

START_S = 1_700_000_000 - 1_700_000_000 % 3600
HOURLY = {"hourly": {"kind": "tumbling", "size": "1 hour"}}
ROLLING = {"rolling": {"kind": "sliding", "size": "1 hour", "slide": "15 minutes"}}


def make_spec(root: Path, windows: dict[str, Any], **source: str) -> dict[str, Any]:
    """The spec of a pipeline over the table `events`, which accepts events that are a day late."""
    return {
        "name": "p",
        "lake": str(root / "lake"),
        "source": {"table": str(root / "events"), "event_time": "at", "key": ["user"], **source},
        "watermark": {"delay": "0 seconds", "allowed_lateness": "1 day"},
        "aggregates": {"n": "count()", "total": "sum(amount)"},
        "windows": windows,
    }


def make_pipeline(root: Path, windows: dict[str, Any], **source: str) -> Pipeline:
    """The pipeline of `make_spec`."""
    return load_pipeline(make_spec(root, windows, **source))


def land(spark: SparkSession, root: Path, query: str) -> None:
    """Appends what a query gives as id, user, at and amount, in one commit of one file."""
    rows = spark.sql(query).coalesce(1)
    rows.write.format("delta").mode("append").save(str(root / "events"))


def append_twice(spark: SparkSession, root: Path) -> None:
    """The least that a run could do: a stream that appends its batch to two tables."""

    def write(rows: DataFrame, number: int) -> None:
        for name in ("first", "second"):
            rows.write.format("delta").mode("append").save(str(root / name))

    stream = spark.readStream.format("delta").load(str(root / "events")).writeStream
    stream = stream.option("checkpointLocation", str(root / "appended"))
    stream.trigger(availableNow=True).foreachBatch(write).start().awaitTermination()


def one_event(second: int) -> str:
    """A query for one event so many seconds after the first hour's beginning."""
    at = f"timestamp_micros({START_S + second} * 1000000L)"
    return f"select 'e{second}' as id, 'a' as user, {at} as at, 1L as amount"


def many_events(first: int, count: int, low: int, late: int = 0, hours: int = 1) -> str:
    """A query for events spread over some hours from second `low` on.

    Every tenth is `late` seconds earlier.
    """
    second = f"{low} + id * 7919 % {hours * 3600} - if(id % 10 = 0, {late}, 0)"
    at = f"timestamp_micros(({START_S} + {second}) * 1000000L)"
    return (
        f"select 'e' || id as id, 'u' || id % 1000 as user, {at} as at, id as amount "
        f"from range({first}, {first + count})"
    )
