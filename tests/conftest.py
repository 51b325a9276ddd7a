"""One Spark session for the whole suite."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from jobs.session import spark_session

SETTINGS = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "3g",
    # Tables of a few rows: compiling and re-planning each query costs more than running it.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with Delta, two cores, small shuffles."""
    session = spark_session("tests", **SETTINGS)
    yield session
    session.stop()
