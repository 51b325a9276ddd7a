"""Contenders give the same answers on few rows, and a wrong answer ends the measurement."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench.contenders import (
    DAY_US,
    HOURLY,
    RECOMPUTE,
    START_US,
    TIDEMARK,
    Lake,
    bind_contenders,
    check_tables,
    recompute_all,
    run_tidemark,
)
from bench.crossover import check_duckdb, recompute_with_duckdb
from bench.rounds import read_cpu_seconds, time_in_turn

BOTH = (TIDEMARK, RECOMPUTE)


@pytest.mark.deep
def test_contenders_agree_and_a_wrong_answer_is_found(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "source", tmp_path, keys=7)
    lake.land(0, 200, START_US, DAY_US // 6)
    took = time_in_turn(spark, bind_contenders(lake, HOURLY, BOTH), first=1)
    check_tables(lake, HOURLY, BOTH)
    assert list(took) == list(BOTH)
    assert all(each.wall > 0 for each in took.values())
    recompute_with_duckdb(lake)
    check_duckdb(lake)
    lake.land(200, 10, START_US, DAY_US // 6)
    recompute_all(lake, HOURLY)
    recompute_with_duckdb(lake)
    for check in checks(lake):
        with pytest.raises(SystemExit, match="the tables differ"):
            check()
    run_tidemark(lake, HOURLY)
    for check in checks(lake):
        check()


def checks(lake: Lake) -> list[Callable[[], None]]:
    """Both comparisons with Tidemark's table."""
    return [lambda: check_tables(lake, HOURLY, BOTH), lambda: check_duckdb(lake)]


def test_cpu_seconds_grow(spark: SparkSession) -> None:
    before = read_cpu_seconds()
    spark.range(1_000).count()
    assert read_cpu_seconds() >= before > 0
