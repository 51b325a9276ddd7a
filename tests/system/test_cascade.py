"""A pipeline that reads what another one has published, and nothing else of it."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.maintain import maintain
from jobs.publish import publish, roll_back
from jobs.run import run
from tests.oracle import Event, Tumbling
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.met_expectations import record_met
from tests.support.pipeline_under_test import Lab
from tests.support.stored_rows import read_stored
from windowing.errors import SourceMissing, SpecError
from windowing.ledger.rule import PUBLISH
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.merge.rule import published_name
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline


def follow(lab: Lab, table: str) -> Pipeline:
    """A pipeline that sums the hours of another one to days."""
    spec: dict[str, Any] = {
        "name": "days",
        "lake": str(lab.root / "lake"),
        "source": {
            "table": str(lab.pipeline.table(table)),
            "event_time": "window_start",
            "key": ["key"],
            "changes": "feed",
        },
        "watermark": {"delay": "0 seconds", "max_future": "36500 days"},
        "aggregates": {"n": "sum(n)"},
        "windows": {"daily": {"kind": "tumbling", "size": "1 day"}},
    }
    return load_pipeline(spec)


def list_days(lab: Lab, table: Location) -> list[tuple[tuple[str, int], int]]:
    """Key and day of the rows of a table, and their count."""
    rows = read_stored(lab.spark, table)
    found = rows.selectExpr("key", "unix_date(cast(window_start as date)) as day", "n").collect()
    return [((row["key"], row["day"]), row["n"]) for row in found]


def sum_published(lab: Lab) -> dict[tuple[str, int], int]:
    """The days as a loop over what is published has them."""
    days: dict[tuple[str, int], int] = {}
    for day, n in list_days(lab, lab.pipeline.table(published_name("hourly"))):
        days[day] = days.get(day, 0) + n
    return days


def read_days(lab: Lab, days: Pipeline) -> dict[tuple[str, int], int]:
    """The days as the pipeline has them."""
    found = list_days(lab, days.table("daily"))
    assert len(dict(found)) == len(found)
    return dict(found)


@pytest.mark.deep
def test_what_is_not_published_goes_no_further(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, (Tumbling("hourly", 60 * MINUTE),), shows=("n",))
    lab.run([Event("a", BASE, 1, "a1"), Event("b", BASE + 70 * MINUTE, 1, "b1")])
    with pytest.raises(SpecError, match="name .*published/hourly"):
        run(spark, follow(lab, "hourly"))
    days = follow(lab, published_name("hourly"))
    with pytest.raises(SourceMissing, match="nothing of hourly is published yet"):
        run(spark, days)
    record_met(lab.pipeline)
    publish(lab.pipeline, "first")
    run(spark, days)
    assert read_days(lab, days) == sum_published(lab) != {}
    before = read_days(lab, days)
    lab.run([Event("a", BASE + MINUTE, 1, "a2"), Event("a", BASE + 26 * 60 * MINUTE, 1, "a3")])
    run(spark, days)
    assert read_days(lab, days) == before, "nothing of it was published"
    record_met(lab.pipeline)
    publish(lab.pipeline, "second")
    run(spark, days)
    assert read_days(lab, days) == sum_published(lab) != before
    maintain(spark, lab.pipeline)
    assert run(spark, days).read == 0, "compacted files have no new row"
    first = next(e.seq for e in read_history(lab.pipeline).entries if e.step == PUBLISH)
    roll_back(lab.pipeline, first, "wrong")
    run(spark, days)
    assert read_days(lab, days) == before == sum_published(lab)
