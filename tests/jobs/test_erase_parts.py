"""A value of a part of a column is erased everywhere, and stays so while the spec changes."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.erase import erase, lift_erasure
from jobs.history import history
from jobs.run import run
from jobs.show import Wanted
from tests.support.erased_canary import CANARY
from tests.support.stored_rows import list_stored
from windowing.errors import StateRefused
from windowing.ledger.erased import Erasing
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta

ASKED = Erasing({"customer": CANARY}, "customer")
FLAT = "id string, at string, customer string, driver string"


def land(spark: SparkSession, root: Path, rows: Iterable[tuple[str, str, str, str]]) -> None:
    """Appends rows to the source: id, time of day, customer and driver."""
    flat = spark.createDataFrame(list(rows), FLAT)
    nested = flat.selectExpr(
        "id",
        "'a' as city",
        "timestamp(concat('2026-01-01 ', at)) as ts",
        "struct(customer, map('lang', 'de') as tags) as trip",
        "struct(driver as customer) as driver",
    )
    delta.append(nested.coalesce(1), Location(str(root / "source")), widen=True)


def pipeline_with(root: Path, aggregates: Mapping[str, str]) -> Pipeline:
    """The pipeline over that source with these aggregates."""
    spec: dict[str, Any] = {
        "name": "trips",
        "lake": str(root / "lake"),
        "source": {"table": str(root / "source"), "event_time": "ts", "key": ["city"]},
        "watermark": {"allowed_lateness": "20 minutes"},
        "aggregates": {"n": "count()", **aggregates},
        "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
    }
    spec["source"]["event_id"] = "id"
    return load_pipeline(spec)


@pytest.mark.deep
def test_a_part_is_erased_from_rows_refused_before_it_was_one_and_stays_erased(
    spark: SparkSession, tmp_path: Path
) -> None:
    land(spark, tmp_path, [("c0", "10:00", CANARY, "x"), ("o0", "14:00", "other", CANARY)])
    at = datetime(2026, 1, 2, tzinfo=UTC)
    plain = pipeline_with(tmp_path, {})
    assert run(spark, plain, at).accepted == 2
    land(spark, tmp_path, [("c1", "10:05", CANARY, "x"), ("o1", "10:06", "other", CANARY)])
    assert run(spark, plain, at).late == 2
    listed = pipeline_with(tmp_path, {"who": "collect(trip.customer)"})
    run(spark, listed, at)
    land(spark, tmp_path, [("c2", "10:07", CANARY, "x"), ("o2", "10:08", "other", "x")])
    assert run(spark, listed, at).late == 2
    erased = erase(spark, listed, ASKED)
    assert erased.rows["_late"] == 2
    late = list_stored(spark, listed.table("_late"))
    assert sorted(row["id"] for row in late) == ["o1", "o2"]
    reused = pipeline_with(tmp_path, {"whose": "collect(driver.customer)"})
    at_two = Wanted(start=at.replace(day=1, hour=14), end=at.replace(day=1, hour=15))
    for changed, problem in (
        (plain, "was 'trip.customer' and is not there any more"),
        (reused, "was 'trip.customer' and is 'driver.customer' now"),
    ):
        with pytest.raises(StateRefused, match=f"SPEC_CHANGED: .*{problem}"):
            run(spark, changed, at)
        with pytest.raises(StateRefused, match=f"SPEC_CHANGED: .*{problem}"):
            history(spark, changed, changed.window("hourly"), at_two, events=5)
    assert lift_erasure(spark, listed, ASKED).lifted
    assert run(spark, reused, at).erased == 0
