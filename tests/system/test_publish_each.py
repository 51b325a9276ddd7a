"""With `publish: each` an output that fails is held back, and the others go on without it.

Two outputs of one pipeline, of which the suite looks at one. What readers see of both is compared
with what was computed by hand. The steps share a lake and follow each other.
"""

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tidemark
from jobs.show import Wanted, show_windows
from tests.support.trips_with_suite import SPEC, Trips, at, make_trips
from windowing.ledger.table import read_history

pytestmark = pytest.mark.slow

TWO = (
    SPEC.replace("  hourly:", "  daily: {kind: tumbling, size: 1 day}\n  hourly:")
    + "publish: each\n"
)


def published(trips: Trips, *words: str, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(trips("publish", *words, "--json", code=code).stdout)
    return found


def read_counts(trips: Trips, window: str) -> dict[str, int]:
    """By place the events that readers see in an output."""
    rows = tidemark.read(trips.spark, trips.pipeline, window).collect()
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["place"]] = counts.get(row["place"], 0) + row["n"]
    return counts


@pytest.fixture(scope="module")
def trips(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Trips:
    """One run whose hourly output breaks the suite, and which is validated."""
    trips = make_trips(spark, tmp_path_factory.mktemp("trips"))
    trips.spec.write_text(TWO)
    trips("run", "--validate")
    return trips


def test_an_output_that_was_never_published_is_left_out(trips: Trips) -> None:
    trips("validate", code=3)
    found = published(trips)
    assert {name: out["run"] for name, out in found["outputs"].items()} == {"daily": 1}
    assert found["held"] == {"hourly": ["expect_column_values_to_be_between(n)"]}
    assert read_counts(trips, "daily") == {"EWR": 2, "JFK": 1}
    with pytest.raises(tidemark.UsageError, match="hourly has not been published yet"):
        tidemark.read(trips.spark, trips.pipeline, "hourly")


def test_nothing_is_recorded_twice_for_what_readers_see_already(trips: Trips) -> None:
    before = read_history(trips.pipeline).published
    printed = trips("publish").stdout
    assert "hourly is held back, because it fails expect_column_values_to_be_between(n)" in printed
    assert "; readers see nothing of it" in printed
    assert read_history(trips.pipeline).published == before


def test_once_it_passes_it_is_published_with_the_others(trips: Trips) -> None:
    trips.expect(2)
    trips("validate")
    found = published(trips)
    assert {name: out["run"] for name, out in found["outputs"].items()} == {"daily": 1, "hourly": 1}
    assert found["held"] == {}
    assert read_history(trips.pipeline).is_published


def test_held_back_again_it_stays_as_it_was_and_closes_by_its_own_run(trips: Trips) -> None:
    trips.land(("d", "EWR", at(4), 1), ("e", "JFK", at(200), 1))
    trips("run", "--validate")
    assert "; readers see run 1" in trips("publish").stdout
    found = published(trips)
    assert {name: out["run"] for name, out in found["outputs"].items()} == {"daily": 2, "hourly": 1}
    assert (found["run"], [*found["held"]]) == (2, ["hourly"])
    assert read_counts(trips, "daily") == {"EWR": 3, "JFK": 2}
    assert read_counts(trips, "hourly") == {"EWR": 2, "JFK": 1}
    # The watermark of run 1 was 6:03, that of run 2 is 9:20.
    hourly = tidemark.read(trips.spark, trips.pipeline, "hourly").collect()
    assert {row["is_closed"] for row in hourly} == {False}
    seen = show_windows(
        trips.spark,
        trips.pipeline,
        trips.pipeline.window("hourly"),
        Wanted(),
        published=True,
        as_of=None,
    )
    assert seen.version is not None
    assert seen.version.run == 1
    assert {row["is_closed"] for row in seen.rows.rows} == {False}
    pointer = json.loads(trips.pipeline.table("_published.json").local.read_text())
    shown = [{**output, "changes": None} for output in pointer["outputs"].values()]
    assert shown == [{**output, "changes": None} for output in found["outputs"].values()]


def test_a_run_that_leaves_it_broken_brings_the_others_on(trips: Trips) -> None:
    trips.land(("f", "LGA", at(210), 1))
    ran = json.loads(trips("run", "--validate", "--json").stdout)
    assert ran["published"] is False
    found = published(trips)
    assert {name: out["run"] for name, out in found["outputs"].items()} == {"daily": 3, "hourly": 1}
    assert read_counts(trips, "hourly") == {"EWR": 2, "JFK": 1}


def test_a_reason_publishes_it_with_the_others(trips: Trips) -> None:
    found = published(trips, "--accept", "three are usual")
    assert {name: out["run"] for name, out in found["outputs"].items()} == {"daily": 3, "hourly": 3}
    assert (found["held"], found["accepted"]) == ({}, "three are usual")
    assert read_counts(trips, "hourly") == {"EWR": 3, "JFK": 2, "LGA": 1}
    trips("validate")


def test_where_every_output_fails_nothing_is_published(trips: Trips) -> None:
    folder = trips.root / "expectations"
    suite = (folder / "trips.yaml").read_text()
    (folder / "trips.yaml").write_text(suite + suite.replace("hourly:", "daily:"))
    trips.land(("g", "EWR", at(6), 1))
    trips("run", "--validate")
    before = read_history(trips.pipeline).published
    assert "nothing published" in trips("publish", code=3).stderr
    assert read_history(trips.pipeline).published == before
