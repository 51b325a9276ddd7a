"""A test that is ended while it waits for the JVM makes no other one fail."""

import signal
from collections.abc import Iterator
from threading import Timer, main_thread
from typing import Any, NoReturn

import pytest
from pyspark.sql import SparkSession

from tests.support.broken_bridge import begin_bridge_anew, was_ended

SECONDS = 0.5


@pytest.fixture
def alarmed() -> Iterator[None]:
    """Soon the test is ended, as by its timeout."""

    def end(number: int, frame: object) -> NoReturn:
        pytest.fail("took too long")

    before = signal.signal(signal.SIGUSR1, end)
    asked = (main_thread().ident, signal.SIGUSR1)
    timer = Timer(SECONDS, signal.pthread_kill, asked)
    timer.start()
    yield
    timer.join()
    signal.signal(signal.SIGUSR1, before)


def test_calls_after_one_that_was_left_have_answers_of_their_own(
    spark: SparkSession, alarmed: None
) -> None:
    java: Any = spark._jvm
    # What pytest keeps of an error keeps the connection open.
    with pytest.raises(pytest.fail.Exception) as ended:
        java.java.lang.Thread.sleep(round(SECONDS * 6000))
    begin_bridge_anew()
    assert ended.value.msg == "took too long"
    assert [java.java.lang.Math.abs(-number) for number in range(5)] == [0, 1, 2, 3, 4]
    assert spark.range(3).count() == 3


def test_what_fails_after_a_test_was_ended_is_told_from_what_fails_by_itself() -> None:
    assert not was_ended(None)
    assert not was_ended(ValueError())
    later = KeyError()
    later.__context__ = ValueError()
    assert not was_ended(later)
    later.__context__.__context__ = pytest.fail.Exception("took too long")
    assert was_ended(later)
