"""What a pipeline does on a cluster with its lake on a disk, on S3 or on HDFS.

Its tables are the oracle's, and row by row those of a local session with its lake on a disk. No
executor starts a Python for it. Executors have the keys of S3 of their workers' environment.
"""

import contextlib
from collections.abc import Iterator
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
from tests.support.hdfs_server import HdfsServer
from tests.support.pipeline_under_test import Lab
from tests.support.s3_server import KEYS
from windowing.location import Location

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module", params=["disk", "s3", "hdfs"])
def lived(
    request: pytest.FixtureRequest,
    session: SparkSession,
    cluster: Cluster,
    hdfs: HdfsServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Lab]:
    """The pipeline on the cluster and on that storage, at the end of its life."""
    homes = {
        "disk": lambda: str(tmp_path_factory.mktemp("on-cluster")),
        "s3": cluster.s3.make_home,
        "hdfs": hdfs.make_home,
    }
    with pytest.MonkeyPatch.context() as patched:
        for name, value in cluster.s3.environ.items():
            patched.setenv(name, value)
        carry_by_spark(patched)
        lab = make_lab(session, Location(homes[request.param]()))
        live(lab)
        yield lab


def test_every_row_is_that_of_a_local_session(
    lived: Lab, here: Path, session: SparkSession
) -> None:
    compare_lakes(session, Location(str(lived.home)), Location(str(here)))


def test_readers_of_other_libraries_see_what_was_published(
    lived: Lab, session: SparkSession
) -> None:
    found = read_published(session, lived, LATER)
    assert {*found} == {window.name for window in LATER}
    assert all(found.values())


@pytest.mark.usefixtures("lived")
def test_executors_have_the_keys_and_no_setting_has(
    session: SparkSession, cluster: Cluster
) -> None:
    settings = dict(session.sparkContext.getConf().getAll())
    assert "spark.hadoop.fs.s3a.endpoint" in settings
    assert KEYS.secret not in str(settings)
    for executor in cluster.wait_for_executors(session):
        process = Path(f"/proc/{executor}")
        assert KEYS.secret.encode() in (process / "environ").read_bytes()
        assert KEYS.secret.encode() not in (process / "cmdline").read_bytes()


@pytest.mark.usefixtures("lived")
def test_no_executor_has_started_a_python(session: SparkSession, cluster: Cluster) -> None:
    assert not cluster.python_was_called
    with pytest.raises(Exception):  # noqa: B017, PT011 whatever Spark makes of it
        session.range(0, 1, 1, 1).select(F.udf(lambda n: n)("id")).collect()
    assert cluster.python_was_called, "one that had would have been seen"
    cluster.forget_python()


@pytest.mark.usefixtures("lived")
def test_nobody_can_read_the_secret_of_the_cluster(cluster: Cluster, session: SparkSession) -> None:
    assert len(cluster.wait_for_executors(session)) == WORKERS
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
