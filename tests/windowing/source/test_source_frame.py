"""Expressions that lose a value: NULL although their input had one. Ten rows, counted by hand."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windowing.columns import TIME, UNANSWERED
from windowing.grid.zone import micros
from windowing.source.frame import (
    NAIVE,
    add_computed_columns,
    find_lost_values,
    mark_unanswered,
    place_local_times,
    read_event_time,
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
    source = {"table": "/source", "event_time": "arrival", "key": ["id"], "columns": COLUMNS}
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


BERLIN = ZoneInfo("Europe/Berlin")


def local(*parts: int) -> datetime:
    """A time on the clock of Berlin."""
    year, month, day, *time = parts
    return datetime(year, month, day, *time, tzinfo=BERLIN)


NOON = local(2025, 7, 1, 12)
AT = local(2025, 7, 1, 12, 30, 15)
LOCAL = {
    "2025": local(2025, 1, 1),
    "2025-07": local(2025, 7, 1),
    "2025-7-1": local(2025, 7, 1),
    "2025-07-01 ": local(2025, 7, 1),
    "2025-07-01 12": NOON,
    "2025-07-01T12": NOON,
    "+2025-7-1 12": NOON,
    "2025-01-01 9": local(2025, 1, 1, 9),
    "2025-07-01 12\0": NOON,
    "\x01 2025-07-01 12:0\x7f": NOON,
    "2025-07-01 12:00\r\n": NOON,
    "2025-07-01T12:30:15": AT,
    "2025-07-01 12:30:15.": AT,
    "2025-07-01 12:30:15.25\x1f": AT + timedelta(milliseconds=250),
    "2025-07-01 12:30:15.1234567": AT + timedelta(microseconds=123456),
}
"""Texts that name no zone, and when Berlin's clock shows them."""
UTC_AT = datetime(2025, 7, 1, 12, 30, 15, tzinfo=UTC)
ZONED = {
    "2025-07-01 12:30:15Z": UTC_AT,
    "2025-07-01T12:30:15.Z ": UTC_AT,
    "2025-07-01 12:30:15 Z\0": UTC_AT,
    "2025-07-01 12:30:15\nUTC": UTC_AT,
    "2025-07-01 12:30:15+2": UTC_AT - timedelta(hours=2),
    "2025-07-01 12:30:15+02:00": UTC_AT - timedelta(hours=2),
    "2025-07-01 12:30:15.5-02:30": UTC_AT + timedelta(hours=2, minutes=30, milliseconds=500),
    "2025-07-01 12:30:15+01:00:30": UTC_AT - timedelta(hours=1, seconds=30),
    "2025-07-01 12:30:15UTC+2": UTC_AT - timedelta(hours=2),
    "2025-07-01 12:30:15 GMT-3": UTC_AT + timedelta(hours=3),
    "2025-07-01 12:30:15 Asia/Kolkata": UTC_AT - timedelta(hours=5, minutes=30),
    "2025-07-01 12:30:15 America/Port-au-Prince": UTC_AT + timedelta(hours=4),
    "2025-07-01 12:30:15 PST": UTC_AT + timedelta(hours=7),
}
"""Texts that end with an offset or a zone, and their instants."""
UNREADABLE = (
    "12:30",
    "T12:30:15",
    "now",
    "",
    "2025-07-01T",
    "2025-07-01 12:",
    "2025-07-01Z",
    "2025-07-01 12+02:00",
    "2025-07-01 12:30Z",
    "2025-07-01 12:30:15-",
    "2025-07-01 12:30:15 PM",
    "2025-13-01 12",
)


def timed_of_texts(spark: SparkSession, texts: list[str]) -> DataFrame:
    """The texts as event times of a source in Berlin: [at, __t, __naive]."""
    spec = {
        "name": "texts",
        "lake": "/none",
        "source": {"table": "/source", "event_time": "at", "zone": "Europe/Berlin", "key": ["at"]},
        "aggregates": {"n": "count()"},
        "windows": {"ever": {"kind": "global"}},
    }
    rows = spark.createDataFrame([(text,) for text in texts], "at string")
    return read_event_time(rows, load_pipeline(spec))


def test_a_text_is_a_local_time_unless_it_ends_with_a_zone(spark: SparkSession) -> None:
    timed = timed_of_texts(spark, [*LOCAL, *ZONED, *UNREADABLE])
    low, high = local(2024, 1, 1), local(2026, 1, 1)
    placed = place_local_times(timed, "Europe/Berlin", micros(low), micros(high))
    found = {row["at"]: row[TIME] for row in placed.collect()}
    expected = {text: micros(at) for text, at in (LOCAL | ZONED).items()}
    assert found == {**expected, **dict.fromkeys(UNREADABLE)}


def test_a_local_time_may_have_a_year_of_more_than_four_digits(spark: SparkSession) -> None:
    (found,) = timed_of_texts(spark, ["12025-07-01 12"]).collect()
    assert found[TIME] is None
    assert found[NAIVE] is not None
