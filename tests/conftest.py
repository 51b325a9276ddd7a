"""One Spark session for the whole suite."""

from collections.abc import Iterator

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from jobs.play import TINY
from jobs.session import spark_session

SETTINGS = {
    **TINY,
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "3g",
    # The suite runs long enough for the optimizing compiler to pay.
    "spark.driver.defaultJavaOptions": "",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with Delta, two cores, small shuffles."""
    session = spark_session("tests", **SETTINGS)
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def forgotten(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a test with a lake of its own the JVM forgets all tables; it would keep the plans of every snapshot for an hour."""
    yield
    if {"spark", "tmp_path"} <= set(request.fixturenames):
        _forget()


@pytest.fixture(autouse=True, scope="module")
def forgotten_too() -> Iterator[None]:
    """After a file whose tests share a lake as well."""
    yield
    _forget()


def _forget() -> None:
    context = SparkContext._active_spark_context
    if context is not None:
        getattr(context._jvm, "org.apache.spark.sql.delta.DeltaLog").clearCache()
