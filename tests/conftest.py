"""One Spark session for the whole suite."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from jobs.session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with Delta, two cores, small shuffles."""
    session = spark_session("tests", **{"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "3g"})
    yield session
    session.stop()
