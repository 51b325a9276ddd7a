"""Whole pipelines whose source and lake are on S3: the oracle's tables, from any schedule."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from jobs.microbatch import outputs
from jobs.shortcuts import run_size
from tests.support.random_schedules import schedule
from tests.support.s3_server import S3Server
from tests.support.s3_session import session_on_s3
from tests.system.test_random_schedules import QUICK, play_schedule
from windowing.location import Location
from windowing.storage import few_rows

SEEDS = [pytest.param(seed, marks=() if seed in QUICK[:3] else pytest.mark.deep) for seed in QUICK]


@pytest.fixture(scope="module")
def s3_session(s3_server: S3Server) -> Iterator[SparkSession]:
    """A session in a JVM that has the variables of the server."""
    with session_on_s3(s3_server) as session:
        yield session


@pytest.fixture
def root(s3_server: S3Server, s3_session: SparkSession) -> Location:
    """A directory in a bucket without files."""
    return Location(f"s3://{s3_server.make_bucket()}/a lake")


@pytest.mark.usefixtures("jvm")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_schedule_on_s3_gives_the_oracles_tables(
    seed: int, s3_session: SparkSession, root: Location
) -> None:
    play_schedule(schedule(seed), seed, s3_session, root)


@pytest.mark.usefixtures("jvm")
def test_runs_of_many_rows_on_s3_give_the_oracles_tables(
    s3_session: SparkSession, root: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few rows are carried through a run as many are, and Spark commits them."""
    monkeypatch.setattr(run_size, "FEW_ROWS", 0)
    monkeypatch.setattr(few_rows, "_FEW_ROWS", 0)
    monkeypatch.setattr(few_rows, "_FEW_LARGE_ROWS", 0)
    monkeypatch.setattr(outputs, "_MANY_BYTES", 0)
    play_schedule(schedule(QUICK[1]), QUICK[1], s3_session, root)
