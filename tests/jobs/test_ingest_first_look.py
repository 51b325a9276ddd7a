"""A first ingest guesses columns from records that are whole, and keeps all that files have."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.drop_folder import DropFolder

TWICE = '{"id": 1, "x": {"a": 1, "a": 2}}\n'


@pytest.mark.slow
def test_a_record_with_a_name_twice_says_no_types(spark: SparkSession, tmp_path: Path) -> None:
    drop = DropFolder(tmp_path, {"format": "json"})
    drop.land("1.json", '{"id": 1, "x": {"a": 1.5}}\n' + TWICE + '{"id": 2, "id": 3}\n{"id": 4}\n')
    assert drop.take(spark).read == 4
    assert [row[0] for row in drop.rows(spark, "id", "x.a")] == [1, 4]
    assert [(text, why) for _, text, why in drop.quarantine(spark)] == [
        (TWICE.strip(), "has a name twice in an object inside"),
        ('{"id": 2, "id": 3}', "has a name twice"),
    ]


@pytest.mark.slow
def test_a_column_with_the_name_of_an_added_one_is_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    drop = DropFolder(tmp_path, {"format": "parquet"})
    file = {"id": [1, 2], "source_file": ["x", "y"], "Rescued": [True, False]}
    at = pa.array([1, 2], pa.timestamp("us"))
    pq.write_table(pa.table({**file, "a.b": [3, 4], "at": at}), drop.folder / "a.parquet")
    assert drop.take(spark).appended == 2
    assert '  source_file_2: {type: "string", from: "source_file"}\n' in drop.pinned.read_text()
    assert drop.rows(spark, "id", "source_file", "source_file_2", "Rescued_2", "a_b") == [
        (1, "a.parquet", "x", True, 3),
        (2, "a.parquet", "y", False, 4),
    ]
