"""What a run says of a source that it can't go on reading."""

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from jobs.foreign_errors.source_errors import lost_version_explained
from tests.oracle import Event, Tumbling
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.pipeline_under_test import Lab
from tests.windowing.cases import pipeline
from windowing.errors import StateRefused
from windowing.spec.load import load_pipeline


@pytest.mark.slow
def test_events_that_happen_when_they_arrive_are_not_reprocessed(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, (Tumbling("hourly", 60 * MINUTE),), shows=("n",))
    spec = lab.spec()
    lab.pipeline = load_pipeline(spec | {"source": spec["source"] | {"event_time": "arrival"}})
    lab.land([Event("a", BASE, 1, "first")])
    lab.go()
    spark.sql(f"update delta.`{lab.root / 'source'}` set value = 2")
    with pytest.raises(StateRefused, match="can't be reprocessed, so `tidemark reset") as refused:
        lab.go()
    assert refused.value.code == "SOURCE_REWRITTEN"
    assert "backfill" not in str(refused.value)


def test_a_reset_comes_last_where_a_version_is_lost() -> None:
    lost = AnalysisException("[DELTA_VERSION_NOT_FOUND] Cannot time travel")
    with (
        pytest.raises(StateRefused, match="is not known; run first; or `tidemark reset"),
        lost_version_explained(pipeline(), "run first"),
    ):
        raise lost
    with (
        pytest.raises(StateRefused, match="is not known; `tidemark reset"),
        lost_version_explained(pipeline()),
    ):
        raise lost
