"""One Spark session for the whole suite."""

from collections.abc import Iterator

import pytest
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
        session: SparkSession = request.getfixturevalue("spark")
        getattr(session._jvm, "org.apache.spark.sql.delta.DeltaLog").clearCache()
