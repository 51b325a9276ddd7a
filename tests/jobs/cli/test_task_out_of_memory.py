"""A task of Spark that could not get its memory: the command says which setting to raise."""

from jobs.cli.errors import explain_error
from tests.system.test_hostile_environment import JavaError, Thrown

CAUSE = (
    "org.apache.spark.memory.SparkOutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY] "
    "Unable to acquire 33554432 bytes of memory, got 0. SQLSTATE: 53200"
)


def test_the_setting_is_named() -> None:
    failure = explain_error(JavaError(Thrown("a.b.Aborted: x", Thrown(CAUSE))))
    assert (failure.code, failure.message) == (
        1,
        "a task of Spark needed more memory than it could get; raise spark.executor.memory of "
        "the cluster, or spark.driver.memory where Spark runs here, then run again, which "
        "finishes what was begun",
    )
