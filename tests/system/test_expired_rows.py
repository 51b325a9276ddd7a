"""What is counted, and what is expected of outputs, where rows of state or outputs have expired."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.backfill import backfill
from jobs.maintain import maintain
from jobs.reconcile import check_range
from jobs.validate import validate
from tests.oracle import Event, Tumbling
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.pipeline_under_test import FEW, SCHEMA, Lab
from windowing.grid.zone import moment
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.storage import delta

pytestmark = pytest.mark.deep
HOUR, DAY = 60 * MINUTE, 1440 * MINUTE
HOURLY = Tumbling("hourly", HOUR)
FIVE_DAYS = [Event("a", BASE + n * HOUR, 1, f"e{n}", n) for n in range(120)]


def respecify(lab: Lab, **fields: Any) -> None:
    """The spec of the lab with other fields; those of `source` are added to its own."""
    spec = lab.spec()
    source = spec["source"] | fields.pop("source", {})
    lab.pipeline = load_pipeline(spec | fields | {"source": source})


def count_accepted(lab: Lab) -> int:
    """How many events the ledger counts as accepted."""
    return read_history(lab.pipeline).total("accepted")


def expired(lab: Lab) -> dict[str, int]:
    """How many rows of each table a maintenance lets expire."""
    return {tended.name: tended.expired for tended in maintain(lab.spark, lab.pipeline).tables}


def check_valid(lab: Lab) -> None:
    """The outputs are those that the ledger's counts let expect."""
    found = validate(lab.spark, lab.pipeline)
    assert found.passed, list(found.failed)


def test_a_changed_source_is_counted_where_state_has_expired(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, (HOURLY,), lateness=HOUR, shows=FEW)
    source = Location(str(tmp_path / "source"))
    feed = {"delta.enableChangeDataFeed": "true"}
    delta.create(spark, source, delta.rows(spark, [], SCHEMA).schema, feed)
    respecify(lab, source={"changes": "feed"}, retention={"state": "1 day"})
    lab.land(FIVE_DAYS)
    lab.go()
    assert expired(lab)["_panes_1h"] == 95
    spark.sql(f"update delta.`{source}` set value = value + 1")
    lab.go()
    assert count_accepted(lab) == 120
    check_valid(lab)
    assert expired(lab)["_panes_1h"] == 95
    spark.sql(f"delete from delta.`{source}` where id = 'e3'")
    lab.go()
    assert count_accepted(lab) == 119
    check_valid(lab)


def test_rows_that_expired_by_an_earlier_spec_are_not_expected(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, (HOURLY,), shows=FEW)
    respecify(lab, retention={"output": "2 days"})
    lab.land(FIVE_DAYS)
    lab.go()
    assert expired(lab)["hourly"] == 71
    check_valid(lab)
    respecify(lab)
    lab.land([Event("a", BASE + 120 * HOUR, 1, "later")])
    lab.go()
    check_valid(lab)


def test_a_check_counts_events_that_no_output_shows(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, (HOURLY,), lateness=HOUR, shows=FEW)
    few = {"hourly": {"kind": "tumbling", "size": "1 hour", "having": "n < 1"}}
    respecify(lab, windows=few, retention={"state": "1 day"})
    lab.land(FIVE_DAYS)
    lab.go()
    assert expired(lab)["_panes_1h"] == 95
    start, end = moment(BASE), moment(BASE + DAY)
    assert check_range(spark, lab.pipeline, start, end).accepted == 0
    backfill(spark, lab.pipeline, start, end)
    assert count_accepted(lab) == 120
