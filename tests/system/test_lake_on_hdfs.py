"""Whole pipelines whose source and lake are on HDFS: the oracle's tables, from any schedule."""

import pytest
from pyspark.sql import SparkSession

from tests.support.hdfs_server import HdfsServer
from tests.support.random_schedules import schedule
from tests.system.test_random_schedules import QUICK, play_schedule
from windowing.location import Location

SEEDS = [QUICK[0], *(pytest.param(seed, marks=pytest.mark.deep) for seed in QUICK[1:4])]


@pytest.fixture
def root(hdfs_server: HdfsServer) -> Location:
    """A directory without files."""
    return Location(hdfs_server.make_home()) / "a=lake"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_schedule_on_hdfs_gives_the_oracles_tables(
    seed: int, spark: SparkSession, root: Location
) -> None:
    play_schedule(schedule(seed), seed, spark, root)
