"""The rows of a Delta table as a test compares them, without a Spark job where that is possible.

The first read of each version by Spark costs as much as a fifth of a small run.
"""

import json
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from windowing.location import Location
from windowing.storage import delta
from windowing.storage.plain_table import find_plain


def read_stored(spark: SparkSession, path: Location) -> DataFrame:
    """The newest version of the table at `path`: by delta-rs where it is plain, else by Spark."""
    plain = find_plain(path)
    if plain is None:
        return delta.read(spark, path)
    columns = T.StructType.fromJson(json.loads(plain.schema_json))
    return spark.createDataFrame(plain.table.to_pyarrow_table(), columns)


def list_stored(spark: SparkSession, path: Location) -> list[dict[str, Any]]:
    """The same rows in the memory of this process; times of delta-rs have their zone, UTC."""
    plain = find_plain(path)
    if plain is None:
        return [row.asDict() for row in delta.read(spark, path).collect()]
    rows: list[dict[str, Any]] = plain.table.to_pyarrow_table().to_pylist()
    return rows
