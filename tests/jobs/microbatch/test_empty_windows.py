"""A run adds no more empty windows than the output's limit."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.oracle import Event, Tumbling
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab
from windowing.errors import StateRefused
from windowing.spec.load import load_pipeline


@pytest.mark.slow
def test_too_many_windows_without_events_wait_for_a_higher_limit(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, (Tumbling("hourly", 60 * MINUTE, empty=True),), shows=FEW)
    enough = lab.pipeline
    spec = lab.spec()
    spec["windows"]["hourly"]["empty_limit"] = 3
    lab.pipeline = load_pipeline(spec)
    events = lab.land(Event("a", BASE + n * 60 * MINUTE, 1, f"e{n}") for n in (0, 10))
    with pytest.raises(
        StateRefused,
        match=r"EMPTY_LIMIT: windows.hourly.empty_limit: .* add 9 empty windows, "
        "more than 3; raise the limit",
    ):
        lab.go()
    assert lab.table("hourly") == {}
    lab.pipeline = enough
    lab.go()
    lab.truth.run(events, ARRIVAL)
    lab.check()
    assert len(lab.table("hourly")) == 11
