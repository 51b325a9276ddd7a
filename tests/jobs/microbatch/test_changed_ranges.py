"""The ranges to reprocess for updates and deletes: expected ranges are derived by hand."""

from json import loads
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.microbatch.process import keep_accepted_ids
from jobs.microbatch.source_changes import note_of
from tests.support.small_lake import Row, SmallLake, just_after, small_lake, us
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import LedgerEntry

DAY = 1440
TENS = {"tens": {"kind": "tumbling", "size": "10 minutes"}}


def feed(lake: SmallLake, *rows: tuple[str, str, float | None, str]) -> DataFrame:
    """Rows of the change feed: (id, key, minute, kind of change)."""
    changes = {n: row[3] for n, row in enumerate(rows)}
    frames = []
    for n, change in changes.items():
        one: Row = (*rows[n][:3], 1)
        frames.append(lake.frame(one).withColumn("_change_type", F.lit(change)))
    found = frames[0]
    for frame in frames[1:]:
        found = found.unionByName(frame)
    others = {"_commit_version": F.lit(1), "_commit_timestamp": F.lit(None).cast("timestamp")}
    return found.withColumns(others)


def ranges(note: str | None) -> list[list[int]] | None:
    """The ranges of a note, [low, high) in microseconds."""
    return None if note is None else loads(note)["ranges"]


def spans(*minutes: tuple[float, float]) -> list[list[int | None]]:
    """The same ranges, from the first to the last event time, both inside."""
    return [[us(low), us(just_after(high))] for low, high in minutes]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    """A pipeline with ids; batch 0 accepted `moved` at 5 and `elsewhere` at 3 days."""
    source = {"event_id": "id", "changes": "feed"}
    found = small_lake(
        spark,
        tmp_path_factory.mktemp("feed"),
        TENS,
        source=source,
        created=(),
        watermark={"max_future": "30 days"},
    )
    first = found.batch(0)
    events = (("moved", "a", 5, 1), ("elsewhere", "a", 3 * DAY, 1))
    keep_accepted_ids(first, found.admit(first, *events))
    return found


def test_rows_without_a_change_feed_need_nothing(lake: SmallLake) -> None:
    assert note_of(lake.batch(1), lake.frame(("x", "a", 5, 1)), LedgerHistory()) is None


def test_inserted_rows_need_nothing(lake: SmallLake) -> None:
    rows = feed(lake, ("x", "a", 5, "insert"), ("y", "a", 6, "insert"))
    assert note_of(lake.batch(1), rows, LedgerHistory()) is None


def test_both_images_of_an_update_and_a_delete_are_reprocessed(lake: SmallLake) -> None:
    """5 and 9 are within a day of each other and one range; 3 days is another.

    A row without a readable time is in no range, and neither is the inserted one.
    """
    rows = feed(
        lake,
        ("x", "a", 5, "update_preimage"),
        ("x", "a", 9, "update_postimage"),
        ("y", "a", 3 * DAY, "delete"),
        ("z", "a", None, "delete"),
        ("w", "a", 9 * DAY, "insert"),
    )
    found = ranges(note_of(lake.batch(1), rows, LedgerHistory()))
    assert found == spans((5, 9), (3 * DAY, 3 * DAY))


def test_a_row_that_is_deleted_and_inserted_elsewhere_is_reprocessed_at_both_places(
    lake: SmallLake,
) -> None:
    rows = feed(
        lake,
        ("x", "a", 5, "delete"),
        ("x", "a", 4 * DAY, "insert"),
        ("y", "a", 8 * DAY, "insert"),
    )
    found = ranges(note_of(lake.batch(1), rows, LedgerHistory()))
    assert found == spans((5, 5), (4 * DAY, 4 * DAY))


def test_an_id_in_a_range_that_is_not_reprocessed_yet_moves_as_well(lake: SmallLake) -> None:
    """Batch 0 noted [0, 10) and no backfill followed, so `moved`, accepted there, is unsettled.

    `elsewhere` was accepted outside that range, so its copy is only a duplicate.
    """
    pending = f'{{"ranges": [[0, {us(10)}]]}}'
    past = LedgerHistory((LedgerEntry("done", seq=0, run=1, batch=0, note=pending),))
    rows = feed(
        lake,
        ("moved", "a", 6 * DAY, "insert"),
        ("elsewhere", "a", 9 * DAY, "insert"),
    )
    found = ranges(note_of(lake.batch(1), rows, past))
    assert found == spans((6 * DAY, 6 * DAY))
    settled = f'{{"batch": 0, "from_us": 0, "to_us": {us(10)}}}'
    done = LedgerEntry("backfill_done", seq=1, note=settled)
    assert note_of(lake.batch(1), rows, LedgerHistory((*past.entries, done))) is None


def test_times_less_than_a_day_apart_are_one_range_and_without_ids_no_insert_moves(
    spark: SparkSession, tmp_path: Path
) -> None:
    """-61 and 125 are one range, on both sides of 1970."""
    lake = small_lake(
        spark,
        tmp_path,
        TENS,
        source={"changes": "feed"},
        created=(),
        watermark={"max_future": "30 days"},
    )
    rows = feed(
        lake,
        ("x", "a", -61, "delete"),
        ("x", "a", 125, "delete"),
        ("x", "a", 5 * DAY, "insert"),
    )
    assert ranges(note_of(lake.batch(1), rows, LedgerHistory())) == spans((-61, 125))
