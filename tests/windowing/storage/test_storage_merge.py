"""One MERGE by two programs: random changes leave the same rows and tell the same change feed."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from windowing.columns import OP, REVISION, START
from windowing.location import Location
from windowing.merge import table as outputs
from windowing.merge.frame import BEGUN, OVERFLOW
from windowing.merge.rule import Target
from windowing.storage import delta, delta_log, merges

IDENTITY = ("key", "day", "price", START)
VALUES = {
    "n": "bigint",
    "ratio": "double",
    "text": "string",
    "bytes": "binary",
    "at": "timestamp",
    "texts": "array<string>",
    "pair": "struct<a: string, b: decimal(38, 9)>",
    "pairs": "map<string, array<struct<c: bigint>>>",
}
SHOWN = f"key string, day date, price decimal(20, 5), {START} timestamp, " + ", ".join(
    f"{name} {kind}" for name, kind in VALUES.items()
)
COLUMNS = (*IDENTITY, *VALUES)
TIMES = [
    datetime(year, 1, 1, 0, 0, 0, micros, UTC)
    for year in (1, 1582, 1969, 1970, 2262, 4253, 5138, 9999)
    for micros in (0, 999_999)
]
Row = tuple[Any, ...]


def draw_identities(rng: Random) -> list[Row]:
    """Some rows that a table may have, each once."""
    drawn = {
        (
            rng.choice(["a", "A", "", "it's", 'say "x"', "ä", "1", None]),
            rng.choice([date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)]),
            rng.choice([Decimal("0.00001"), Decimal("-999999999999999.99999"), Decimal(0)]),
            rng.choice(TIMES),
        )
        for _ in range(40)
    }
    # A key that is null is equal to nothing, so no pipeline stores one.
    return sorted(row for row in drawn if row[0] is not None)


def draw_values(rng: Random) -> Row:
    """Values of a row, nulls among them."""
    values = (
        rng.randrange(-5, 5),
        rng.choice([0.0, -0.0, float("nan"), float("inf"), 0.1]),
        rng.choice(["", "x" * 300, "ä\n\0"]),
        rng.choice([b"", b"\xff\0"]),
        rng.choice(TIMES),
        rng.choice([[], ["a", None], ["b"]]),
        rng.choice([("p", Decimal("1.000000001")), (None, None)]),
        rng.choice([{}, {"k": [(1,), None]}, {"k": None, "l": []}]),
    )
    return tuple(None if rng.random() < 0.2 else value for value in values)


def write(spark: SparkSession, target: Target, changes: list[tuple[str, Row]], run: int) -> None:
    """Writes changes of (operation, row)."""
    rows = [(op, *row, run, row[3], False) for op, row in changes]
    schema = f"{OP} string, {SHOWN}, {REVISION} bigint, {BEGUN} timestamp, {OVERFLOW} boolean"
    changed = spark.createDataFrame(rows, schema)
    # Every other run they are in this process before Spark merges them.
    computed = outputs.compute_changes(changed, run, len(rows) if run % 2 else None)
    outputs.write_changes(outputs.open_output(target), computed)


def list_rows(spark: SparkSession, target: Target) -> list[str]:
    """All rows as text, in order."""
    found = delta.read(spark, target.path).selectExpr("to_json(struct(*)) as j", "hex(bytes) as b")
    return sorted(str(row) for row in found.collect())


def list_feed(spark: SparkSession, target: Target) -> list[str]:
    """What the newest version tells readers of its change feed."""
    feed = spark.read.format("delta").option("readChangeFeed", "true")
    changed = feed.option("startingVersion", delta_log.version(spark, target.path)).load(
        target.path.text
    )
    told = changed.drop("_commit_timestamp", "_commit_version")
    return sorted(row["j"] for row in told.selectExpr("to_json(struct(*)) as j").collect())


def make(spark: SparkSession, path: Path) -> Target:
    """An empty output."""
    target = Target(Location(str(path)), IDENTITY, COLUMNS, change_feed=True)
    columns = spark.createDataFrame([], f"{SHOWN}, revision bigint, run bigint").schema
    outputs.create_table(spark, target, columns)
    return target


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.deep)])
def test_both_ways_to_merge_are_one(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = Random(seed)
    here, by_spark = make(spark, tmp_path / "here"), make(spark, tmp_path / "spark")
    stored: dict[Row, Row] = {}
    for run in range(1, 5):
        changes: list[tuple[str, Row]] = []
        for identity in draw_identities(rng):
            op = rng.choice("UUD-" if identity in stored else "II-")
            values = stored.get(identity, ()) if op == "D" else draw_values(rng)
            if op != "-":
                changes.append((op, (*identity, *values)))
            if op in "UI":
                stored[identity] = values
            elif op == "D":
                del stored[identity]
        for target, most in ((here, 16_000_000), (by_spark, 0)):
            monkeypatch.setattr(merges, "_REWRITTEN_HERE_BYTES", most)
            write(spark, target, changes, run)
        rows = list_rows(spark, here)
        assert len(rows) == len(stored)
        assert rows == list_rows(spark, by_spark)
        assert list_feed(spark, here) == list_feed(spark, by_spark)
