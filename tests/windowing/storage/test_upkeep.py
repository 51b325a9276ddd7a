"""What is done to a table as a whole, without changing a row."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from windowing.location import Location
from windowing.storage import delta, delta_log, upkeep


@pytest.mark.parametrize("place", ["here", "on a cluster"])
def test_marked_files_are_rewritten_and_no_row_changes(
    place: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One marked file alone, which OPTIMIZE would leave as it is."""
    path = Location(str(tmp_path / "t"))
    monkeypatch.setattr(upkeep, "is_local", lambda _: place == "here")
    spark.sql(
        f"create table {path.sql} (id bigint) using delta tblproperties "
        "('delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true')"
    )
    delta.append(spark.range(100).coalesce(1), path)
    spark.sql(f"delete from {path.sql} where id = 5")
    assert delta_log.may_mark_rows(spark, path)
    upkeep.rewrite_marked_files(spark, path)
    assert not delta_log.may_mark_rows(spark, path)
    assert delta.read(spark, path).count() == 99
    version = delta_log.version(spark, path)
    feed = spark.read.format("delta").option("readChangeFeed", "true")
    assert feed.option("startingVersion", version).load(path.text).isEmpty()
    upkeep.rewrite_marked_files(spark, path)
    assert delta_log.version(spark, path) == version, "nothing is marked any more"
