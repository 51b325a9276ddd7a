"""What logs and queries say about tables, beside what Spark finds."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from windowing.location import Location
from windowing.storage import control, table_figures

SCHEMA = pa.schema([("run", pa.int64()), ("note", pa.string())])
ROW = {"run": 1, "note": "run 1"}


@pytest.mark.slow
def test_rows_are_counted_as_spark_counts_them(tmp_path: Path, spark: SparkSession) -> None:
    """Rows that deletion vectors mark are still in the files, and in their statistics."""
    path = tmp_path / "table"
    spark.sql(
        f"create table delta.`{path}` (n bigint) using delta "
        "tblproperties ('delta.enableDeletionVectors' = 'true')"
    )
    spark.range(100).toDF("n").repartition(3).write.format("delta").mode("append").save(str(path))
    spark.sql(f"delete from delta.`{path}` where n % 7 = 0")
    spark.sql(f"delete from delta.`{path}` where n > 90 or n = 1")
    log = (path / "_delta_log" / f"{2:020}.json").read_text()
    assert "deletionVector" in log
    counted = [table_figures.count_rows(Location(str(path)), version) for version in range(4)]
    by_spark = [
        spark.read.format("delta").option("versionAsOf", version).load(str(path)).count()
        for version in range(4)
    ]
    # 15 multiples of 7; then 1, and 92 to 99 without 98, which is a multiple.
    assert counted == by_spark == [0, 100, 85, 77]


def test_rows_are_counted_where_a_column_has_a_wider_type(
    tmp_path: Path, spark: SparkSession
) -> None:
    path = tmp_path / "table"
    spark.range(10).selectExpr("cast(id as int) n").write.format("delta").save(str(path))
    spark.sql(f"alter table delta.`{path}` set tblproperties ('delta.enableTypeWidening' = 'true')")
    spark.sql(f"alter table delta.`{path}` alter column n type bigint")
    version = control.read_version(Location(str(path)))
    assert table_figures.count_rows(Location(str(path)), version) == 10
    assert table_figures.measure_table(Location(str(path))) == table_figures.Size(
        10, *_files_and_bytes(path)
    )
    with pytest.raises(control.TableError, match="typeWidening is not supported"):
        table_figures.find_greatest(Location(str(path)), ("n",))


def _files_and_bytes(path: Path) -> tuple[int, int]:
    """Of a table without older versions."""
    files = list(path.glob("*.parquet"))
    return len(files), sum(file.stat().st_size for file in files)


def test_groups_and_the_greatest_numbers_are_found(tmp_path: Path) -> None:
    path = Location(str(tmp_path / "table"))
    columns = [(name, pa.string()) for name in ("sort", 'the "why"', "by")]
    schema = pa.schema([*columns, ("run", pa.int64()), ("batch", pa.int64())])
    control.create_table(path, schema)
    assert table_figures.count_groups(path, ("sort",), "by") == []
    assert table_figures.find_greatest(path, ("run", "batch")) is None
    values = [("a", None, "x", 1, 9), ("a", None, None, 2, None), ("b", "w", None, 2, 4)]
    rows = [dict(zip(schema.names, row, strict=True)) for row in values]
    control.append_rows(path, schema, [*rows, {"sort": "b", "batch": 99}], after=0)
    found = table_figures.count_groups(path, ("sort", 'the "why"'), "by")
    assert set(found) == {
        table_figures.Group(("a", None), 2, 1),
        table_figures.Group(("b", "w"), 1, 0),
        table_figures.Group(("b", None), 1, 0),
    }
    assert table_figures.find_greatest(path, ("run", "batch")) == (2, 4)


def test_a_table_that_lost_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table"
    control.append_rows(Location(str(path)), SCHEMA, [ROW], after=-1)
    [file] = path.glob("*.parquet")
    file.unlink()
    with pytest.raises(control.TableError):
        table_figures.count_groups(Location(str(path)), ("note",), "note")


def test_a_version_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = Location(str(tmp_path / "table"))
    control.append_rows(path, SCHEMA, [ROW], after=-1)
    with pytest.raises(control.TableError):
        table_figures.count_rows(path, 7)


def test_files_are_measured_that_may_have_a_time(tmp_path: Path, spark: SparkSession) -> None:
    """Three files of one second each; the statistics of Delta are cut to milliseconds."""
    path = Location(str(tmp_path / "table"))
    for second in (-2, 0, 2):
        micros = f"{second} * 1000000 + id * 100123"
        rows = spark.sql(f"select timestamp_micros({micros}) as at from range(10)").coalesce(1)
        rows.write.format("delta").mode("append").save(path.text)
    sizes = {
        span: table_figures.count_bytes(path, {"at": span})
        for span in [(-(10**7), 10**7), (901_107, 901_107), (903_108, 1_997_000), (0, 2_000_000)]
    }
    everything = sizes[-(10**7), 10**7]
    assert everything
    assert sizes[903_108, 1_997_000] == 0
    assert 0 < (sizes[901_107, 901_107] or 0) < everything
    assert (sizes[901_107, 901_107] or 0) < (sizes[0, 2_000_000] or 0) < everything
    assert table_figures.count_bytes(path, {"other": (0, 0)}) == everything
    assert table_figures.count_bytes(Location(str(tmp_path / "none")), {"at": (0, 0)}) is None
