"""A Spark session for tests whose tables are on the S3 server."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from jobs.session import spark_session
from tests.conftest import SETTINGS
from tests.support.s3_server import S3Server


@contextmanager
def session_on_s3(server: S3Server) -> Iterator[SparkSession]:
    """Inside, a session whose JVM has the variables of the server, and so has this process.

    No other session may run in this process, because its JVM would have no such variables.
    """
    # Hadoop's client of S3 writes to local files by a class of its own.
    settings = {name: value for name, value in SETTINGS.items() if "fs.file.impl" not in name}
    with pytest.MonkeyPatch.context() as patched:
        for name, value in server.environ.items():
            patched.setenv(name, value)
        session = spark_session("tests on S3", **settings)
        assert session.conf.get("spark.hadoop.fs.s3a.endpoint") == server.endpoint
        yield session
        session.stop()
