"""Whether a table has files that VACUUM could delete is known without asking Spark."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from windowing.location import Location
from windowing.storage import table_retention

NOW = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("file", "age", "expected"),
    [
        ("part-0.parquet", timedelta(days=31), "old"),
        ("part-0.parquet", timedelta(days=30), "none"),
        ("_change_data/cdc-0.parquet", timedelta(days=31), "old"),
        ("deletion_vector.bin", timedelta(days=31), "old"),
        ("_delta_log/0.json", timedelta(days=31), "none"),
        ("_SUCCESS", timedelta(days=31), "none"),
        ("_of_others/part-0.parquet", timedelta(days=31), "none"),
    ],
)
def test_files_older_than_is_asked_for(
    tmp_path: Path, file: str, age: timedelta, expected: str
) -> None:
    written = tmp_path / "_delta_log" / "table" / file
    written.parent.mkdir(parents=True)
    written.touch()
    os.utime(written, times=((NOW - age).timestamp(),) * 2)
    table = Location(str(written.parents[len(Path(file).parts) - 1]))
    assert table_retention.has_older_files(table, NOW - timedelta(days=30)) is (expected == "old")


@pytest.mark.slow
def test_a_log_loses_what_its_table_need_not_keep(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    kept = "'delta.logRetentionDuration' = 'interval 10 days'"
    spark.sql(f"create table delta.`{path}` (n bigint) using delta tblproperties ({kept})")
    log = tmp_path / "t" / "_delta_log"

    def pass_days(days: int) -> None:
        for file in log.iterdir():
            written = file.stat().st_mtime - days * 86_400
            os.utime(file, times=(written, written))
        spark.range(1).toDF("n").write.format("delta").mode("append").save(path)

    pass_days(9)
    table_retention.clean_log(spark, Location(path), datetime.now(UTC))
    assert not list(log.glob("*.checkpoint.parquet"))
    pass_days(9)
    table_retention.clean_log(spark, Location(path), datetime.now(UTC))
    # A commit that others need is deleted only once a checkpoint stands for it that is old, too.
    assert list(log.glob("*.checkpoint.parquet"))
    assert (log / f"{0:020}.json").exists()
    pass_days(12)
    table_retention.clean_log(spark, Location(path), datetime.now(UTC))
    assert not (log / f"{0:020}.json").exists()
    assert spark.read.format("delta").load(path).count() == 3
