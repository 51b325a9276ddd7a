"""Checks that need nothing but the session run beside the other tests, one after the other; their tests hear what came of them.

A single run leaves part of two cores idle, which these use.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, Lock
from typing import Any

from pyspark.sql import SparkSession

Check = Callable[[SparkSession], Any]


class Beside:
    """The checks of some tests, by the id of the test; they begin at once."""

    def __init__(self, spark: SparkSession, checks: Mapping[str, Check]) -> None:
        self._spark, self._turn, self._open = spark, Lock(), Event()
        self._open.set()
        self._pool = ThreadPoolExecutor(1)
        self._ends: dict[str, Future[Any]] = {name: self._pool.submit(self._one, check) for name, check in checks.items()}

    def _one(self, check: Check) -> Any:
        self._open.wait()
        with self._turn:
            return check(self._spark)

    def result(self, name: str) -> Any:
        """What the check of a test gave, or raised."""
        return self._ends[name].result()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Nothing runs beside the block."""
        self._open.clear()
        with self._turn:
            yield
        self._open.set()

    def stop(self) -> None:
        """Begins no other check, and waits for the one that was begun."""
        self._open.set()
        self._pool.shutdown(cancel_futures=True)
