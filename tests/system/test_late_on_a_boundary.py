"""An event at the very start of windows that it is late for, which is the newest of its batch.

It is on time for all time, so it is accepted. Whether it counts in a window depends on the window's
end alone, which lies beyond every event of the batch.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.oracle import Cumulate, Event, Global, Sliding, Tumbling
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.pipeline_under_test import FEW, Lab

HOUR, DAY = 60 * MINUTE, 1440 * MINUTE
WINDOWS = (
    Tumbling("hourly", HOUR),
    Sliding("rolling", HOUR, 20 * MINUTE),
    Cumulate("daily", DAY, step=6 * HOUR),
    Sliding("differing", HOUR, 20 * MINUTE, emit="changes"),
    Global("ever"),
)


@pytest.mark.deep
@pytest.mark.parametrize("allowed", [0, 40])
def test_an_event_is_late_for_the_windows_that_it_begins(
    spark: SparkSession, tmp_path: Path, allowed: int
) -> None:
    """The watermark is three days later, so only `ever` is open."""
    lab = Lab(spark, tmp_path, WINDOWS, lateness=allowed * MINUTE, shows=FEW)
    lab.run([Event("a", BASE + 30 * MINUTE, 1, "first", 0), Event("b", BASE + 3 * DAY, 1, "w", 1)])
    for hour in (2, 6, 24):
        report = lab.run([Event("a", BASE + hour * HOUR, 1, f"late {hour}", hour)])
        assert report.accepted == 1
        lab.check()
