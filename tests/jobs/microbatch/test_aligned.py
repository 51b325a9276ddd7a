"""The panes of one batch and the windows they touch: expected rows are derived by hand.

[0, 10) means the minutes 0 to 10 after 1970.
"""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.microbatch.aligned import PaneBatch
from jobs.microbatch.context import RunContext
from jobs.microbatch.parallel import run_parallel
from jobs.microbatch.process import partial_of
from tests.support.counted_changes import count_rows, wrote
from tests.support.small_lake import Row, SmallLake, small_lake
from windowing.errors import StateRefused

TENS = {"kind": "tumbling", "size": "10 minutes"}
TWENTIES = {"kind": "sliding", "size": "20 minutes", "slide": "10 minutes"}
PANES = "_panes_10m"
STATE = ("key", "pane_start", "rows", "run", "batch", "judged_by")


def panes_of(lake: SmallLake, batch: RunContext, *events: Row) -> PaneBatch:
    """What the events add to the only family."""
    found = partial_of(batch, lake.admit(batch, *events), lake.family())
    assert isinstance(found, PaneBatch)
    return found


def write(part: PaneBatch) -> dict[str, int]:
    """Stores the panes, then computes and writes the outputs, as a retry may."""
    part.store()
    counts: dict[str, int] = {}
    steps = [step for prepared in run_parallel(part.outputs()) for step in prepared]
    for changed in run_parallel(steps):
        counts |= changed
    return counts


