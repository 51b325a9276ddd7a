"""Tests beside other tests: which come first, what they share, and that none of them is lost."""

from collections.abc import Callable
from dataclasses import dataclass, field
from os import environ
from pathlib import Path
from threading import Event, Timer
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from jobs.cli.main import main
from tests.support.command_line import run_command
from tests.support.pipeline_under_test import Lab
from tests.support.run_beside import (
    Beside,
    find_process_wide,
    from_the_end,
    refuse_process_wide,
)

PATIENCE = 60
"""Seconds until a test that waits for another one gives up."""


@dataclass
class Listed:
    """As much of a test as is asked for: its name, its function and what it shares."""

    nodeid: str
    obj: Callable[..., None]
    shares: dict[str, Any] = field(default_factory=dict)

    def get_closest_marker(self, name: str) -> SimpleNamespace:
        """The marker, whose arguments are what the test shares."""
        assert name == "beside"
        return SimpleNamespace(kwargs=self.shares)


def suite(*tests: Listed) -> list[pytest.Function]:
    """The tests in the order of the suite."""
    return cast("list[pytest.Function]", list(tests))


def lived(spark: SparkSession, root: Path) -> list[str]:
    """What two tests share; it knows which of them came first."""
    return [f"made in {'a directory' if root.is_dir() else 'nothing'}"]


def test_the_last_comes_first_and_those_that_share_something_keep_their_order() -> None:
    def nothing() -> None:
        pass

    shares = {"life": lived}
    tests = suite(
        Listed("one", nothing),
        Listed("grows", nothing, shares),
        Listed("shrinks", nothing, shares),
        Listed("last", nothing),
    )
    assert [[test.nodeid for test in group] for group in from_the_end(tests)] == [
        ["last"],
        ["grows", "shrinks"],
        ["one"],
    ]


@dataclass(frozen=True)
class Gate:
    """Where a test that runs beside waits until it is let go on."""

    begun: Event = field(default_factory=Event)
    free: Event = field(default_factory=Event)

    def wait(self) -> None:
        """Says that the test has begun, and returns once it is free."""
        self.begun.set()
        assert self.free.wait(PATIENCE)


def run_by_the_suite(*_: object) -> None:
    """A test that must not run beside."""
    raise AssertionError("it was run beside, and by the suite")


def test_what_has_not_begun_is_left_to_the_suite_and_what_failed_fails_there(
    spark: SparkSession,
) -> None:
    gate = Gate()

    def wait() -> None:
        gate.wait()
        raise ValueError("seen")

    earlier, later = suite(Listed("earlier", run_by_the_suite), Listed("later", wait))
    running = Beside(spark, [earlier, later])
    assert gate.begun.wait(PATIENCE)
    assert not running.ended(earlier), "the suite came to it first"
    gate.free.set()
    with pytest.raises(ValueError, match="seen"):
        running.ended(later)
    running.stop()


def test_those_that_share_something_stay_with_the_suite_where_it_came_to_the_first(
    spark: SparkSession,
) -> None:
    gate, passed = Gate(), Event()

    def share(life: list[str]) -> None:
        run_by_the_suite(life)

    earlier, grows, shrinks, later = suite(
        Listed("earlier", passed.set),
        Listed("grows", share, {"life": lived}),
        Listed("shrinks", share, {"life": lived}),
        Listed("later", gate.wait),
    )
    running = Beside(spark, [earlier, grows, shrinks, later])
    assert gate.begun.wait(PATIENCE)
    assert not running.ended(grows), "the suite came to it first"
    gate.free.set()
    # The test before the group has begun, so the group has had its turn.
    assert passed.wait(PATIENCE)
    assert not running.ended(shrinks), "it goes on from what the first one leaves"
    assert running.ended(later)
    assert running.ended(earlier)
    running.stop()


def test_tests_that_share_something_stay_together_once_one_has_begun(spark: SparkSession) -> None:
    gate = Gate()

    def grow(life: list[str]) -> None:
        gate.wait()
        life.append("grown")

    def shrink(life: list[str], tmp_path: Path) -> None:
        assert life == ["made in a directory", "grown"]
        assert tmp_path.is_dir()

    grows, shrinks = suite(
        Listed("grows", grow, {"life": lived}), Listed("shrinks", shrink, {"life": lived})
    )
    running = Beside(spark, [grows, shrinks])
    assert gate.begun.wait(PATIENCE)
    assert running.keeps(shrinks), "its pipeline is what the first one leaves"
    gate.free.set()
    assert running.ended(grows)
    assert running.ended(shrinks)
    assert running.took.keys() == {"grows", "shrinks"}
    running.stop()


def test_none_begins_any_more_once_it_is_stopped(spark: SparkSession) -> None:
    gate = Gate()

    def grow(life: list[str]) -> None:
        gate.wait()
        life.append("grown")

    def shrink(life: list[str]) -> None:
        life.clear()

    running = Beside(
        spark,
        suite(Listed("grows", grow, {"life": lived}), Listed("shrinks", shrink, {"life": lived})),
    )
    assert gate.begun.wait(PATIENCE)
    # It stops while the first one is still running.
    Timer(0.5, gate.free.set).start()
    running.stop()
    assert running.took.keys() == {"grows"}


def test_a_test_that_changes_what_the_process_has_one_of_is_not_run_beside() -> None:
    def by_itself() -> None:
        CliRunner().invoke(main, ["late"])

    def inside() -> list[Any]:
        return [environ["HOME"] for _ in range(2)]

    def through_a_helper(lab: Lab) -> None:
        run_command(lab, "late")

    def harmless() -> None:
        suite()

    assert find_process_wide(by_itself) == {"CliRunner"}
    assert find_process_wide(inside) == {"environ"}
    assert find_process_wide(through_a_helper) == {"CliRunner"}
    assert not find_process_wide(harmless)
    with pytest.raises(pytest.UsageError, match="late is marked beside but uses CliRunner"):
        refuse_process_wide(suite(Listed("late", by_itself)))
