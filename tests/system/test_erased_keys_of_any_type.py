"""Keys of several columns and types stay erased, also where the source widens their types.

A pipeline that has run keeps the types of its keys. So they are widened between the erasure and the
first run.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.backfill import backfill
from jobs.erase import erase
from jobs.run import run
from tests.oracle import Event, Tumbling
from tests.support.changing_source import Changing
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.pipeline_under_test import ARRIVAL, FEW
from windowing.grid.zone import moment
from windowing.ledger.erased import Erasing
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta

GONE = "7, 12.50BD, timestamp'2026-01-01 00:00:00', 'x', true, date'2026-01-01'"
NEAR = (
    "8, 12.50BD, timestamp'2026-01-01 00:00:00', 'x', true, date'2026-01-01'",
    "7, 12.51BD, timestamp'2026-01-01 00:00:00', 'x', true, date'2026-01-01'",
    "7, 12.50BD, timestamp'2026-01-01 00:00:00.000001', 'x', true, date'2026-01-01'",
    "7, 12.50BD, timestamp'2026-01-01 00:00:00', 'X', true, date'2026-01-01'",
    "7, 12.50BD, timestamp'2026-01-01 00:00:00', 'x', false, date'2026-01-01'",
    "7, 12.50BD, timestamp'2026-01-01 00:00:00', 'x', true, date'2026-01-02'",
)
"""Keys that differ from it in one column each."""
NULLS = "7, 12.50BD, timestamp'2026-01-01 00:00:00', cast(null as string), true, date'2026-01-01'"
KEY = {
    "n": "7",
    "price": "12.5",
    "since": "2026-01-01T00:00:00Z",
    "name": "x",
    "flag": "true",
    "day": "2026-01-01",
}
COLUMNS = "n int, price decimal(6,2), since timestamp, name string, flag boolean, day date"


def make(spark: SparkSession, root: Path) -> Pipeline:
    """A source with a row of each key, and the pipeline."""
    spark.sql(
        f"create table delta.`{root}/source` ({COLUMNS}, at timestamp) using delta "
        "tblproperties ('delta.enableTypeWidening' = 'true')"
    )
    land(spark, root)
    return load_pipeline(
        {
            "name": "keys",
            "lake": str(root / "lake"),
            "source": {"table": str(root / "source"), "event_time": "at", "key": list(KEY)},
            "aggregates": {"n_events": "count()"},
            "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
        }
    )


def land(spark: SparkSession, root: Path) -> None:
    """One more row of each key."""
    for values in (GONE, *NEAR, NULLS):
        spark.sql(f"insert into delta.`{root}/source` select {values}, timestamp'2026-01-05'")


def shown(spark: SparkSession, pipeline: Pipeline) -> list[int]:
    """How many events each window counts."""
    rows = delta.read(spark, pipeline.table("hourly")).collect()
    return [row["n_events"] for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize(
    "widened",
    [False, pytest.param(True, marks=pytest.mark.deep)],
    ids=["as it was", "widened"],
)
def test_a_key_of_several_types_stays_erased(
    widened: bool,  # noqa: FBT001 pytest's
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    pipeline = make(spark, tmp_path)
    assert not erase(spark, pipeline, Erasing(KEY)).rows
    if widened:
        for column, kind in (("n", "bigint"), ("price", "decimal(14,4)")):
            spark.sql(f"alter table delta.`{tmp_path}/source` alter column {column} type {kind}")
    arrival = datetime(2026, 1, 6, tzinfo=UTC)
    report = run(spark, pipeline, arrival)
    found: dict[str, Any] = {name: getattr(report, name) for name in ("read", "accepted", "erased")}
    assert found == {"read": 8, "accepted": 6, "erased": 1}
    assert report.quarantined == 1, "a key with a null is none"
    assert shown(spark, pipeline) == [1] * 6
    other = KEY | {"price": "12.51"}
    assert erase(spark, pipeline, Erasing(other)).rows["hourly"] == 1
    land(spark, tmp_path)
    report = run(spark, pipeline, arrival)
    assert (report.accepted, report.erased, report.quarantined) == (5, 2, 1)
    report = backfill(spark, pipeline, datetime(2026, 1, 5, tzinfo=UTC), arrival)
    assert (report.read, report.erased) == (10, 4)
    assert shown(spark, pipeline) == [2] * 5


@pytest.mark.deep
def test_what_the_source_deletes_of_an_erased_key_reprocesses_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Changing(spark, tmp_path, (Tumbling("hourly", 60 * MINUTE),), shows=FEW)
    lab.land([Event(key, BASE + n * MINUTE, 1, f"{key}{n}") for key in "ab" for n in range(3)])
    lab.go()
    erase(spark, lab.pipeline, Erasing({"key": "b"}))
    lab.sql("delete from {} where key = 'b'")
    assert lab.go().corrections == 0
    lab.sql("update {} set key = 'b' where id = 'a1'")
    lab.land([Event("b", BASE, 1, "b0")])
    report = lab.go(ARRIVAL)
    assert (report.corrections, report.erased) == (1, 1)
    backfill(spark, lab.pipeline, moment(BASE), moment(BASE + 60 * MINUTE))
    lab.sql("delete from {} where key = 'b'")
    lab.holds_what_the_source_does()
