"""Runs on HDFS that sleep while another one takes over: they wake up and change nothing."""

from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.support.hdfs_server import HdfsServer
from tests.support.long_lived_pipeline import MINUTE, WINDOWS, Life
from tests.support.pipeline_under_test import FEW, Lab
from tests.support.sleepers import wake_up_behind_another
from windowing.location import Location

SEED = 7
PLACE = 13
"""At which of the places a run is stopped: its batch is done, and its run is not closed."""
LEASE_SECONDS = 12.0
"""A renewal writes a file, and takes longer than one of S3."""


@pytest.fixture(scope="module")
def life(hdfs_server: HdfsServer, spark: SparkSession) -> Life:
    """A pipeline after one run."""
    home = Location(hdfs_server.make_home())
    lab = Lab(spark, home, WINDOWS[:2], lateness=240 * MINUTE, delay=10 * MINUTE, shows=FEW)
    new = Life(lab, Random(SEED))
    new.run()
    return new


@pytest.mark.usefixtures("jvm")
def test_a_run_that_slept_while_another_took_over_changes_nothing(life: Life) -> None:
    wake_up_behind_another(life, PLACE, LEASE_SECONDS)
