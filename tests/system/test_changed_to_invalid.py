"""Rows without ids that the source has made invalid: nothing says that they were refused."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.oracle import Event, Session, Tumbling
from tests.support.changing_source import Changing
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.pipeline_under_test import FEW
from windowing.spec.load import load_pipeline

HOURLY = Tumbling("hourly", 60 * MINUTE)


@pytest.mark.slow
def test_a_window_that_is_added_leaves_out_what_became_invalid(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Changing(spark, tmp_path, (HOURLY,), delay=10 * MINUTE, ids=False, shows=FEW)
    lab.land(Event("a", BASE + n * 20 * MINUTE, n, f"e{n}", n) for n in range(5))
    lab.go()
    lab.sql("update {} set ts = null where seq = 1")
    lab.go()
    lab.holds_what_the_source_does()
    lab.windows = (HOURLY, Session("visits", 10 * MINUTE))
    lab.pipeline = load_pipeline(lab.spec())
    lab.go()
    lab.holds_what_the_source_does()
