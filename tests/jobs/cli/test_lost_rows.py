"""Rows that are gone with all executors that had them: the command says what to do."""

import pytest
from pyspark.errors import SparkRuntimeException

from jobs.cli.errors import explain_error
from tests.system.test_hostile_environment import JavaError, Thrown

LOST = "[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_1_2 not found!"


@pytest.mark.parametrize(
    "error",
    [
        SparkRuntimeException(f"Job aborted due to stage failure: {LOST}"),
        JavaError(Thrown("a.b.Aborted: x", Thrown(f"org.apache.spark.SparkException: {LOST}"))),
    ],
)
def test_the_command_is_to_be_run_again(error: Exception) -> None:
    failure = explain_error(error)
    assert (failure.code, failure.message) == (
        1,
        "all executors were lost that had some rows of this command; "
        "run it again, which finishes what was begun",
    )
