"""What was published although it failed stays accepted, until another row fails.

A place with more than one trip in an hour breaks the suite. The steps share a lake and follow each
other, as the runs of some days do.
"""

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.backfill import backfill
from tests.support.trips_with_suite import Trips, at, make_trips
from windowing.ledger.table import read_history

pytestmark = pytest.mark.slow

BETWEEN = "expect_column_values_to_be_between(n)"


def failed(trips: Trips, *words: str, code: int = 0) -> list[dict[str, Any]]:
    """The failed expectations of the newest run; `validate` ended with `code`."""
    found: list[dict[str, Any]] = json.loads(trips("validate", *words, "--json", code=code).stdout)[
        "failed"
    ]
    return found


def reasons(trips: Trips) -> list[str | None]:
    return [each["accepted"] for each in failed(trips)]


@pytest.fixture(scope="module")
def trips(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Trips:
    """One run, in which EWR had two trips between six and seven, published all the same."""
    trips = make_trips(spark, tmp_path_factory.mktemp("trips"))
    trips("run", "--validate")
    (broken,) = failed(trips, code=3)
    assert (broken["expectation"], broken["accepted"]) == (BETWEEN, None)
    failing = f"see the rows with `tidemark validate {trips.spec} --failing`, repair"
    assert failing in trips("publish", code=3).stderr
    trips("publish", "--accept", "two cars are usual")
    return trips


def test_what_readers_use_is_accepted(trips: Trips) -> None:
    assert reasons(trips) == ["two cars are usual"]
    printed = trips("validate").stdout
    assert "accepted: two cars are usual" in printed
    assert "accepted: two cars are usual" in report_of(trips)


def report_of(trips: Trips) -> str:
    trips("report")
    return trips.pipeline.table("_report.html").local.read_text()


def test_it_stays_accepted_after_runs_that_change_other_windows(trips: Trips) -> None:
    trips.land(("d", "JFK", at(70), 4))
    ran = trips("run", "--validate", "--json")
    assert "1 expectation of" in ran.stderr
    assert "refuses" not in ran.stderr
    published = json.loads(trips("publish", "--json").stdout)
    assert (published["run"], published["accepted"]) == (2, "two cars are usual")
    assert reasons(trips) == ["two cars are usual"]


def test_it_stays_accepted_where_a_backfill_computed_the_same_rows_again(trips: Trips) -> None:
    backfill(trips.spark, trips.pipeline, at(0), at(60))
    assert reasons(trips) == ["two cars are usual"]


def test_another_row_that_fails_is_not_accepted(trips: Trips) -> None:
    trips.land(("e", "JFK", at(4), 1))
    trips("run", "--validate")
    (broken,) = failed(trips, code=3)
    assert (broken["detail"], broken["accepted"]) == ("min_value=1.0, max_value=1.0", None)
    listed = json.loads(trips("validate", "--failing", "--json", code=3).stdout)["failing"]
    (rows,) = [each["failing"] for each in listed]
    hour = {"window_start": "2013-01-01T06:00:00+00:00", "window_end": "2013-01-01T07:00:00+00:00"}
    assert rows == {
        "total": 2,
        "rows": [{"place": "EWR", **hour, "n": 2}, {"place": "JFK", **hour, "n": 2}],
    }
    trips("publish", "--accept", "JFK as well")
    note = read_history(trips.pipeline).acceptance
    assert note is not None
    assert note.reason == "JFK as well"
    assert reasons(trips) == ["JFK as well"]


def test_an_accepted_window_that_changes_is_looked_at_again(trips: Trips) -> None:
    trips.land(("f", "EWR", at(5), 9))
    trips("run", "--validate")
    (broken,) = failed(trips, code=3)
    assert broken["accepted"] is None
    trips("publish", "--accept", "three even")
    assert reasons(trips) == ["three even"]


def test_a_stricter_limit_was_not_accepted(trips: Trips) -> None:
    trips.expect(0)
    (broken,) = failed(trips, code=3)
    assert broken["accepted"] is None
    trips.expect(1)
    assert reasons(trips) == ["three even"]


def test_nothing_stays_accepted_once_all_has_passed(trips: Trips) -> None:
    trips.expect(3)
    trips.land(("g", "LGA", at(6), 2))
    trips("run", "--validate")
    assert json.loads(trips("publish", "--json").stdout)["accepted"] is None
    assert read_history(trips.pipeline).acceptance is None
    trips.expect(1)
    (broken,) = failed(trips, code=3)
    assert broken["accepted"] is None


def test_rows_that_fail_are_printed_as_people_read_them(trips: Trips) -> None:
    printed = trips("validate", "--failing", "--limit", "1", code=3).stdout
    _, _, table = printed.partition("hourly fails ")
    lines = [line.split() for line in table.splitlines() if line.strip()]
    assert table.startswith(f"{BETWEEN}: 1 of 2 rows; --limit shows more\n")
    assert lines[1] == ["place", "window", "n"]
    assert (lines[3][0], lines[3][-1]) == ("EWR", "3")


def test_a_run_that_passes_has_no_failing_rows(trips: Trips) -> None:
    trips.expect(3)
    found = json.loads(trips("validate", "--failing", "--json").stdout)
    assert (found["passed"], found["failing"]) == (True, [])
