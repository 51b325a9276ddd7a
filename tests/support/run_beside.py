"""Tests that need nothing but the session run beside the other tests, one after the other.

A single run leaves part of two cores idle. With two of them beside the suite took longer.

They come last in the suite's order and are begun from the end; those that have not been when the
suite comes to them run as any test does. What several of them share is an argument of the marker:
`beside(life=lived)` gives them what `lived(spark, directory)` has made once. Such a group keeps its
own order, since each test goes on from what the one before it has left, and all of it runs beside
once its first test has begun. Behind them come the tests marked `alone`, which do to the JVM what
no other test could bear.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from inspect import signature
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from time import perf_counter
from types import CodeType, FunctionType
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from windowing import delta

MARK = "beside"
ALONE = "alone"
CHANGES_THE_PROCESS = frozenset({"CliRunner", "chdir", "environ", "redirect_stdout"})
"""What two threads can't use at once: the standard streams, the directory, the environment."""
Makers = dict[str, Callable[[SparkSession, Path], Any]]


def shared(test: pytest.Function) -> Makers:
    """What the test shares with others of its file, and what makes it."""
    mark = test.get_closest_marker(MARK)
    return {} if mark is None else mark.kwargs


def from_the_end(tests: Sequence[pytest.Function]) -> Iterator[tuple[pytest.Function, ...]]:
    """The groups of tests that share something, the last group first, each in its own order.

    A test that shares nothing is a group of its own.
    """
    for sharing, group in groupby(reversed(tests), key=shared):
        last_first = list(group)
        if sharing:
            yield tuple(reversed(last_first))
        else:
            yield from ((test,) for test in last_first)


def refuse_process_wide(tests: Sequence[pytest.Function]) -> None:
    """Raises UsageError where a marked test uses what belongs to the whole process."""
    for test in tests:
        used = find_process_wide(test.obj)
        if used:
            raise pytest.UsageError(
                f"{test.nodeid} is marked {MARK} but uses {', '.join(sorted(used))}, which belongs "
                f"to the whole process; take the marker off"
            )


def find_process_wide(test: Callable[..., None]) -> frozenset[str]:
    """Names of `CHANGES_THE_PROCESS` that the test uses, or a function of tests that it calls."""
    found: set[str] = set()
    asked: set[FunctionType] = set()
    waiting = {cast("FunctionType", test)}
    while waiting:
        function = waiting.pop()
        asked.add(function)
        names = {name for code in _list_codes(function.__code__) for name in code.co_names}
        found |= CHANGES_THE_PROCESS & names
        called = [function.__globals__.get(name) for name in names]
        waiting |= {it for it in called if isinstance(it, FunctionType) and _is_of_tests(it)}
        waiting -= asked
    return frozenset(found)


def _list_codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _list_codes(const)


def _is_of_tests(function: FunctionType) -> bool:
    return function.__module__.startswith("tests.")


def _has_begun(end: "Future[None]") -> bool:
    return end.running() or (end.done() and not end.cancelled())


class Beside:
    """The marked tests of a suite; the last ones begin at once.

    `took` tells the seconds of those that passed.
    """

    def __init__(self, spark: SparkSession, tests: Sequence[pytest.Function]) -> None:
        self._spark, self._pool, self._homes = spark, ThreadPoolExecutor(1), ExitStack()
        self._stopped = Event()
        self.took: dict[str, float] = {}
        self._ends: dict[str, Future[None]] = {}
        self._first_ends: dict[str, Future[None]] = {}
        for group in from_the_end(tests):
            for test in group:
                self._ends[test.nodeid] = Future()
                self._first_ends[test.nodeid] = self._ends[group[0].nodeid]
            self._pool.submit(self._run_group, group)

    def _run_group(self, group: Sequence[pytest.Function]) -> None:
        made: dict[str, Any] = {}
        for test in group:
            end = self._ends[test.nodeid]
            if self._stopped.is_set() or not end.set_running_or_notify_cancel():
                # Where the suite has come to the first test, the others are its own, too.
                return
            try:
                self._run_test(test, made)
            except BaseException as error:
                # Those of pytest, as for a skipped test, are no Exceptions.
                end.set_exception(error)
            else:
                end.set_result(None)

    def _run_test(self, test: pytest.Function, made: dict[str, Any]) -> None:
        with TemporaryDirectory() as home:
            begun = perf_counter()
            test.obj(**self._give_arguments(test, Path(home), made))
            self.took[test.nodeid] = perf_counter() - begun
            delta.forget(self._spark, Path(home))

    def _give_arguments(
        self, test: pytest.Function, home: Path, made: dict[str, Any]
    ) -> dict[str, Any]:
        """What the test asks for; `made` is what its group shares, and grows here."""
        given = {"spark": self._spark, "tmp_path": home} | (
            test.callspec.params if hasattr(test, "callspec") else {}
        )
        asked = signature(test.obj).parameters
        for name, make in shared(test).items():
            if name in asked and name not in made:
                directory = self._homes.enter_context(TemporaryDirectory())
                made[name] = make(self._spark, Path(directory))
        return {name: made[name] if name in made else given[name] for name in asked}

    def keeps(self, test: pytest.Function) -> bool:
        """Whether the test has begun here, or one before it of those that share something.

        If not, it is not begun here from now on.
        """
        end = self._ends.get(test.nodeid)
        if end is None:
            return False
        return _has_begun(self._first_ends[test.nodeid]) or not end.cancel()

    def ended(self, test: pytest.Function) -> bool:
        """Whether the test was run here, once it has ended; what it raised is raised.

        From now on it is not begun here.
        """
        if not self.keeps(test):
            return False
        self._ends[test.nodeid].result()
        return True

    def stop(self) -> None:
        """Begins no other test, and waits for the one that was begun."""
        self._stopped.set()
        self._pool.shutdown(cancel_futures=True)
        self._homes.close()
