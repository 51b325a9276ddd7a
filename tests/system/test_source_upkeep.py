"""A source whose files are compacted and vacuumed while a run reads it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.oracle import Count, Event, Session, Sliding
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.pipeline_under_test import Lab
from windowing.crash import armed
from windowing.location import Location
from windowing.storage import delta_log, upkeep

WINDOWS = (
    Sliding("rolling", 60 * MINUTE, 20 * MINUTE),
    Session("visits", 10 * MINUTE),
    Count("pairs", 2),
)
PLACES = (
    *("run.locked", "run.prepared", "batch.begun", "batch.intended", "batch.judged"),
    *("batch.processed", "batch.done", "run.drained", "run.closed"),
)


def compact_at(place: str, lab: Lab) -> Callable[[str], None]:
    """Compacts and vacuums the source when a run comes to `place`."""
    table = str(lab.root / "source")

    def compact(name: str) -> None:
        if name == place:
            before = delta_log.version(lab.spark, Location(table))
            upkeep.compact_files(lab.spark, Location(table))
            assert delta_log.version(lab.spark, Location(table)) == before + 1
            # No file is deleted that a reader of the last week may need.
            lab.spark.sql(f"vacuum delta.`{table}`")

    return compact


@pytest.mark.deep
def test_a_source_that_is_compacted_while_it_is_read_loses_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, WINDOWS, lateness=60 * MINUTE, delay=10 * MINUTE)
    for n, place in enumerate(PLACES):
        for half in range(2):
            # Two commits, each a file of its own, so that there is something to compact.
            at = BASE + (n * 30 + half) * MINUTE
            events = [Event(key, at, n, f"{key}{n}{half}", half) for key in "ab"]
            lab.land_by_spark(events)
        with armed(compact_at(place, lab)):
            lab.run_over(lab.landed[-4:])
    lab.check()
