"""One batch through all stages: its counts, its tables, and the order of its effects."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.microbatch.process import process_batch
from tests.support.counted_changes import count_rows, wrote
from tests.support.small_lake import Row, SmallLake, small_lake
from windowing.crash import armed
from windowing.errors import StateRefused
from windowing.spec.duration import MINUTE

WINDOWS: dict[str, dict[str, Any]] = {
    "twenties": {"kind": "sliding", "size": "20 minutes", "slide": "10 minutes"},
    "pairs": {"kind": "count", "count": 2},
}
IDS = {"event_id": "id"}
STATE = ("_panes_10m", "_events", "_seen")
EVENTS: tuple[Row, ...] = (
    ("late", "a", -1, 1),
    ("partly", "a", 8, 2),
    ("ok", "a", 25, 4),
    ("ok", "a", 26, 8),
    ("bad", "a", None, 16),
)
"""With W = 20 and L = 10 what ended by 10 is late: of the windows over 8 only [0, 20) did not.

The last window over -1 is [-10, 10). Pairs are late for both. Of two copies the first counts.
"""


def places(step: Callable[[], object]) -> list[str]:
    """The named places that the step passes."""
    passed: list[str] = []
    with armed(passed.append):
        step()
    return passed


def counts() -> dict[str, int]:
    """The counts of `EVENTS`, admitted and not yet written."""
    return {
        "read": 5,
        "accepted": 2,
        "late": 1,
        "duplicate": 1,
        "quarantined": 1,
        "partial": 1,
        "partial.twenties": 1,
        "partial.pairs": 1,
        "min_event_time": 8 * MINUTE,
        "max_event_time": 25 * MINUTE,
    }


@pytest.mark.slow
def test_a_batch_is_judged_then_stored_then_shown(spark: SparkSession, tmp_path: Path) -> None:
    """Every table is written once: refused rows in one step, ids, panes, events, then windows.

    The retry admits the same rows, writes no table, and inserts nothing.
    """
    lake = small_lake(spark, tmp_path, WINDOWS, lateness="10 minutes", source=IDS)
    batch, rows = lake.batch(4, watermark=20), lake.frame(*EVENTS)
    found: dict[str, int] = {}
    passed = places(lambda: found.update(process_batch(batch, rows)))
    # The table of pairs with incomplete windows is no output yet, so it has no counts.
    assert count_rows(found) == counts() | wrote("twenties", 3)
    stored = ["batch.refused", "batch.remembered", *["state.stored"] * 3]
    assert passed[0] == "batch.judged"
    assert sorted(passed[1:6]) == sorted(stored)
    assert passed[6:] == ["output.corrected"] * 2
    _check_tables(lake)
    tables = [*STATE, "twenties", "_windows_pairs", "_late", "_duplicates", "_quarantine"]
    before = [lake.version(table) for table in tables]
    assert process_batch(batch, rows) == counts() | wrote("twenties", 0)
    assert [lake.version(table) for table in tables] == before


def _check_tables(lake: SmallLake) -> None:
    late = ("id", "outcome", "run", "batch", "watermark", "resolved_by")
    assert lake.rows("_late", *late) == [
        ("late", "late", 5, 4, 20, None),
        ("partly", "partial", 5, 4, 20, None),
    ]
    assert lake.rows("_duplicates", "id", "event_time") == [("ok", 26)]
    assert lake.rows("_quarantine", "id", "event_time") == [("bad", None)]
    assert lake.rows("_seen", "event_id", "event_time", "run") == [
        ("ok", 25, 5),
        ("partly", 8, 5),
    ]
    assert lake.rows("twenties") == [
        ("a", 0, 20, 1, 2, 0, 5),
        ("a", 10, 30, 1, 4, 0, 5),
        ("a", 20, 40, 1, 4, 0, 5),
    ]
    pairs = ("key", "window_start", "n", "total", "closed_by", "run")
    assert lake.rows("_windows_pairs", *pairs) == [("a", 25, 1, 4, None, 5)]


def test_a_batch_that_accepts_nothing_stores_only_refused_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = small_lake(spark, tmp_path, WINDOWS, lateness="10 minutes", source=IDS, created=())
    batch, rows = lake.batch(0, watermark=20), lake.frame(EVENTS[0], EVENTS[4])
    found: dict[str, int] = {}
    assert places(lambda: found.update(process_batch(batch, rows))) == [
        "batch.judged",
        "batch.refused",
    ]
    nothing = {"accepted": 0, "duplicate": 0, "partial": 0}
    by_window = {f"partial.{name}": 0 for name in WINDOWS}
    assert found == {"read": 2, "late": 1, "quarantined": 1, **nothing, **by_window}
    assert lake.rows("_late", "id") == [("late",)]
    assert lake.rows("_quarantine", "id") == [("bad",)]
    assert [name for name in (*STATE, "_duplicates") if lake.exists(name)] == []


def test_a_batch_beyond_a_limit_writes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """a: 5 and 45 leave three windows empty, one more than the limit."""
    windows = {"tens": {"kind": "tumbling", "size": "10 minutes", "empty": True, "empty_limit": 2}}
    lake = small_lake(spark, tmp_path, windows, source=IDS)
    rows = lake.frame(("e1", "a", 5, 1), ("e2", "a", 45, 1), ("bad", "a", None, 1))
    passed: list[str] = []
    with armed(passed.append), pytest.raises(StateRefused, match="EMPTY_LIMIT"):
        process_batch(lake.batch(0), rows)
    assert passed == ["batch.judged"]
    assert [name for name in ("_panes_10m", "_seen", "_quarantine") if lake.exists(name)] == []
    assert lake.rows("tens") == []
