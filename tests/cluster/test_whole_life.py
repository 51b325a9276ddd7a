"""What a pipeline does on a cluster: the oracle's tables, row by row those of a local session.

No executor starts a Python for it.
"""

import contextlib
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.cluster.life import (
    LATER,
    carry_by_spark,
    compare_lakes,
    live,
    make_lab,
    read_published,
)
from tests.support.cluster import WORKERS, Cluster
from tests.support.pipeline_under_test import Lab
from tests.support.s3_server import KEYS
from windowing.location import Location

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def lived(session: SparkSession, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """The pipeline on the cluster, at the end of its life."""
    with pytest.MonkeyPatch.context() as patched:
        carry_by_spark(patched)
        lab = make_lab(session, tmp_path_factory.mktemp("on-cluster"))
        live(lab)
    return lab


def test_every_row_is_that_of_a_local_session(
    lived: Lab, here: Path, session: SparkSession
) -> None:
    compare_lakes(session, Location(str(lived.root)), Location(str(here)))


def test_readers_of_other_libraries_see_what_was_published(
    lived: Lab, session: SparkSession
) -> None:
    found = read_published(session, lived, LATER)
    assert {*found} == {window.name for window in LATER}
    assert all(found.values())


@pytest.mark.usefixtures("lived")
def test_no_executor_has_started_a_python(session: SparkSession, cluster: Cluster) -> None:
    assert not cluster.python_was_called
    with pytest.raises(Exception):  # noqa: B017, PT011 whatever Spark makes of it
        session.range(1).select(F.udf(lambda n: n)("id")).collect()
    assert cluster.python_was_called, "one that had would have been seen"


@pytest.mark.usefixtures("lived")
def test_nobody_can_read_the_secret_of_the_cluster(cluster: Cluster, session: SparkSession) -> None:
    assert len(cluster.wait_for_executors()) == WORKERS
    assert session.sparkContext.getConf().get("spark.authenticate.secret") == cluster.secret
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            with contextlib.suppress(OSError):
                line = (process / "cmdline").read_bytes()
                assert cluster.secret.encode() not in line
                assert KEYS.secret.encode() not in line
    logs = [*cluster.home.glob("*.log"), *cluster.home.rglob("stderr")]
    assert len(logs) >= 1 + 2 * WORKERS
    for log in logs:
        assert cluster.secret not in log.read_text(), log
        assert KEYS.secret not in log.read_text(), log
