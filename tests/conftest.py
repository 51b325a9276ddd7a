"""One Spark session for each process of tests, and no JVM for tests that request none."""

from collections.abc import Generator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import pytest
from pyspark.sql import SparkSession

from jobs.session import spark_session
from jobs.sessions.process import stay_on_utc
from jobs.sessions.profiles import DRIVER_OPTIONS, LOCAL, TEST
from tests.support.broken_bridge import begin_bridge_anew, was_ended
from tests.support.faulty_proxy import FaultyProxy, started_proxy
from tests.support.hdfs_server import HdfsServer, started_hdfs_server
from tests.support.java_guard import JavaGuard, may_start_java
from tests.support.s3_server import S3Server, started_s3_server
from windowing.location import Location
from windowing.storage import delta_log

SETTINGS = {
    **TEST,
    # Hadoop's own starts a process for every file and for the checksums beside it; those that tests
    # kill have it, as users do.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # Two processes of tests, each with a JVM, and Airflow stay within 12 GB.
    "spark.driver.memory": LOCAL["spark.driver.memory"],
    # A session for tables of a few rows has the quick compiler alone, but the suite runs for so
    # long that the other one pays.
    DRIVER_OPTIONS: LOCAL[DRIVER_OPTIONS],
}
BEGUN = pytest.StashKey[float]()
GUARD = pytest.StashKey[JavaGuard]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """How much of a long suite begins."""
    parser.addoption(
        "--begin-within", type=float, metavar="MINUTES", help="skip tests that begin later"
    )


def pytest_configure(config: pytest.Config) -> None:
    """What all tests of this process share."""
    stay_on_utc()
    home = TemporaryDirectory(prefix="tidemark-no-java-")
    config.add_cleanup(home.cleanup)
    config.stash[GUARD] = JavaGuard(Path(home.name))
    config.stash[BEGUN] = monotonic()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that request a JVM, or a server, are marked so."""
    for item in items:
        if may_start_java(item):
            item.add_marker("spark")
        if isinstance(item, pytest.Function) and "s3_server" in item.fixturenames:
            item.add_marker("s3")
        if isinstance(item, pytest.Function) and "hdfs_server" in item.fixturenames:
            item.add_marker("hdfs")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """No test begins when the time is over."""
    minutes = item.config.getoption("begin_within")
    if minutes is not None and monotonic() >= item.config.stash[BEGUN] + minutes * 60:
        pytest.skip(f"{minutes:g} minutes were over before it began")
    if not may_start_java(item):
        item.config.stash[GUARD].refuse_java()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Java is there for the next test."""
    yield
    item.config.stash[GUARD].allow_java()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> None:
    """A test that takes too long is ended in the middle of a call; no other one fails by that."""
    if call.excinfo is not None and was_ended(call.excinfo.value):
        begin_bridge_anew()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with Delta, two cores, small shuffles."""
    session = spark_session("tests", **SETTINGS)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def jvm() -> None:
    """Requested by tests, and by fixtures, that start processes with a JVM."""


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A server that speaks S3, for all tests of this process."""
    with started_s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def s3_home(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Location:
    """A directory without files in a bucket of its own; the environment says where S3 is."""
    for name, value in s3_server.environ.items():
        monkeypatch.setenv(name, value)
    return Location(f"s3://{s3_server.make_bucket()}/lake")


@pytest.fixture(scope="session")
def hdfs_server(tmp_path_factory: pytest.TempPathFactory, jvm: None) -> Iterator[HdfsServer]:
    """A name node and a data node of HDFS, for all tests of this process."""
    with started_hdfs_server(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture
def hdfs_home(hdfs_server: HdfsServer) -> Location:
    """A directory without files that nobody else has."""
    return Location(hdfs_server.make_home())


@pytest.fixture(
    params=[pytest.param("s3", marks=pytest.mark.s3), pytest.param("hdfs", marks=pytest.mark.hdfs)]
)
def shared_home(request: pytest.FixtureRequest, jvm: None) -> Location:
    """A directory without files on each storage that machines share; JVMs serve one of them."""
    home = request.getfixturevalue(f"{request.param}_home")
    assert isinstance(home, Location)
    return home


@pytest.fixture
def s3_proxy(
    s3_server: S3Server, s3_home: Location, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FaultyProxy]:
    """A proxy through which all that is asked of `s3_home` goes, also by processes."""
    with started_proxy(s3_server.endpoint) as proxy:
        for name, value in proxy.environ.items():
            monkeypatch.setenv(name, value)
        yield proxy


@pytest.fixture(autouse=True)
def forgotten(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a test with a lake of its own the JVM forgets its tables.

    It would keep the plans of every snapshot for an hour.
    """
    if not {"spark", "tmp_path"} <= set(request.fixturenames):
        yield
        return
    spark, path = request.getfixturevalue("spark"), request.getfixturevalue("tmp_path")
    yield
    delta_log.forget(spark, Location(str(path)))


@pytest.fixture(autouse=True, scope="module")
def forgotten_too() -> Iterator[None]:
    """After a file whose tests share a lake as well."""
    yield
    session = SparkSession.getActiveSession()
    if session is not None:
        delta_log.forget_all(session)
