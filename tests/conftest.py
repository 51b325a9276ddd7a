"""One Spark session for the whole suite."""

from collections.abc import Generator, Iterator, Sequence

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from jobs.session import LOCAL, spark_session
from jobs.transcripts import TINY
from tests.support.run_beside import ALONE, MARK, Beside, refuse_process_wide
from tests.support.time_budget import TimeBudget, add_options, turn_files
from windowing import delta

SETTINGS = {
    **TINY,
    # Hadoop's own starts a process for every file and for the checksums beside it; those that tests
    # kill have it, as users do.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.driver.memory": "6g",
    # A session for tables of a few rows has the quick compiler alone, but the suite runs for so
    # long that the other one pays.
    "spark.driver.defaultJavaOptions": LOCAL["spark.driver.defaultJavaOptions"],
}
BUDGET = pytest.StashKey[TimeBudget]()
BESIDE = pytest.StashKey[Beside]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """How much of a long suite begins, and with which file."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """The markers that set a test's turn, and the time that there is."""
    config.stash[BUDGET] = TimeBudget(config.getoption("begin_within"))
    config.addinivalue_line(
        "markers",
        f"{MARK}: takes a session, a directory, parameters and what this makes, so it can run "
        f"beside others",
    )
    config.addinivalue_line("markers", f"{ALONE}: nothing else may use the JVM meanwhile")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that can run beside the others come last; those that share something last of them.

    Thus those that share something, which no two threads can divide, are begun first. Behind all
    come those that must not have any beside them.
    """
    refuse_process_wide(_list_marked(items))
    word = config.getoption("begin_at")
    items[:] = sorted(items if word is None else turn_files(items, word), key=_turn)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Counts what was chosen."""
    session.config.stash[BUDGET].chosen = len(session.items)


def _turn(item: pytest.Item) -> int:
    if item.get_closest_marker(ALONE):
        return 3
    mark = item.get_closest_marker(MARK)
    if mark is None:
        return 0
    shares_something = bool(mark.kwargs)
    return 2 if shares_something else 1


def _list_marked(items: Sequence[pytest.Item]) -> list[pytest.Function]:
    """Those that can run beside the others."""
    return [
        item
        for item in items
        if isinstance(item, pytest.Function) and item.get_closest_marker(MARK)
    ]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """None begins any more when the time is over; those that were run already have begun."""
    if item.config.stash[BUDGET].is_spent and not _has_begun(item):
        item.config.stash[BUDGET].skip()


def _has_begun(item: pytest.Item) -> bool:
    running = item.config.stash.get(BESIDE, None)
    return isinstance(item, pytest.Function) and running is not None and running.keeps(item)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how much of the suite there was time for."""
    said = terminalreporter.config.stash[BUDGET].summary()
    if said is not None:
        terminalreporter.write_line(said)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Those that were run already are not run again."""
    running = pyfuncitem.funcargs.get("beside")
    return True if isinstance(running, Beside) and running.ended(pyfuncitem) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """They took what they took beside."""
    report = yield
    running = getattr(item, "funcargs", {}).get("beside")
    if call.when == "call" and isinstance(running, Beside):
        report.duration = running.took.get(item.nodeid, report.duration)
    return report


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with Delta, two cores, small shuffles."""
    session = spark_session("tests", **SETTINGS)
    yield session
    session.stop()


@pytest.fixture(scope="session", autouse=True)
def beside(request: pytest.FixtureRequest) -> Iterator[Beside | None]:
    """What runs the marked tests of all that were chosen.

    It is None, and there is no session, where none is marked.
    """
    marked = _list_marked(request.session.items)
    running = Beside(request.getfixturevalue("spark"), marked) if marked else None
    if running is not None:
        request.config.stash[BESIDE] = running
    yield running
    if running is not None:
        running.stop()


@pytest.fixture(autouse=True)
def forgotten(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a test with a lake of its own the JVM forgets its tables.

    It would keep the plans of every snapshot for an hour.
    """
    alone = {"spark", "tmp_path"} <= set(request.fixturenames)
    lake = (
        (request.getfixturevalue("spark"), request.getfixturevalue("tmp_path")) if alone else None
    )
    yield
    if lake is not None:
        delta.forget(*lake)


@pytest.fixture(autouse=True, scope="module")
def forgotten_too() -> Iterator[None]:
    """After a file whose tests share a lake as well."""
    yield
    context = SparkContext._active_spark_context
    if context is not None:
        getattr(context._jvm, "org.apache.spark.sql.delta.DeltaLog").clearCache()
