"""A batch whose files show that nothing is wrong is admitted as if Spark had looked at its rows."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.microbatch.admission import admit_rows
from tests.support.session_settings import setting_changed
from tests.support.small_lake import ARRIVAL, SmallLake, just_after, small_lake, span
from windowing.admit.erased import digest_values
from windowing.ledger.erased import Erasure, Erasures
from windowing.location import Location

GOOD: tuple[tuple[Any, ...], ...] = (("x", "a", 5, 1, 2.5), ("y", "b", 700, 1, None))
"""Id, key, minute, value and attribute of rows with which nothing is wrong."""
DAY = 24 * 60
CASES: dict[str, tuple[tuple[Any, ...], bool]] = {
    "nothing wrong": (("z", "a", 6, 1, -1.5), True),
    "the last time allowed": (("z", "a", ARRIVAL + DAY, 1, 1.0), True),
    "after it": (("z", "a", just_after(ARRIVAL + DAY), 1, 1.0), False),
    "before every time": (("z", "a", -1968 * 365 * DAY, 1, 1.0), False),
    "an old calendar": (("z", "a", -400 * 365 * DAY, 1, 1.0), False),
    "no time": (("z", "a", None, 1, 1.0), False),
    "no key": (("z", None, 5, 1, 1.0), False),
    "NaN": (("z", "a", 5, 1, float("nan")), False),
    "infinity": (("z", "a", 5, 1, float("inf")), False),
}
"""One more row, and whether files show that nothing is wrong."""


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    """An hour at a time, with sums of fractions."""
    windows = {"hourly": {"kind": "tumbling", "size": "1 hour"}}
    root = tmp_path_factory.mktemp("files")
    return small_lake(
        spark,
        root,
        windows,
        lateness="1 hour",
        aggregates={"total": "sum(attr)"},
        watermark={"max_future": "1 day"},
        created=(),
    )


def write(
    lake: SmallLake, folder: Path, *events: tuple[Any, ...]
) -> tuple[DataFrame, list[Location]]:
    """The events as Spark reads them, and their files."""
    lake.frame(*events).write.parquet(str(folder))
    files = [Location(str(file)) for file in sorted(folder.glob("*.parquet"))]
    return lake.spark.read.parquet(str(folder)), files


def unreadable(rows: DataFrame) -> DataFrame:
    """Rows with the same columns that can't be looked at."""
    return rows.withColumn("key", F.raise_error(F.lit("a row was read")).cast("string"))


@pytest.mark.parametrize("times", ["INT96", "TIMESTAMP_MICROS"])
@pytest.mark.parametrize("case", CASES)
def test_a_batch_is_admitted_as_by_its_rows(
    lake: SmallLake, tmp_path: Path, case: str, times: str
) -> None:
    row, is_clean = CASES[case]
    batch = lake.batch(0)
    with setting_changed(lake.spark, "spark.sql.parquet.outputTimestampType", times):
        rows, files = write(lake, tmp_path / "rows", *GOOD, row)
    by_rows = admit_rows(batch, rows)
    by_files = admit_rows(batch, rows, lambda: files)
    assert (by_files.counts, by_files.within) == (by_rows.counts, by_rows.within)
    if is_clean:
        assert admit_rows(batch, unreadable(rows), lambda: files).counts == by_rows.counts
        return
    with pytest.raises(SparkRuntimeException, match="a row was read"):
        admit_rows(batch, unreadable(rows), lambda: files)


def test_rows_that_may_be_late_are_judged_one_by_one(lake: SmallLake, tmp_path: Path) -> None:
    """W is the 130th minute, so the hour that ends with the 60th is final."""
    batch = lake.batch(0, watermark=130)
    rows, files = write(lake, tmp_path / "rows", ("x", "a", 5, 1, 1.0), ("y", "a", 65, 1, 1.0))
    by_rows = admit_rows(batch, rows)
    by_files = admit_rows(batch, rows, lambda: files)
    assert by_files.counts == by_rows.counts
    assert (by_files.counts["accepted"], by_files.counts["late"]) == (1, 1)
    assert by_files.within == by_rows.within == span(65, 65)


def test_a_batch_without_rows(lake: SmallLake, tmp_path: Path) -> None:
    rows, files = write(lake, tmp_path / "rows")
    by_files = admit_rows(lake.batch(0), unreadable(rows), lambda: files)
    assert by_files.counts == admit_rows(lake.batch(0), rows).counts
    assert by_files.within is None


def erased(lake: SmallLake, key: str) -> Erasures:
    """A list with one key."""
    digest = digest_values({"key": (F.lit(key), T.StringType())}, "salt").alias("digest")
    (row,) = lake.spark.range(1).select(digest).collect()
    return Erasures("salt", frozenset({Erasure(row["digest"])}))


def test_files_do_not_speak_for_a_batch_with_rows_of_an_erased_key(
    lake: SmallLake, tmp_path: Path
) -> None:
    """One of its two rows is, and it is the later one."""
    batch = lake.batch(0, erased=erased(lake, "b"))
    rows, files = write(lake, tmp_path / "rows", *GOOD)
    admitted = admit_rows(batch, rows, lambda: files)
    found = {name: admitted.counts[name] for name in ("read", "accepted", "erased")}
    assert found == {"read": 2, "accepted": 1, "erased": 1}
    assert admitted.within == span(5, 5)
    assert [row["key"] for row in admitted.rows.collect()] == ["a"]


def test_files_speak_for_a_batch_without_rows_of_erased_keys(
    lake: SmallLake, tmp_path: Path
) -> None:
    """Then no row but its key is looked at, and nothing is counted as erased."""
    batch = lake.batch(0, erased=erased(lake, "elsewhere"))
    rows, files = write(lake, tmp_path / "rows", *GOOD)
    hidden = rows.withColumn("value", F.raise_error(F.lit("a row was read")).cast("bigint"))
    admitted = admit_rows(batch, hidden, lambda: files)
    assert admitted.counts == admit_rows(lake.batch(0), rows).counts
    assert "erased" not in admitted.counts
