"""What a pipeline does on a cluster with its lake on S3 or HDFS, from first run to publication.

Its tables are the oracle's, and row by row those of a local session with its lake on a disk.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.cluster.life import (
    LATER,
    carry_by_spark,
    compare_lakes,
    live,
    make_lab,
    read_published,
)
from tests.support.cluster import Cluster
from tests.support.hdfs_server import HdfsServer
from tests.support.pipeline_under_test import Lab
from tests.support.s3_server import KEYS, S3Server
from windowing.location import Location

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module", params=["s3", "hdfs"])
def lived(
    request: pytest.FixtureRequest, session: SparkSession, cluster: Cluster, hdfs: HdfsServer
) -> Iterator[Lab]:
    """The pipeline on the cluster and on shared storage, at the end of its life."""
    server: S3Server | HdfsServer = cluster.s3 if request.param == "s3" else hdfs
    with pytest.MonkeyPatch.context() as patched:
        for name, value in cluster.s3.environ.items():
            patched.setenv(name, value)
        carry_by_spark(patched)
        lab = make_lab(session, Location(server.make_home()))
        live(lab)
        yield lab


def test_every_row_is_that_of_a_local_session(
    lived: Lab, here: Path, session: SparkSession
) -> None:
    compare_lakes(session, Location(str(lived.home)), Location(str(here)))


def test_spark_and_other_libraries_read_what_was_published(
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
    for executor in cluster.wait_for_executors():
        process = Path(f"/proc/{executor}")
        assert KEYS.secret.encode() in (process / "environ").read_bytes()
        assert KEYS.secret.encode() not in (process / "cmdline").read_bytes()
