"""Whole pipelines whose source and lake are on HDFS: the oracle's tables, from any schedule."""

import pytest
from pyspark.sql import SparkSession

from tests.support.hdfs_server import HdfsServer
from tests.support.random_schedules import schedule
from tests.system.test_random_schedules import QUICK, play_schedule
from windowing.location import Location


@pytest.fixture
def root(hdfs_server: HdfsServer) -> Location:
    """A directory without files."""
    return Location(hdfs_server.make_home()) / "a=lake"


def test_a_random_schedule_on_hdfs_gives_the_oracles_tables(
    spark: SparkSession, root: Location
) -> None:
    play_schedule(schedule(QUICK[0]), QUICK[0], spark, root)
