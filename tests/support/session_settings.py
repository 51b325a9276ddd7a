"""A setting of a session that other tests share."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession


@contextmanager
def setting_changed(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Inside, the setting has this value; afterwards it is what it was, or is not set again."""
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)
