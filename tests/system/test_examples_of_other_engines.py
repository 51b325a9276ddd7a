"""Worked examples of other systems, in one run: each has its own window and keys.

Its rows must be exactly those of its source.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.run import run
from windowing.grid.zone import moment
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.storage import delta

CASES: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "data" / "cases.yaml").read_text()
)
AGGREGATES = {
    "count": "count()",
    "sum_value": "sum(value)",
    "max_value": "max(value)",
    "mean_value": "avg(value)",
}


@pytest.mark.deep
def test_every_case_gives_the_rows_of_its_source(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = load_pipeline(
        {
            "name": "cases",
            "lake": str(tmp_path),
            "source": {
                "table": str(tmp_path / "events"),
                "event_time": "at",
                "key": ["case", "key"],
            },
            "watermark": {"max_future": "36500 days"},
            "aggregates": AGGREGATES,
            "windows": {name: case["window"] for name, case in CASES.items()},
        }
    )
    rows = [
        {
            "case": name,
            "key": key,
            "at": None if ms is None else moment(ms * 1000),
            "value": None if value is None else float(value),
        }
        for name, case in CASES.items()
        for key, ms, value in case["events"]
    ]
    delta.append(
        delta.rows(spark, rows, "case string, key string, at timestamp, value double"),
        Location(str(tmp_path / "events")),
    )
    run(spark, pipeline)
    wrong = {
        name: found for name in CASES if (found := _difference(spark, pipeline.table(name), name))
    }
    assert not wrong


def _difference(spark: SparkSession, path: Location, name: str) -> str | None:
    """The first row expected and not there, or there and not expected."""
    left = [
        row
        for row in _rows(spark, path, name)
        if row["window_start"] >= CASES[name].get("from", row["window_start"])
    ]
    for wanted in CASES[name]["expect"]:
        hit = next(
            (
                row
                for row in left
                if wanted.items() <= {**row, "last_event": row.get("last_event")}.items()
            ),
            None,
        )
        if hit is None:
            return f"missing {wanted}, there is {left}"
        left.remove(hit)
    return f"not expected: {left}" if left else None


def _rows(spark: SparkSession, path: Location, name: str) -> list[dict[str, Any]]:
    rows = delta.read(spark, path).where(F.col("case") == name).drop("case", "revision", "run")
    times = [c for c in rows.columns if c in ("window_start", "window_end", "last_event")]
    return [
        row.asDict()
        for row in rows.withColumns(
            {c: (F.unix_micros(c) / 1000).cast("bigint") for c in times}
        ).collect()
    ]
