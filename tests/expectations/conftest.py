"""Outputs judged as a run's would be."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from expectations.evaluate import evaluate
from expectations.outcome import Verdict
from tests.expectations.planted import FACTS, PIPELINE, Row, frame
from windowing.location import Location

Judge = Callable[..., Verdict]


@pytest.fixture
def judge(spark: SparkSession, tmp_path: Path) -> Judge:
    """Window name -> rows, judged; keyword arguments replace those of `evaluate`."""

    def run(outputs: Mapping[str, list[Row]], **more: Any) -> Verdict:
        given: dict[str, Any] = {
            "pipeline": PIPELINE,
            "facts": FACTS,
            "docs": Location(str(tmp_path / "docs")),
            "run_name": "run-1",
            "suites": tmp_path,
        }
        return evaluate(
            {name: frame(spark, name, rows) for name, rows in outputs.items()}, **(given | more)
        )

    return run
