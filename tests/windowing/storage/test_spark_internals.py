"""What Spark and its bridge do not promise: each call, and what would be wrong without it."""

import fcntl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from windowing.storage import spark_internals
from windowing.storage.spark_internals import FileLock

HOLDS_LOCK = """
import fcntl, sys
with open(sys.argv[1], "w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""


def test_columns_as_arrow_has_them() -> None:
    columns = T.StructType(
        [
            T.StructField("at", T.TimestampType()),
            T.StructField("local", T.TimestampNTZType()),
            T.StructField("n", T.DecimalType(20, 3)),
        ]
    )
    assert spark_internals.arrow_schema(columns) == pa.schema(
        {
            "at": pa.timestamp("us", "UTC"),
            "local": pa.timestamp("us"),
            "n": pa.decimal128(20, 3),
        }
    )


def test_a_copy_of_a_session_has_settings_of_its_own(spark: SparkSession) -> None:
    name = "spark.sql.shuffle.partitions"
    before = spark.conf.get(name)
    spark.range(1).createOrReplaceTempView("seen_by_both")
    copy = spark_internals.clone_session(spark)
    assert copy.conf.get(name) == before
    assert spark_internals.list_settings(copy) == spark_internals.list_settings(spark)
    copy.conf.set(name, "7")
    assert spark.conf.get(name) == before
    assert spark_internals.list_settings(copy) != spark_internals.list_settings(spark)
    assert copy.table("seen_by_both").count() == 1
    spark.catalog.dropTempView("seen_by_both")


def test_all_settings_are_in_one_text(spark: SparkSession) -> None:
    own = spark.newSession()
    own.conf.set("spark.databricks.delta.properties.defaults.appendOnly", "true")
    name = "spark.databricks.delta.properties.defaults.appendOnly"
    assert name in spark_internals.list_settings(own)
    assert name not in spark_internals.list_settings(spark)


def test_a_setting_of_the_context_is_no_session_s(spark: SparkSession) -> None:
    name = "spark.delta.logStore.s3a.impl"
    assert spark_internals.read_setting(spark, "spark.tidemark.unknown") == ""
    session = spark.newSession()
    session.conf.set(name, "another")
    assert spark_internals.read_setting(session, name) == "tidemark.ConditionalLogStore"


def test_the_first_cause_of_an_error_of_spark_is_read(spark: SparkSession) -> None:
    """Without it a disk that is full is told as a stream that failed."""
    with pytest.raises(PySparkException) as raised:
        spark.read.parquet("/nowhere").collect()
    assert spark_internals.read_first_cause(raised.value).startswith("org.apache.spark.sql.")
    with pytest.raises(Py4JJavaError) as bridged:
        java: Any = spark._jvm
        java.java.nio.file.Files.size(java.java.io.File("/nowhere").toPath())
    cause = spark_internals.read_first_cause(bridged.value)
    assert cause == "java.nio.file.NoSuchFileException: /nowhere"
    for error in (raised.value, bridged.value):
        assert isinstance(error, spark_internals.SPARK_ERRORS)
    assert spark_internals.read_first_cause(ValueError("of Python")) == ""


def test_the_jvm_of_this_process_is_known(spark: SparkSession) -> None:
    assert spark_internals.has_context()
    process = spark_internals.find_java()
    assert process is not None
    assert process.poll() is None


def test_the_heap_is_a_part_of_what_it_may_be(spark: SparkSession) -> None:
    spark_internals.collect_garbage(spark)
    assert 0 < spark_internals.measure_heap(spark) < 1


def test_a_lock_of_the_jvm_excludes_other_processes(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "lock"
    file.touch()
    held = FileLock(spark, file)
    assert held.is_held
    with file.open("a") as other, pytest.raises(BlockingIOError):
        fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    held.release()
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS_LOCK, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "held\n"
        refused = FileLock(spark, file)
        assert not refused.is_held
        refused.release()
        process.stdin.close()
    again = FileLock(spark, file)
    assert again.is_held
    again.release()