@pytest.fixture(scope="module")
def grids(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    """Two windows of one family, and two batches, the second in a run of its own.

    Batch 0 accepts a: 1, 2, 15 and b: 31. Batch 1 accepts a: 5, in the panes of 0.
    """
    windows = {"tens": TENS, "twenties": TWENTIES}
    return small_lake(spark, tmp_path_factory.mktemp("grids"), windows)


def test_windows_are_joined_that_contain_a_stored_pane_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The pane of 0 is stored, and [0, 20) contains 10 too; no window contains 0 and 20."""
    lake = small_lake(spark, tmp_path, {"tens": TENS, "twenties": TWENTIES})
    first = panes_of(lake, lake.batch(0), ("e1", "a", 9, 1))
    assert first.joined == frozenset()
    first.store()
    assert panes_of(lake, lake.batch(1), ("e2", "a", 10, 1)).joined == {"twenties"}
    assert panes_of(lake, lake.batch(1), ("e3", "a", 20, 1)).joined == frozenset()
    assert panes_of(lake, lake.batch(1), ("e4", "a", 2, 1)).joined == {"tens", "twenties"}


def test_an_event_is_in_one_pane_and_in_every_window_over_it(grids: SmallLake) -> None:
    """sum: a has 1 + 2 in the pane of 0 and 4 in that of 10.

    The sliding windows over a pane begin with it and 10 minutes before it.
    """
    part = panes_of(
        grids,
        grids.batch(0),
        ("e1", "a", 1, 1),
        ("e2", "a", 2, 2),
        ("e3", "a", 15, 4),
        ("e4", "b", 31, 8),
    )
    assert part.check() == {}
    assert count_rows(write(part)) == wrote("tens", 3) | wrote("twenties", 5)
    assert grids.rows(PANES, *STATE) == [
        ("a", 0, 2, 1, 0, None),
        ("a", 10, 1, 1, 0, None),
        ("b", 30, 1, 1, 0, None),
    ]
    assert grids.rows("tens") == [
        ("a", 0, 10, 2, 3, 0, 1),
        ("a", 10, 20, 1, 4, 0, 1),
        ("b", 30, 40, 1, 8, 0, 1),
    ]
    assert grids.rows("twenties") == [
        ("a", -10, 10, 2, 3, 0, 1),
        ("a", 0, 20, 3, 7, 0, 1),
        ("a", 10, 30, 1, 4, 0, 1),
        ("b", 20, 40, 1, 8, 0, 1),
        ("b", 30, 50, 1, 8, 0, 1),
    ]


def test_a_retried_batch_adds_no_pane_and_rewrites_no_window(grids: SmallLake) -> None:
    events = (("e1", "a", 1, 1), ("e2", "a", 2, 2), ("e3", "a", 15, 4), ("e4", "b", 31, 8))
    before = [grids.version(table) for table in (PANES, "tens", "twenties")]
    counts = write(panes_of(grids, grids.batch(0), *events))
    assert count_rows(counts) == wrote("tens", 0) | wrote("twenties", 0)
    assert [grids.version(table) for table in (PANES, "tens", "twenties")] == before


def test_a_later_event_corrects_the_windows_it_is_in_and_no_other(grids: SmallLake) -> None:
    """5 is in [0, 10), and in [-10, 10) and [0, 20): one more event of value 16 each."""
    counts = write(panes_of(grids, grids.batch(1, watermark=3), ("e5", "a", 5, 16)))
    assert count_rows(counts) == wrote("tens", 0, 1) | wrote("twenties", 0, 2)
    assert grids.rows(PANES, *STATE) == [
        ("a", 0, 1, 2, 1, 3),
        ("a", 0, 2, 1, 0, None),
        ("a", 10, 1, 1, 0, None),
        ("b", 30, 1, 1, 0, None),
    ]
    assert grids.rows("tens") == [
        ("a", 0, 10, 3, 19, 1, 2),
        ("a", 10, 20, 1, 4, 0, 1),
        ("b", 30, 40, 1, 8, 0, 1),
    ]
    assert grids.rows("twenties") == [
        ("a", -10, 10, 3, 19, 1, 2),
        ("a", 0, 20, 4, 23, 1, 2),
        ("a", 10, 30, 1, 4, 0, 1),
        ("b", 20, 40, 1, 8, 0, 1),
        ("b", 30, 50, 1, 8, 0, 1),
    ]


def test_an_event_counts_only_in_windows_that_it_is_not_late_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    """W - L = 20: [0, 20) is late for 15, [10, 30) is not. 16 was judged by no W.

    5 is in [-10, 10) as well, which 16 does not touch.
    """
    lake = small_lake(spark, tmp_path, {"twenties": TWENTIES}, lateness="10 minutes")
    panes_of(lake, lake.batch(0), ("e1", "a", 5, 1)).store()
    panes_of(lake, lake.batch(1, watermark=30), ("e2", "a", 15, 2)).store()
    assert count_rows(write(panes_of(lake, lake.batch(2), ("e3", "a", 16, 4)))) == wrote(
        "twenties", 2
    )
    assert lake.rows("twenties") == [("a", 0, 20, 2, 5, 0, 3), ("a", 10, 30, 2, 6, 0, 3)]


def test_a_global_window_recomputes_only_keys_with_new_panes(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = small_lake(spark, tmp_path, {"all": {"kind": "global"}})
    panes_of(lake, lake.batch(0), ("e1", "a", 5, 1), ("e2", "b", 6, 2)).store()
    lake.fill("all", ("a", None, None, 1, 1, 0, 1), ("b", None, None, 1, 2, 0, 1))
    # Panes of a global window are months: 50,000 minutes after the beginning is February.
    batch = RunContext(spark, lake.pipeline, lake.batch(1).stamp, 50_000 * 60_000_000)
    assert count_rows(write(panes_of(lake, batch, ("e3", "a", 50_000, 4)))) == wrote("all", 0, 1)
    assert lake.rows("_panes_global", *STATE) == [
        ("a", 0, 1, 1, 0, None),
        ("a", 31 * 1440, 1, 2, 1, None),
        ("b", 0, 1, 1, 0, None),
    ]
    assert lake.rows("all") == [("a", None, None, 2, 5, 1, 2), ("b", None, None, 1, 2, 0, 1)]


def test_outputs_that_wait_for_the_watermark_have_no_step(
    spark: SparkSession, tmp_path: Path
) -> None:
    windows: dict[str, dict[str, Any]] = {
        "tens": {**TENS, "emit": "on_close"},
        "steps": {**TWENTIES, "emit": "changes"},
    }
    lake = small_lake(spark, tmp_path, windows)
    part = panes_of(lake, lake.batch(0), ("e1", "a", 5, 1))
    assert part.outputs() == []
    assert write(part) == {}
    assert lake.rows(PANES, *STATE) == [("a", 0, 1, 1, 0, None)]
    assert lake.rows("tens") == []


@pytest.mark.slow
def test_empty_windows_lie_between_the_events_of_a_key_and_have_a_limit(
    spark: SparkSession, tmp_path: Path
) -> None:
    """a: 5 and 35 leave [10, 20) and [20, 30) empty; b has one event and none.

    125 would add the eight windows from 40 to 120, more than 3.
    """
    windows = {"tens": {**TENS, "empty": True, "empty_limit": 3}}
    lake = small_lake(spark, tmp_path, windows)
    first = panes_of(
        lake, lake.batch(0), ("e1", "a", 5, 1), ("e2", "a", 35, 2), ("e3", "b", 100, 4)
    )
    assert first.check() == {"tens.empty": 2}
    assert count_rows(write(first)) == wrote("tens", 5)
    assert lake.rows("tens") == [
        ("a", 0, 10, 1, 1, 0, 1),
        ("a", 10, 20, 0, None, 0, 1),
        ("a", 20, 30, 0, None, 0, 1),
        ("a", 30, 40, 1, 2, 0, 1),
        ("b", 100, 110, 1, 4, 0, 1),
    ]
    far = panes_of(lake, lake.batch(1), ("e4", "a", 125, 8))
    with pytest.raises(StateRefused, match="EMPTY_LIMIT: .* add 8 empty windows, more than 3"):
        far.check()


def test_a_window_that_stops_qualifying_is_deleted(spark: SparkSession, tmp_path: Path) -> None:
    """`n < 2`: [0, 10) of a gets a second event; that of c had two and gets a third."""
    lake = small_lake(spark, tmp_path, {"quiet": {**TENS, "having": "n < 2"}})
    events = [("a", 5, 1), ("b", 5, 2), ("c", 5, 4), ("c", 6, 4)]
    panes_of(lake, lake.batch(0), *(("e", *event) for event in events)).store()
    lake.fill("quiet", ("a", 0, 10, 1, 1, 0, 1), ("b", 0, 10, 1, 2, 0, 1))
    second = panes_of(lake, lake.batch(1), ("e", "a", 6, 8), ("e", "c", 7, 8), ("e", "d", 8, 8))
    assert count_rows(write(second)) == wrote("quiet", 1, 0, 1)
    assert lake.rows("quiet") == [("b", 0, 10, 1, 2, 0, 1), ("d", 0, 10, 1, 8, 0, 2)]
