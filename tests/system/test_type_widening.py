"""The source widens columns that nothing in the spec uses.

Refused rows stay refused, and later ones are kept.
"""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.backfill import backfill
from jobs.read import read
from jobs.run import run
from tests.support.long_lived_pipeline import Crasher, ends_at
from windowing.columns import DIGEST
from windowing.errors import StateRefused
from windowing.grid.zone import moment
from windowing.location import Location
from windowing.report.rule import RunReport
from windowing.spec.load import load_pipeline
from windowing.storage import delta

HOUR_US = 3_600_000_000
MIDNIGHT_US = 1_704_067_200_000_000
"""2024-01-01T00:00:00Z."""
ARRIVAL = moment(MIDNIGHT_US + 6 * HOUR_US)
WIDENED = {
    "extra": ("int", "bigint"),
    "share": ("float", "double"),
    "price": ("decimal(6,2)", "decimal(12,4)"),
    "day": ("date", "timestamp_ntz"),
    "tags": ("array<smallint>", "array<int>"),
}
"""The columns that no window uses, as they are first and later."""
VALUES = "7, 0.1F, 12.50BD, date'2024-01-01', array(3S)"


class Widening:
    """A source of one row an event, and a pipeline that drops what is late."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.source, self.lake = spark, f"{root}/source", f"{root}/lake"
        self.windows: dict[str, Any] = {"hourly": {"kind": "tumbling", "size": "1 hour"}}
        self.aggregates = {"n": "count()", "total": "sum(v)"}
        columns = ", ".join(f"{name} {old}" for name, (old, _) in WIDENED.items())
        spark.sql(
            f"create table delta.`{self.source}` (id string, key string, ts timestamp, v bigint, "
            f"{columns}) "
            "using delta tblproperties "
            "('delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported')"
        )

    def land(self, event_id: str, key: str, at: str, v: int) -> None:
        """Appends one event of 2024-01-01."""
        values = f"'{event_id}', '{key}', timestamp'2024-01-01 {at}', {v}, {VALUES}"
        self.spark.sql(f"insert into delta.`{self.source}` values ({values})")

    def widen(self) -> None:
        """Gives every unused column its later type."""
        for name, (_, new) in WIDENED.items():
            path, kind = (f"{name}.element", "int") if new == "array<int>" else (name, new)
            self.spark.sql(f"alter table delta.`{self.source}` alter column {path} type {kind}")

    def run(self) -> RunReport:
        """Runs the pipeline with the windows of the moment."""
        return run(self.spark, self.pipeline(), ARRIVAL)

    def pipeline(self) -> Any:
        """The pipeline with the windows of the moment."""
        return load_pipeline(
            {
                "name": "p",
                "lake": self.lake,
                "source": {
                    "table": self.source,
                    "event_time": "ts",
                    "key": ["key"],
                    "event_id": "id",
                },
                "watermark": {"delay": "0 seconds", "allowed_lateness": "0 seconds"},
                "aggregates": self.aggregates,
                "windows": self.windows,
            }
        )

    def rows(self, window: str) -> list[tuple[Any, ...]]:
        """What the output holds, hours counted from midnight."""
        output = read(self.spark, self.pipeline(), window, published=False)
        hour = f"cast((unix_micros(window_start) - {MIDNIGHT_US}) / {HOUR_US} as int)"
        return sorted(tuple(row) for row in output.selectExpr("key", hour, "n", "total").collect())

    def refused(self, table: str) -> list[tuple[Any, ...]]:
        """The ids, the values of the widened columns and their types in a table of refused rows."""
        kept = delta.read(self.spark, Location(f"{self.lake}/p/{table}"))
        names = ", ".join(f"cast({name} as string), typeof({name})" for name in WIDENED)
        return sorted(tuple(row) for row in kept.selectExpr("id", *names.split(", ")).collect())


@pytest.fixture
def widening(spark: SparkSession, tmp_path: Path) -> Widening:
    """Two events accepted, one refused as late, one as a copy; then the source is widened."""
    found = Widening(spark, tmp_path)
    found.land("e1", "a", "00:10:00", 1)
    found.land("e2", "a", "05:10:00", 2)
    assert found.run().accepted == 2
    found.land("late", "a", "00:20:00", 100)
    found.land("e2", "a", "05:10:00", 2)
    report = found.run()
    assert (report.accepted, report.late, report.duplicate) == (0, 1, 1)
    found.widen()
    return found


OLD = [("a", 0, 1, 1), ("a", 5, 1, 2)]
# The float nearest to 0.1, as a double.
SHOWN = ("7", "0.10000000149011612", "12.5000", "2024-01-01 00:00:00", "[3]")
LATER = tuple(
    text for pair in zip(SHOWN, (new for _, new in WIDENED.values()), strict=True) for text in pair
)


@pytest.mark.deep
def test_refused_rows_stay_refused_when_the_spec_gains_a_window(widening: Widening) -> None:
    widening.land("e4", "b", "05:20:00", 4)
    assert widening.run().accepted == 1
    widening.windows["daily"] = {"kind": "tumbling", "size": "1 day"}
    widening.run()
    assert widening.rows("hourly") == [*OLD, ("b", 5, 1, 4)]
    assert widening.rows("daily") == [("a", 0, 2, 3), ("b", 0, 1, 4)]


@pytest.mark.deep
def test_refused_rows_beyond_the_range_of_a_backfill_stay_refused(widening: Widening) -> None:
    """The pane of the range contains the late event, the range does not."""
    # A backfill reads the version that the last run has read, which has to be a widened one.
    widening.land("e4", "b", "05:20:00", 4)
    widening.run()
    on_time = ("b", 5, 1, 4)
    quarter = HOUR_US // 4
    backfill(
        widening.spark, widening.pipeline(), moment(MIDNIGHT_US), moment(MIDNIGHT_US + quarter)
    )
    assert widening.rows("hourly") == [*OLD, on_time]
    backfill(
        widening.spark, widening.pipeline(), moment(MIDNIGHT_US), moment(MIDNIGHT_US + HOUR_US)
    )
    assert widening.rows("hourly") == [("a", 0, 2, 101), ("a", 5, 1, 2), on_time]


@pytest.mark.slow
def test_rows_that_are_refused_later_are_kept_with_the_new_types(widening: Widening) -> None:
    widening.land("later", "a", "00:30:00", 100)
    widening.land("e2", "a", "05:10:00", 2)
    ends_at(Crasher("run.prepared"), widening.run)
    report = widening.run()
    assert (report.accepted, report.late, report.duplicate) == (0, 1, 1)
    late = widening.refused("_late")
    assert [row[0] for row in late] == ["late", "later"]
    assert late[1][1:] == LATER
    assert {row[1] for row in late} == {"7"}
    digests = (
        delta.read(widening.spark, Location(f"{widening.lake}/p/_duplicates"))
        .select(DIGEST)
        .collect()
    )
    assert len(digests) == 2
    assert len(set(digests)) == 1, "the same copy, before and after"
    assert widening.rows("hourly") == OLD


@pytest.mark.deep
def test_a_widened_column_that_no_aggregate_uses_any_more_is_accepted(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Widening(spark, tmp_path)
    source.windows["pairs"] = {"kind": "count", "count": 2}
    sums = {**source.aggregates, "more": "sum(extra)"}
    source.aggregates = sums
    source.land("e1", "a", "00:10:00", 1)
    assert source.run().accepted == 1
    source.widen()
    source.land("e2", "a", "05:10:00", 2)
    with pytest.raises(StateRefused, match="SOURCE_CHANGED: .*'extra' was of type int"):
        source.run()
    source.aggregates = {"n": "count()", "total": "sum(v)"}
    assert source.run().accepted == 1
    assert source.rows("hourly") == OLD
    # State is made from the new type alone, so what was taken out may come back.
    source.aggregates = sums
    source.land("e3", "a", "05:20:00", 4)
    assert source.run().accepted == 1
    assert source.rows("hourly") == [("a", 0, 1, 1), ("a", 5, 2, 6)]
    output = read(spark, source.pipeline(), "hourly", published=False)
    assert sorted(row["more"] for row in output.collect()) == [7, 14]
