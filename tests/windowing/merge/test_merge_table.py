"""How a MERGE leaves the files of an output: small ones rewritten, large ones with marked rows."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.small_lake import at, rows_of
from windowing.columns import OP, REVISION, START
from windowing.grid.zone import HOUR_US
from windowing.location import Location
from windowing.merge import table as outputs
from windowing.merge.frame import BEGUN, OVERFLOW
from windowing.merge.rule import Target
from windowing.storage import delta, delta_log, merges, own_tables

pytestmark = pytest.mark.slow

COLUMNS = ("key", "window_start", "window_end", "n")
SHOWN = "key string, window_start timestamp, window_end timestamp, n bigint"
KEY_AND_BOUNDS = COLUMNS[:3]


def make_output(spark: SparkSession, path: Path) -> Target:
    """An output of ten hourly windows of two keys, in a file for each hour."""
    target = Target(Location(str(path)), KEY_AND_BOUNDS, COLUMNS, change_feed=True)
    schema = spark.createDataFrame([], f"{SHOWN}, revision bigint, run bigint").schema
    outputs.create_table(spark, target, schema)
    for hour in range(10):
        write(spark, target, [("I", hour, 1, 0)], run=1, keys="ab")
    return target


def write(
    spark: SparkSession,
    target: Target,
    changes: list[tuple[str, int, int, int]],
    run: int,
    keys: str = "a",
) -> outputs.Changes:
    """Writes changes of (operation, hour, n, revision), the same for every key."""
    rows: list[tuple[Any, ...]] = []
    for op, hour, n, revision in changes:
        start, end = at(60 * hour), at(60 * hour + 60)
        rows += [(op, key, start, end, n, revision, start, False) for key in keys]
    schema = f"{OP} string, {SHOWN}, {REVISION} bigint, {BEGUN} timestamp, {OVERFLOW} boolean"
    # One file for each call, because a file without a row left is removed and not marked.
    changed = spark.createDataFrame(rows, schema).coalesce(1)
    return outputs.write_changes(outputs.open_output(target), outputs.compute_changes(changed, run))


def correct_two(spark: SparkSession, target: Target) -> outputs.Changes:
    """Updates the window of hour 3, deletes that of hour 4, and adds one of hour 12."""
    return write(spark, target, [("U", 3, 5, 1), ("D", 4, 1, 0), ("I", 12, 2, 0)], run=2)


def marks_rows(target: Target) -> bool:
    """Whether some commit of the table marks rows by a deletion vector."""
    for commit in (target.path.local / "_delta_log").glob("*.json"):
        for line in commit.read_text().splitlines():
            if json.loads(line).get("add", {}).get("deletionVector"):
                return True
    return False


CORRECTED = [
    ("a", 60.0 * hour, 5 if hour == 3 else 2 if hour == 12 else 1)
    for hour in (0, 1, 2, 3, 5, 6, 7, 8, 9, 12)
] + [("b", 60.0 * hour, 1) for hour in range(10)]
FEED = [
    ("delete", 240.0, 1),
    ("insert", 720.0, 2),
    ("update_postimage", 180.0, 5),
    ("update_preimage", 180.0, 1),
]


def limit_rewriting(monkeypatch: pytest.MonkeyPatch, here: int, by_spark: int) -> None:
    """How many bytes this process may rewrite, and how many Spark may."""
    monkeypatch.setattr(merges, "_REWRITTEN_HERE_BYTES", here)
    monkeypatch.setattr(merges, "_REWRITTEN_BYTES", by_spark)


def last_engine(target: Target) -> str:
    """The program that made the newest commit."""
    newest = max((target.path.local / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in newest.read_text().splitlines()]
    (info,) = [action["commitInfo"] for action in actions if "commitInfo" in action]
    return "Spark" if "Spark" in info["engineInfo"] else str(info["engineInfo"])


@pytest.mark.parametrize(
    ("here", "by_spark", "engine", "is_marked"),
    [
        pytest.param(1_000_000, 0, "tidemark", False, id="rewritten-here"),
        pytest.param(0, 1_000_000, "Spark", False, id="rewritten-by-spark"),
        pytest.param(0, 0, "Spark", True, id="marked"),
    ],
)
def test_small_files_are_rewritten_and_rows_of_large_ones_are_marked(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    here: int,
    by_spark: int,
    engine: str,
    is_marked: object,
) -> None:
    target = make_output(spark, tmp_path / "hourly")
    limit_rewriting(monkeypatch, here, by_spark)
    starts = 3 * HOUR_US, 12 * HOUR_US
    counts = outputs.Changes(inserted=1, updated=1, deleted=1, starts=starts)
    assert correct_two(spark, target) == counts
    assert (last_engine(target), marks_rows(target)) == (engine, is_marked)
    stored = delta.read(spark, target.path)
    assert rows_of(stored, "key", START, "n") == CORRECTED
    newest = delta_log.version(spark, target.path)
    feed = spark.read.format("delta").option("readChangeFeed", "true")
    changed = feed.option("startingVersion", newest).load(target.path.text)
    assert rows_of(changed, "_change_type", START, "n") == FEED


def test_only_the_files_that_a_change_can_touch_count(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = make_output(spark, tmp_path / "hourly")
    files, all_bytes = own_tables.size(spark, target.path)
    two_files = 2 * all_bytes // files + files
    limit_rewriting(monkeypatch, 0, two_files)
    correct_two(spark, target)
    assert not marks_rows(target)
    limit_rewriting(monkeypatch, two_files, two_files)
    write(spark, target, [("U", hour, 6, 1) for hour in (0, 1)], run=2)
    assert last_engine(target) == "tidemark"
    write(spark, target, [("U", hour, 7, 1) for hour in (0, 1, 2, 5)], run=3)
    assert marks_rows(target)
    found = delta.read(spark, target.path).where(F.col("n") == 7)
    assert rows_of(found, START) == [(0.0,), (60.0,), (120.0,), (300.0,)]


def test_a_table_that_marks_rows_goes_on_to(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = make_output(spark, tmp_path / "hourly")
    with monkeypatch.context() as small:
        limit_rewriting(small, 0, 0)
        correct_two(spark, target)
    before = delta_log.version(spark, target.path)
    write(spark, target, [("U", 0, 7, 1)], run=3)
    # No other commit sets the property again.
    assert delta_log.version(spark, target.path) == before + 1
    assert rows_of(delta.read(spark, target.path).where(F.col("n") == 7), START) == [(0.0,)]
