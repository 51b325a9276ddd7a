"""What a pipeline does on a cluster with its lake on S3: the tables of the oracle.

Executors have the keys of their workers' environment; no setting has them.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.cluster.life import WINDOWS, carry_by_spark, live_briefly, make_lab, read_published
from tests.support.cluster import Cluster
from tests.support.pipeline_under_test import Lab
from tests.support.s3_server import KEYS
from windowing.location import Location

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def lived(session: SparkSession, cluster: Cluster) -> Iterator[Lab]:
    """The pipeline on the cluster and on S3, published."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in cluster.s3.environ.items():
            patched.setenv(name, value)
        carry_by_spark(patched)
        lab = make_lab(session, Location(f"s3://{cluster.s3.make_bucket()}/lakes"))
        live_briefly(lab)
        yield lab


def test_spark_and_other_libraries_read_what_was_published(
    lived: Lab, session: SparkSession
) -> None:
    found = read_published(session, lived, WINDOWS)
    assert {*found} == {window.name for window in WINDOWS}
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
