"""Runs on S3 that sleep while another one takes over: they wake up and change nothing."""

from collections.abc import Iterator
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.support.long_lived_pipeline import MINUTE, WINDOWS, Life
from tests.support.pipeline_under_test import FEW, Lab
from tests.support.s3_server import S3Server
from tests.support.s3_session import session_on_s3
from tests.support.sleepers import wake_up_behind_another
from windowing.location import Location

SEED = 7
QUICK, PLACES = (6, 13), range(1, 22)
"""At which of the places a run is stopped."""
LEASE_SECONDS = 6.0


@pytest.fixture(scope="module")
def s3_session(s3_server: S3Server) -> Iterator[SparkSession]:
    """A session in a JVM that has the variables of the server."""
    with session_on_s3(s3_server) as session:
        yield session


@pytest.fixture(scope="module")
def life(s3_server: S3Server, s3_session: SparkSession) -> Life:
    """A pipeline after one run."""
    home = Location(f"s3://{s3_server.make_bucket()}/lakes")
    lab = Lab(s3_session, home, WINDOWS[:2], lateness=240 * MINUTE, delay=10 * MINUTE, shows=FEW)
    new = Life(lab, Random(SEED))
    new.run()
    return new


@pytest.mark.usefixtures("jvm")
@pytest.mark.parametrize(
    "nth", [pytest.param(n, marks=() if n in QUICK else pytest.mark.deep) for n in PLACES]
)
def test_a_run_that_slept_while_another_took_over_changes_nothing(nth: int, life: Life) -> None:
    wake_up_behind_another(life, nth, LEASE_SECONDS)
