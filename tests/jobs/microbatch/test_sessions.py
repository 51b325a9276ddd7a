"""The fragments of one batch and the sessions they touch: expected rows are derived by hand.

The gap is 10 minutes: neighbours at most so far apart belong together, and a session lasts from its
first event to 10 minutes after its last.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.microbatch.context import RunContext
from jobs.microbatch.process import partial_of
from jobs.microbatch.sessions import FragmentBatch
from tests.support.counted_changes import count_rows, wrote
from tests.support.small_lake import Row, SmallLake, just_after, small_lake

VISITS = {"visits": {"kind": "session", "gap": "10 minutes"}}
STATE = ("key", "first_event", "last_event", "rows", "run", "batch")
FRAGMENTS = "_fragments_visits"


def fragments_of(lake: SmallLake, batch: RunContext, *events: Row) -> FragmentBatch:
    """What the events add to the only session window."""
    (window,) = lake.pipeline.sessions
    found = partial_of(batch, lake.admit(batch, *events), window)
    assert isinstance(found, FragmentBatch)
    return found


def write(part: FragmentBatch) -> dict[str, int]:
    """Computes the sessions before the fragments are stored, and writes them afterwards."""
    (prepare,) = part.outputs()
    (step,) = prepare()
    part.store()
    return step()


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    """Three batches, each in a run of its own."""
    return small_lake(spark, tmp_path_factory.mktemp("visits"), VISITS)


FIRST: tuple[Row, ...] = (
    ("e1", "a", 0, 1),
    ("e2", "a", 10, 2),
    ("e3", "a", 30, 4),
    ("e4", "b", 0, 8),
    ("e5", "b", just_after(10), 16),
)


def test_exactly_the_gap_apart_is_one_session_and_a_microsecond_more_is_two(
    lake: SmallLake,
) -> None:
    assert count_rows(write(fragments_of(lake, lake.batch(0), *FIRST))) == wrote("visits", 4)
    late = just_after(10)
    assert lake.rows(FRAGMENTS, *STATE) == [
        ("a", 0, 10, 2, 1, 0),
        ("a", 30, 30, 1, 1, 0),
        ("b", 0, 0, 1, 1, 0),
        ("b", late, late, 1, 1, 0),
    ]
    # [key, start, end, last event, n, total, revision, run]
    assert lake.rows("visits") == [
        ("a", 0, 20, 10, 2, 3, 0, 1),
        ("a", 30, 40, 30, 1, 4, 0, 1),
        ("b", 0, 10, 0, 1, 8, 0, 1),
        ("b", late, just_after(20), late, 1, 16, 0, 1),
    ]


def test_a_retried_batch_adds_no_fragment_and_rewrites_no_session(lake: SmallLake) -> None:
    before = lake.version(FRAGMENTS), lake.version("visits")
    assert count_rows(write(fragments_of(lake, lake.batch(0), *FIRST))) == wrote("visits", 0)
    assert (lake.version(FRAGMENTS), lake.version("visits")) == before


def test_a_bridge_merges_two_sessions_and_deletes_the_absorbed_one(lake: SmallLake) -> None:
    """a: 20 is exactly the gap from 10 and from 30, so [0, 20) and [30, 40) become [0, 40).

    Its four events sum to 1 + 2 + 4 + 32. The sessions of b are not touched by a.
    """
    bridge = fragments_of(lake, lake.batch(1), ("e6", "a", 20, 32))
    assert count_rows(write(bridge)) == wrote("visits", 0, 1, 1)
    late = just_after(10)
    assert lake.rows("visits") == [
        ("a", 0, 40, 30, 4, 39, 1, 2),
        ("b", 0, 10, 0, 1, 8, 0, 1),
        ("b", late, just_after(20), late, 1, 16, 0, 1),
    ]


def test_an_earlier_first_event_makes_another_session_in_place_of_the_stored_one(
    lake: SmallLake,
) -> None:
    """A session is identified by its start: -10 begins [-10, 40) of a, and [0, 40) is deleted."""
    assert count_rows(write(fragments_of(lake, lake.batch(2), ("e7", "a", -10, 64)))) == wrote(
        "visits", 1, 0, 1
    )
    assert lake.rows("visits")[0] == ("a", -10, 40, 30, 5, 103, 0, 3)
    assert lake.rows(FRAGMENTS, *STATE)[:4] == [
        ("a", -10, -10, 1, 3, 2),
        ("a", 0, 10, 2, 1, 0),
        ("a", 20, 20, 1, 2, 1),
        ("a", 30, 30, 1, 1, 0),
    ]


def test_a_session_whose_values_stay_is_not_written(spark: SparkSession, tmp_path: Path) -> None:
    """5 lies inside [0, 10] and is less than the greatest value, 9."""
    lake = small_lake(spark, tmp_path, VISITS, aggregates={"most": "max(value)"})
    fragments_of(lake, lake.batch(0), ("e1", "a", 0, 9), ("e2", "a", 10, 1)).store()
    lake.fill("visits", ("a", 0, 20, 10, 9, 0, 1))
    before = lake.version("visits")
    assert count_rows(write(fragments_of(lake, lake.batch(1), ("e3", "a", 5, 3)))) == wrote(
        "visits", 0
    )
    assert lake.version("visits") == before
    assert lake.rows(FRAGMENTS, *STATE) == [("a", 0, 10, 2, 1, 0), ("a", 5, 5, 1, 2, 1)]


def test_events_that_are_late_for_sessions_make_no_fragment(
    spark: SparkSession, tmp_path: Path
) -> None:
    """L = 0 and W = 30: 20 + 10 <= 30, but its day is open, so it is accepted and partly late."""
    windows = {**VISITS, "days": {"kind": "tumbling", "size": "1 day"}}
    lake = small_lake(spark, tmp_path, windows, lateness="0 seconds", created=("visits",))
    part = fragments_of(lake, lake.batch(1, watermark=30), ("e1", "a", 20, 1), ("e2", "b", 21, 2))
    assert count_rows(write(part)) == wrote("visits", 1)
    assert lake.rows(FRAGMENTS, *STATE) == [("b", 21, 21, 1, 2, 1)]
    assert lake.rows("visits") == [("b", 21, 31, 21, 1, 2, 0, 2)]
