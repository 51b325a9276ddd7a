"""Merging of state rows, and deletion of what is past its retention: rows are derived by hand."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.maintenance.compaction import compact_state
from jobs.maintenance.expiry import expire_rows
from jobs.microbatch.context import RunContext
from jobs.microbatch.process import keep_refused, list_contributions
from tests.support.small_lake import Row, SmallLake, at, rows_of, small_lake, us
from windowing.columns import DIGEST
from windowing.ledger.table import WATERMARKS
from windowing.panes import frame as partials
from windowing.panes.rule import NO_BATCH
from windowing.panes.table import Stamp
from windowing.source import table as source
from windowing.spec.duration import MINUTE
from windowing.storage import delta

TENS = {"kind": "tumbling", "size": "10 minutes"}
VISITS = {"kind": "session", "gap": "10 minutes"}
PANES, FRAGMENTS = "_panes_10m", "_fragments_visits"
OF_PANES = ("key", "pane_start", "rows", "run", "batch", "judged_by")
OF_FRAGMENTS = ("key", "first_event", "last_event", "rows", "run", "batch")


def store(lake: SmallLake, number: int, watermark: float | None, *events: Row) -> None:
    """Stores the state that a batch adds."""
    batch = lake.batch(number, watermark)
    for part in list_contributions(batch, lake.admit(batch, *events)):
        part.store()


def between_batches(lake: SmallLake, arrival: float = 1000) -> RunContext:
    """The context of a maintenance that arrives at this minute."""
    stamp = Stamp(9, NO_BATCH, None)
    return RunContext(lake.spark, lake.pipeline, stamp, round(arrival * MINUTE))


def totals(lake: SmallLake, table: str, *names: str) -> list[Row]:
    """The named columns of a state table, and the sum of the values that each row contains."""
    schema = source.schema(lake.spark, lake.pipeline)
    algebras = partials.algebras_of(lake.pipeline, lake.pipeline.aggregates, schema)
    return rows_of(lake.read(table).withColumn("total", algebras["total"].lower), *names, "total")


def test_rows_of_one_pane_become_one_row_that_contains_them_all(
    spark: SparkSession, tmp_path: Path
) -> None:
    """With L forever no W matters: the three rows of a's first pane become one of 1 + 1 + 2 events.

    Panes of one row stay as they are. The merged row names the newest run.
    """
    lake = small_lake(spark, tmp_path, {"tens": TENS}, created=())
    assert compact_state(between_batches(lake)) == {PANES: 0}
    store(lake, 0, None, ("e", "a", 1, 1), ("e", "a", 11, 2), ("e", "b", 1, 4))
    store(lake, 1, 5, ("e", "a", 2, 8))
    store(lake, 2, 90, ("e", "a", 3, 16), ("e", "a", 4, 32))
    assert compact_state(between_batches(lake)) == {PANES: 2}
    assert totals(lake, PANES, *OF_PANES) == [
        ("a", 0, 4, 3, -3, None, 1 + 8 + 16 + 32),
        ("a", 10, 1, 1, 0, None, 2),
        ("b", 0, 1, 1, 0, None, 4),
    ]
    before = lake.version(PANES)
    assert compact_state(between_batches(lake)) == {PANES: 0}
    assert lake.version(PANES) == before


def test_only_rows_that_count_in_the_same_windows_are_merged(
    spark: SparkSession, tmp_path: Path
) -> None:
    """L = 10. A window over the pane of 0 ends after 0, so W = 5 is early enough for all of them.

    W = 15 is not: its two rows are merged with each other and keep their W.
    """
    lake = small_lake(spark, tmp_path, {"tens": TENS}, lateness="10 minutes", created=())
    store(lake, 0, None, ("e", "a", 1, 1))
    store(lake, 1, 5, ("e", "a", 2, 2))
    store(lake, 2, 15, ("e", "a", 3, 4))
    store(lake, 3, 15, ("e", "a", 4, 8))
    store(lake, 4, 16, ("e", "a", 5, 16))
    assert compact_state(between_batches(lake)) == {PANES: 2}
    assert totals(lake, PANES, *OF_PANES) == [
        ("a", 0, 1, 5, 4, 16, 16),
        ("a", 0, 2, 2, -3, None, 1 + 2),
        ("a", 0, 2, 4, -3, 15, 4 + 8),
    ]


@pytest.mark.slow
def test_the_fragments_of_a_session_become_one(spark: SparkSession, tmp_path: Path) -> None:
    """A has the sessions [0, 30) and [50, 60), b has one of a single fragment."""
    lake = small_lake(spark, tmp_path, {"visits": VISITS})
    store(lake, 0, None, ("e", "a", 0, 1), ("e", "a", 20, 2), ("e", "b", 5, 4))
    store(lake, 1, None, ("e", "a", 10, 8), ("e", "a", 50, 16))
    # [key, start, end, last event, n, total, revision, run]
    lake.fill(
        "visits",
        ("a", 0, 30, 20, 3, 11, 1, 2),
        ("a", 50, 60, 50, 1, 16, 0, 2),
        ("b", 5, 15, 5, 1, 4, 0, 1),
    )
    assert compact_state(between_batches(lake)) == {FRAGMENTS: 2}
    assert totals(lake, FRAGMENTS, *OF_FRAGMENTS) == [
        ("a", 0, 20, 3, 2, -3, 1 + 2 + 8),
        ("a", 50, 50, 1, 2, 1, 16),
        ("b", 5, 5, 1, 1, 0, 4),
    ]


@pytest.mark.slow
def test_state_outputs_and_ids_expire_by_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    """W = 100, and ids are kept for 20 minutes, state for 60 and outputs for 70.

    So ids up to 80, panes that began before 40 and windows that ended by 30 are deleted; sessions,
    which can be merged, are not. Without W nothing is.
    """
    lake = small_lake(
        spark,
        tmp_path,
        {"tens": TENS, "visits": VISITS},
        lateness="10 minutes",
        source={"event_id": "id"},
        watermark={"dedupe_horizon": "20 minutes"},
        retention={"state": "60 minutes", "output": "70 minutes", "refused": "forever"},
    )
    store(lake, 0, None, ("e", "a", 5, 1), ("e2", "a", 50, 1))
    ids = [{"event_id": str(minute), "event_time": at(minute)} for minute in (80, 81)]
    columns = "event_id string, event_time timestamp"
    delta.append(delta.rows(spark, ids, columns), lake.pipeline.table("_seen"))
    windows = [("a", 20, 30, 1, 1, 0, 1), ("a", 30, 40, 1, 1, 0, 1)]
    lake.fill("tens", *windows)
    session = ("a", 5, 15, 5, 1, 1, 0, 1)
    lake.fill("visits", session)
    assert expire_rows(between_batches(lake), None) == {}
    found = expire_rows(between_batches(lake), us(100))
    assert found == {"_seen": 1, "tens": 1, PANES: 1}
    assert lake.rows("_seen", "event_id") == [("81",)]
    assert lake.rows("tens") == windows[1:]
    assert lake.rows(PANES, "pane_start") == [(50,)]
    assert lake.rows("visits") == [session]
    assert expire_rows(between_batches(lake), us(100)) == {"_seen": 0, "tens": 0, PANES: 0}


@pytest.mark.slow
def test_refused_rows_of_old_runs_are_emptied_and_keep_key_and_digest(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Run 1 arrived at 100, run 2 at 200; at 230 the last 30 minutes are kept: from 200 on."""
    lake = small_lake(
        spark, tmp_path, {"tens": TENS}, created=(), retention={"refused": "30 minutes"}
    )
    for number in (0, 1):
        batch = lake.batch(number)
        keep_refused(batch, lake.admit(batch, (f"e{number}", "a", None, 7)))
    runs = [{"run": 1, "arrival": at(100)}, {"run": 2, "arrival": at(200)}]
    marks = delta.rows(spark, runs, "run bigint, arrival timestamp")
    delta.append(marks, lake.pipeline.table(WATERMARKS))
    digests = {row["run"]: row[DIGEST] for row in lake.read("_quarantine").collect()}
    emptied = {"_late": 0, "_duplicates": 0}
    assert expire_rows(between_batches(lake, 230), None) == {**emptied, "_quarantine": 1}
    names = ("id", "key", "value", "outcome", "reason", "run", "__emptied", DIGEST)
    quarantined = ("quarantined", "ts is null")
    assert lake.rows("_quarantine", *names) == [
        (None, "a", None, *quarantined, 1, digests[1], digests[1]),
        ("e1", "a", 7, *quarantined, 2, None, digests[2]),
    ]
    assert expire_rows(between_batches(lake, 230), None) == {**emptied, "_quarantine": 0}
