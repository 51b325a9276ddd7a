"""One Spark session for the whole suite."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from jobs.play import TINY
from jobs.session import spark_session
from tests.beside import Beside, Check

SETTINGS = {
    **TINY,
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "6g",
    # The suite runs long enough for the optimizing compiler to pay.
    "spark.driver.defaultJavaOptions": "",
}


def pytest_configure(config: pytest.Config) -> None:
    """The marker of tests whose work is done beside the others."""
    config.addinivalue_line("markers", "beside(check=...): check(spark, *parameters) runs beside other tests; the test hears its result")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with Delta, two cores, small shuffles."""
    session = spark_session("tests", **SETTINGS)
    yield session
    session.stop()


@pytest.fixture(scope="session", autouse=True)
def beside(request: pytest.FixtureRequest) -> Iterator[Beside | None]:
    """The checks of all chosen tests that are marked so; None, and no session, where there are none."""
    marked = [(item, item.get_closest_marker("beside")) for item in request.session.items if isinstance(item, pytest.Function)]
    checks = {i.nodeid: _check(mark.kwargs["check"], [*i.callspec.params.values()]) for i, mark in marked if mark is not None}
    running = Beside(request.getfixturevalue("spark"), checks) if checks else None
    yield running
    if running is not None:
        running.stop()


def _check(body: Callable[..., Any], parameters: list[Any]) -> Check:
    return lambda spark: body(spark, *parameters)


@pytest.fixture
def heard(request: pytest.FixtureRequest, beside: Beside) -> Any:
    """What the test's own check gave; what it raised is raised."""
    return beside.result(request.node.nodeid)


@pytest.fixture(autouse=True)
def forgotten(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a test with a lake of its own the JVM forgets all tables; it would keep the plans of every snapshot for an hour."""
    yield
    if {"spark", "tmp_path"} <= set(request.fixturenames):
        _forget()


@pytest.fixture(autouse=True, scope="module")
def forgotten_too() -> Iterator[None]:
    """After a file whose tests share a lake as well."""
    yield
    _forget()


def _forget() -> None:
    context = SparkContext._active_spark_context
    if context is not None:
        getattr(context._jvm, "org.apache.spark.sql.delta.DeltaLog").clearCache()
