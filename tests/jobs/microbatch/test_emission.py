"""Outputs that wait for the watermark: the rows they show are derived by hand from the law.

Each test says in a line which windows W has passed: those with an end <= W.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.microbatch.context import RunContext
from jobs.microbatch.emission import bound_panes, emit_outputs
from jobs.microbatch.process import partial_of
from jobs.microbatch.sessions import FragmentBatch
from tests.support.counted_changes import count_rows, wrote
from tests.support.small_lake import Row, SmallLake, small_lake
from windowing.panes.rule import pane_families
from windowing.spec.kinds import Aligned
from windowing.storage import own_tables

TENS = {"kind": "tumbling", "size": "10 minutes", "emit": "on_close"}
STEPS = {"kind": "sliding", "size": "20 minutes", "slide": "10 minutes", "emit": "changes"}
VISITS = {"kind": "session", "gap": "10 minutes", "emit": "on_close"}


def store(lake: SmallLake, batch: RunContext, *events: Row) -> None:
    """Stores the panes that the events add."""
    partial_of(batch, lake.admit(batch, *events), lake.family()).store()


def test_a_window_appears_when_w_passes_its_end_and_is_corrected_later(
    spark: SparkSession, tmp_path: Path
) -> None:
    """L is forever. W = 20 passes [0, 10) and [10, 20), W = 30 also [20, 30)."""
    lake = small_lake(spark, tmp_path, {"tens": TENS})
    store(lake, lake.batch(0), ("e1", "a", 5, 1), ("e2", "a", 15, 2), ("e3", "b", 20, 4))
    assert emit_outputs(lake.closing(1, None, None)) == {}
    assert count_rows(emit_outputs(lake.closing(1, None, 20, (5, 20)))) == wrote("tens", 2)
    first = [("a", 0, 10, 1, 1, 0, 1), ("a", 10, 20, 1, 2, 0, 1)]
    assert lake.rows("tens") == first
    before = lake.version("tens")
    assert count_rows(emit_outputs(lake.closing(1, None, 20, (5, 20)))) == wrote("tens", 0)
    assert lake.version("tens") == before
    store(lake, lake.batch(1, watermark=20), ("e4", "a", 6, 8), ("e5", "b", 40, 16))
    assert count_rows(emit_outputs(lake.closing(2, 20, 30, (6, 40)))) == wrote("tens", 1, 1)
    assert lake.rows("tens") == [
        ("a", 0, 10, 2, 9, 1, 2),
        ("a", 10, 20, 1, 2, 0, 1),
        ("b", 20, 30, 1, 4, 0, 2),
    ]


def test_changes_shows_the_windows_that_differ_from_the_one_before_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    """a: 5 is in [-10, 10) and [0, 20), which are equal, so [0, 20) is not shown.

    In [10, 30) it has slid out: 0 events. c moves W to 30 and is not closed itself.
    Then 15 is added: it makes [0, 20) two events, and [10, 30) one.
    """
    lake = small_lake(spark, tmp_path, {"steps": STEPS})
    store(lake, lake.batch(0), ("e1", "a", 5, 1), ("e2", "c", 30, 2))
    assert count_rows(emit_outputs(lake.closing(1, None, 30, (5, 30)))) == wrote("steps", 2)
    assert lake.rows("steps") == [("a", -10, 10, 1, 1, 0, 1), ("a", 10, 30, 0, None, 0, 1)]
    store(lake, lake.batch(1, watermark=30), ("e3", "a", 15, 4))
    assert count_rows(emit_outputs(lake.closing(2, 30, 30, (15, 15)))) == wrote("steps", 1, 1)
    assert lake.rows("steps") == [
        ("a", -10, 10, 1, 1, 0, 1),
        ("a", 0, 20, 2, 5, 0, 2),
        ("a", 10, 30, 1, 4, 1, 2),
    ]


def test_a_correction_deletes_a_change_that_is_none_any_more(
    spark: SparkSession, tmp_path: Path
) -> None:
    """max: 5 has 3 and 15 has 7, so [0, 20) differs from [-10, 10). Then 6 has 7 too.

    Now [-10, 10), [0, 20) and [10, 30) all have 7, and only the first of them is a change.
    """
    lake = small_lake(spark, tmp_path, {"steps": STEPS}, aggregates={"most": "max(value)"})
    store(lake, lake.batch(0), ("e1", "a", 5, 3), ("e2", "a", 15, 7))
    lake.fill("steps", ("a", -10, 10, 3, 0, 1), ("a", 0, 20, 7, 0, 1), ("a", 20, 40, None, 0, 1))
    store(lake, lake.batch(1, watermark=40), ("e3", "a", 6, 7))
    assert count_rows(emit_outputs(lake.closing(2, 40, 40, (6, 6)))) == wrote("steps", 0, 1, 1)
    assert lake.rows("steps") == [("a", -10, 10, 7, 1, 2), ("a", 20, 40, None, 0, 1)]


def test_an_event_that_is_late_for_all_windows_changes_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    """5 is in [-10, 10) and [0, 20), and W = 500 is past both. The global window accepts it.

    The row of [10, 30) is what panes gave that have expired since.
    """
    windows = {"steps": STEPS, "ever": {"kind": "global"}}
    lake = small_lake(spark, tmp_path, windows, lateness="10 minutes")
    lake.fill("steps", ("a", 10, 30, 5, 9, 0, 1))
    batch = lake.batch(1, watermark=500)
    admitted = lake.admit(batch, ("e1", "a", 5, 1))
    for family in pane_families(lake.pipeline):
        partial_of(batch, admitted, family).store()
    assert count_rows(emit_outputs(lake.closing(2, 500, 500, (5, 5)))) == wrote("steps", 0)
    assert lake.rows("steps") == [("a", 10, 30, 5, 9, 0, 1)]


def test_empty_windows_appear_up_to_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    """a: 5 and 35. W = 25 passes [0, 10) and [10, 20), W = 40 also [20, 30) and [30, 40)."""
    lake = small_lake(spark, tmp_path, {"tens": {**TENS, "empty": True}})
    store(lake, lake.batch(0), ("e1", "a", 5, 1), ("e2", "a", 35, 2))
    assert count_rows(emit_outputs(lake.closing(1, None, 25, (5, 35)))) == wrote("tens", 2)
    assert lake.rows("tens") == [("a", 0, 10, 1, 1, 0, 1), ("a", 10, 20, 0, None, 0, 1)]
    assert count_rows(emit_outputs(lake.closing(2, 25, 40))) == wrote("tens", 2)
    assert lake.rows("tens")[2:] == [("a", 20, 30, 0, None, 0, 2), ("a", 30, 40, 1, 2, 0, 2)]


@pytest.mark.slow
def test_a_session_that_grows_beyond_w_disappears_until_w_passes_it_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    """[0, 15) is shown at W = 15. 15 touches it, so it is [0, 25) now, open until W = 25."""
    lake = small_lake(spark, tmp_path, {"visits": VISITS})
    (window,) = lake.pipeline.sessions

    def accept(batch: RunContext, *events: Row) -> None:
        part = partial_of(batch, lake.admit(batch, *events), window)
        assert isinstance(part, FragmentBatch)
        part.store()
        assert [step() for prepare in part.outputs() for step in prepare()] == [{}]

    accept(lake.batch(0), ("e1", "a", 0, 1), ("e2", "a", 5, 2))
    assert count_rows(emit_outputs(lake.closing(1, None, 15, (0, 5)))) == wrote("visits", 1)
    # [key, start, end, last event, n, total, revision, run]
    assert lake.rows("visits") == [("a", 0, 15, 5, 2, 3, 0, 1)]
    accept(lake.batch(1, watermark=15), ("e3", "a", 15, 4))
    assert lake.rows("visits") == [("a", 0, 15, 5, 2, 3, 0, 1)]
    assert count_rows(emit_outputs(lake.closing(2, 15, 16, (15, 15)))) == wrote("visits", 0, 0, 1)
    assert lake.rows("visits") == []
    assert count_rows(emit_outputs(lake.closing(3, 16, 25))) == wrote("visits", 1)
    assert lake.rows("visits") == [("a", 0, 25, 15, 3, 7, 0, 3)]


def test_nothing_is_emitted_where_the_run_accepted_nothing_and_w_stays(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = small_lake(spark, tmp_path, {"tens": TENS}, created=())
    store(lake, lake.batch(0), ("e1", "a", 5, 1))
    # Without this shortcut the missing output would be an error.
    assert emit_outputs(lake.closing(2, 20, 20)) == {}


def test_files_of_panes_that_no_shown_window_has_are_not_opened(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = small_lake(spark, tmp_path, {"tens": TENS})
    for number, minute in enumerate((5, 505)):
        store(lake, lake.batch(number), (f"e{number}", "a", minute, 1))
    (window,) = lake.pipeline.windows
    assert isinstance(window, Aligned)
    panes = own_tables.open_snapshot(lake.pipeline.table(lake.family().table))
    opened = []
    for closing in (lake.closing(2, 500, 510, (495, 505)), lake.closing(2, None, 510, (495, 505))):
        files = own_tables.choose_files(panes, bound_panes(closing, window))
        assert files is not None
        opened.append(len(files))
    assert opened == [1, 2]
