"""What a run says of the way in which it has read its batches."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.shortcuts import run_size
from tests.oracle import Event, Tumbling
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.pipeline_under_test import FEW, Lab
from windowing.report.table import read_facts
from windowing.storage import spark_internals


@pytest.fixture
def lab(spark: SparkSession, tmp_path: Path) -> Lab:
    """A pipeline with one window."""
    return Lab(spark, tmp_path, (Tumbling("hourly", 60 * MINUTE),), shows=FEW)


def count_row_by_row(lab: Lab) -> int:
    """What the report shows."""
    return read_facts(lab.pipeline, lambda: lab.spark).total("row_by_row")


@pytest.mark.slow
def test_batches_that_are_not_read_as_files_are_counted(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.land([Event("a", BASE, 1, "few")])
    assert lab.go().row_by_row == 0
    monkeypatch.setattr(run_size, "FEW_ROWS", 0)
    lab.land([Event("a", BASE, 2, "as files")])
    assert lab.go().row_by_row == 0
    # As with a Spark whose plan of a batch has other names.
    monkeypatch.setattr(spark_internals, "_find_relation_of_batch", lambda stream: None)
    lab.land([Event("a", BASE, 4, "one by one")])
    report = lab.go()
    assert (report.row_by_row, report.as_json()["row_by_row"]) == (1, 1)
    assert count_row_by_row(lab) == 1
    (row,) = lab.table("hourly").values()
    assert row["sum"] == 7
