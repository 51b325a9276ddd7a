"""Tests that need nothing but the session run beside the other tests, one after the other: a single run leaves part of two cores idle.

They come last in the suite's order and are begun from the end; those that have not been when the suite comes to them run as any test does.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock
from time import perf_counter

import pytest
from pyspark.sql import SparkSession

from windowing import delta

MARK = "beside"


class Beside:
    """The marked tests of a suite; the last ones begin at once. `took` tells the seconds of those that passed."""

    def __init__(self, spark: SparkSession, tests: Sequence[pytest.Function]) -> None:
        self._spark, self._turn, self._open = spark, Lock(), Event()
        self._open.set()
        self._pool = ThreadPoolExecutor(1)
        self.took: dict[str, float] = {}
        self._ends: dict[str, Future[None]] = {test.nodeid: self._pool.submit(self._one, test) for test in reversed(tests)}

    def _one(self, test: pytest.Function) -> None:
        self._open.wait()
        with self._turn, TemporaryDirectory() as home:
            begun = perf_counter()
            given = {"spark": self._spark, "tmp_path": Path(home)} | (test.callspec.params if hasattr(test, "callspec") else {})
            test.obj(**{name: given[name] for name in signature(test.obj).parameters})
            self.took[test.nodeid] = perf_counter() - begun
            delta.forget(self._spark, Path(home))

    def ended(self, test: pytest.Function) -> bool:
        """Whether the test was run here, once it has ended; what it raised is raised. From now on it is not begun here."""
        end = self._ends.get(test.nodeid)
        if end is None or end.cancel():
            return False
        end.result()
        return True

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Nothing runs beside the block."""
        self._open.clear()
        try:
            with self._turn:
                yield
        finally:
            self._open.set()

    def stop(self) -> None:
        """Begins no other test, and waits for the one that was begun."""
        self._open.set()
        self._pool.shutdown(cancel_futures=True)
