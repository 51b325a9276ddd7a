"""Credentials that Spark's client of S3 is refused with: the command says so, and no secret."""

import pytest
from pyspark.errors import PySparkException

from jobs.cli.errors import explain_error
from tests.system.test_hostile_environment import JavaError, Thrown

DENIED = (
    "java.nio.file.AccessDeniedException: s3a://bucket/lake/hourly/_delta_log: getFileStatus: "
    "software.amazon.awssdk.services.s3.model.S3Exception: null"
)
EXPIRED = (
    "software.amazon.awssdk.services.s3.model.S3Exception: The provided token has expired "
    "(Service: S3, Status Code: 400, Extended Request ID: a) ExpiredToken: a made-up token"
)


@pytest.mark.parametrize(
    "error",
    [
        PySparkException(DENIED),
        JavaError(Thrown("org.apache.spark.SparkException: Job aborted", Thrown(DENIED))),
        JavaError(Thrown("org.apache.hadoop.fs.s3a.AWSBadRequestException: x", Thrown(EXPIRED))),
    ],
)
def test_they_are_to_be_renewed(error: Exception) -> None:
    failure = explain_error(error)
    assert (failure.code, failure.message) == (
        1,
        "the store refuses the credentials of Spark, which may have expired; renew them, then run "
        "again, which finishes what was begun",
    )


def test_a_local_file_that_may_not_be_read_is_another_thing() -> None:
    thrown = Thrown("java.nio.file.AccessDeniedException: /data/lake/hourly/_delta_log")
    assert "credentials" not in explain_error(JavaError(thrown)).message
