"""One cluster and one session on it for all tests."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.session import spark_session
from jobs.sessions.process import environment_changed
from jobs.sessions.profiles import TINY
from tests.support.cluster import Cluster, serve_cluster
from tests.support.hdfs_server import HdfsServer, started_hdfs_server
from tests.support.s3_server import started_s3_server
from windowing.storage import spark_internals

SETTINGS = {
    # Executors would compile the queries of few rows longer than they run.
    **TINY,
    # Both executors have rows of every query, and no shuffle is a job of its own.
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
}


@pytest.fixture(scope="session")
def cluster(jvm: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster, which lives as long as the process of the tests."""
    with (
        started_s3_server(tmp_path_factory.mktemp("s3")) as s3,
        serve_cluster(tmp_path_factory.mktemp("cluster"), s3) as served,
    ):
        yield served


@pytest.fixture(scope="session")
def hdfs(jvm: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """A name node and a data node, for lakes of pipelines on the cluster."""
    with started_hdfs_server(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture(scope="session")
def session(cluster: Cluster) -> Iterator[SparkSession]:
    """The session of this process on the cluster; a Python there would fail."""
    if spark_internals.has_context():
        pytest.fail("this process has a local session already; run `make test-cluster`")
    variables = {**cluster.variables(), "PYSPARK_PYTHON": str(cluster.python)}
    with environment_changed(variables):
        session = spark_session("tests", **SETTINGS)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the pipeline of `life` has lived in a local session."""
    root = tmp_path_factory.mktemp("here")
    command = [sys.executable, "-m", "tests.cluster.life", str(root)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return root
