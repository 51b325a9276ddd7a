"""Expressions that lose a value: NULL although their input had one. Ten rows, counted by hand."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windowing.columns import UNANSWERED
from windowing.source.frame import (
    add_computed_columns,
    find_lost_values,
    mark_unanswered,
    shape_rows,
)
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline

SCHEMA = "id int, amount string, whole bigint, `od``d` bigint"
ROWS: list[tuple[Any, ...]] = [
    (0, "2.50", 1, 1),
    (1, "1.234,50", 1, 1),
    (2, "ten", 0, 1),
    (3, "", None, 1),
    (4, None, 1, 1),
    (5, None, 0, 0),
    (6, "7", 2**63 - 1, None),
    (7, "1e39", -1, 1),
    (8, "-3", None, 0),
    (9, " 4 ", 5, 0),
]
COLUMNS = {
    "paid": "cast(amount as decimal(10, 2))",
    "more": "whole + 1",
    "share": "10 / `od``d` + whole",
    "both": "cast(amount as double) + coalesce(whole, 0)",
    "is_paid": "amount > '0'",
    "never": "cast('x' as bigint)",
}


def pipeline_of(where: str | None = None) -> Pipeline:
    """A pipeline over the rows."""
    source = {"table": "/none", "event_time": "arrival", "key": ["id"], "columns": COLUMNS}
    return load_pipeline(
        {
            "name": "lost",
            "lake": "/none",
            "source": source | ({} if where is None else {"where": where}),
            "aggregates": {"n": "count()"},
            "windows": {"ever": {"kind": "global"}},
        }
    )


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, SCHEMA)


def test_a_value_is_lost_where_every_named_column_has_one(rows: DataFrame) -> None:
    pipeline = pipeline_of()
    wider = add_computed_columns(rows, pipeline)
    lost = find_lost_values(pipeline)
    found = {name: {r["id"] for r in wider.where(c).collect()} for name, c in lost.items()}
    assert found == {
        "paid": {1, 2, 3, 7},
        "more": {6},
        "share": {5, 9},
        "both": {1, 2},
    }, "a comparison loses nothing, and what names no column has nothing to lose"


@pytest.mark.parametrize(
    ("where", "unanswered"),
    [
        (None, set()),
        ("whole > 0", set()),
        ("cast(amount as double) > 0", {1, 2, 3}),
        ("paid > 0", {1, 2, 3, 7}),
        ("paid > 0 and whole > 0", {1}),
        ("paid > 0 or more > 1", {2, 7}),
        ("paid is null", set()),
    ],
)
def test_rows_that_a_condition_gives_no_answer_for(
    rows: DataFrame, where: str | None, unanswered: set[int]
) -> None:
    pipeline = pipeline_of(where)
    marked = mark_unanswered(add_computed_columns(rows, pipeline), pipeline)
    assert {r["id"] for r in marked.where(UNANSWERED).collect()} == unanswered
    events = marked.where(~F.col(UNANSWERED)).drop(UNANSWERED)
    assert events.collect() == shape_rows(rows, pipeline).collect(), "the events stay what they are"
