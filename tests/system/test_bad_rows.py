"""What no one should send, sent.

Every row gets one outcome, the refused ones a reason, and the ledger accounts for all of them.
"""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.diagnosis.pointer import POINTER
from jobs.publish import publish
from jobs.run import run
from jobs.validate import validate
from windowing.admit.outcomes import REFUSED
from windowing.errors import ExpectationsFailed
from windowing.ledger.counts import sum_entry_counts
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.report.rule import RunReport
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta

ARRIVAL = datetime(2026, 1, 2, tzinfo=UTC)
OUTCOMES = ("read", "accepted", "late", "duplicate", "quarantined")


@dataclass
class Source:
    """A source table and a pipeline over it.

    `source`, `watermark` and `aggregates` are what the spec says there.
    """

    spark: SparkSession
    root: Path
    schema: str = "id string, key string, ts timestamp, value bigint"
    source: dict[str, Any] = field(default_factory=dict)
    aggregates: dict[str, str] = field(
        default_factory=lambda: {"n": "count()", "total": "sum(value)"}
    )

    @property
    def table(self) -> str:
        """Where the source lies."""
        return str(self.root / "source")

    def spec(self) -> dict[str, Any]:
        """The spec as a user would write it."""
        return {
            "name": "bad",
            "lake": str(self.root / "lake"),
            "source": {
                "table": self.table,
                "event_time": "ts",
                "key": ["key"],
                "event_id": "id",
                **self.source,
            },
            "watermark": {
                "delay": "0 seconds",
                "allowed_lateness": "0 seconds",
                "max_future": "1 hour",
            },
            "aggregates": self.aggregates,
            "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
        }

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline the spec says."""
        return load_pipeline(self.spec())

    def land(self, *rows: str, schema: str | None = None) -> None:
        """Appends rows, each written as SQL values in the order of the columns.

        New columns join the table.
        """
        columns = [c.split() for c in (schema or self.schema).split(", ")]
        casts = ", ".join(f"cast({name} as {kind}) {name}" for name, kind in columns)
        names = ", ".join(name for name, _ in columns)
        values = ", ".join(f"({row})" for row in rows)
        frame = self.spark.sql(f"select {casts} from values {values} as t({names})")
        delta.append(frame.coalesce(1), Location(self.table), widen=True)

    def run(self) -> RunReport:
        """One run, whose ledger must account for every row that was read."""
        report = run(self.spark, self.pipeline, ARRIVAL)
        counts = sum_entry_counts(read_history(self.pipeline).done(report.run or 0))
        assert {name: counts.get(name, 0) for name in OUTCOMES} == {
            name: getattr(report, name) for name in OUTCOMES
        }
        assert report.read == report.accepted + report.late + report.duplicate + report.quarantined
        return report

    def refused(self, name: str = "id") -> dict[Any, tuple[str, str]]:
        """(outcome, reason) of every refused row, by the value of one column."""
        paths = [
            self.pipeline.table(table)
            for table in REFUSED
            if delta.exists(self.spark, self.pipeline.table(table))
        ]
        rows = [
            row
            for path in paths
            for row in delta.read(self.spark, path).select(name, "outcome", "reason").collect()
        ]
        assert len({row[0] for row in rows}) == len(rows), "one row was refused twice"
        return {row[0]: (row[1], row[2]) for row in rows}

    def hours(self, *columns: str) -> list[tuple[Any, ...]]:
        """The output: key, hour of the window's start, then `columns`."""
        rows = delta.read(self.spark, self.pipeline.table("hourly")).selectExpr(
            "key", "hour(window_start)", *columns
        )
        return sorted((tuple(row) for row in rows.collect()), key=repr)


def quarantined(reason: str) -> tuple[str, str]:
    """What is said of a quarantined row."""
    return "quarantined", reason


WIDE = "id string, key string, ts timestamp, value bigint, ratio double, amount string"
AGGREGATES = {
    "n": "count()",
    "total": "sum(value)",
    "ratios": "sum(ratio)",
    "most": "max(ratio)",
    "paid": "sum(amount)",
    "kinds": "count_distinct(amount)",
    "opening": "first(ratio)",
}
BAD_VALUES = (
    "'nan', 'a', timestamp'2026-01-01 10:05', 1, double('NaN'), '1'",
    "'inf', 'a', timestamp'2026-01-01 10:06', 1, double('Infinity'), '1'",
    "'-inf', 'a', timestamp'2026-01-01 10:07', 1, double('-Infinity'), '1'",
    "'text', 'a', timestamp'2026-01-01 10:08', 1, 1.0, 'ten'",
    "'text nan', 'a', timestamp'2026-01-01 10:09', 1, 1.0, 'NaN'",
    "'empty', 'a', timestamp'2026-01-01 10:10', 1, 1.0, ''",
)
GOOD = (
    "'good', 'a', timestamp'2026-01-01 10:00', 1, 0.5, '2.5'",
    "'nulls', 'a', timestamp'2026-01-01 10:01', null, null, null",
    "'old', 'b', timestamp'1969-12-31 23:59:59.999999', 7, -0.5, '-1e1'",
)


@pytest.mark.slow
def test_bad_rows_are_refused_with_a_reason_and_the_others_count(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Source(spark, tmp_path, WIDE, aggregates=AGGREGATES)
    source.land(
        *GOOD,
        *BAD_VALUES,
        "'good', 'a', timestamp'2026-01-01 10:00', 1, 0.5, '2.5'",
        "'no time', 'a', null, 1, 1.0, '1'",
        "'no key', null, timestamp'2026-01-01 10:00', 1, 1.0, '1'",
        "'future', 'a', timestamp'2026-01-02 01:00:00.000001', 1, 1.0, '1'",
        "'far future', 'a', timestamp'9999-12-31 23:59:59', 1, 1.0, '1'",
        "'before calendars', 'a', timestamp'0001-06-01', 1, 1.0, '1'",
        "'at the edge', 'c', timestamp'2026-01-02 01:00', 1, 1.0, '1'",
        "'big', 'o', timestamp'2026-01-01 10:00', 9223372036854775807, 1.0, '1'",
        "'bigger', 'o', timestamp'2026-01-01 10:01', 1, 1.0, '1'",
    )
    first = source.run()
    assert (first.read, first.accepted, first.late, first.duplicate, first.quarantined) == (
        18,
        6,
        0,
        1,
        11,
    )
    assert first.watermark == ARRIVAL, "one clock that runs ahead doesn't move W beyond the arrival"
    ahead = quarantined("ts is more than 1 hour ahead of the arrival")
    assert source.refused() == {
        "good": ("duplicate", "id was accepted before"),
        **dict.fromkeys(("nan", "inf", "-inf"), quarantined("ratio is not a finite number")),
        **dict.fromkeys(
            ("text", "text nan", "empty"), quarantined("amount is not a finite number")
        ),
        "no time": quarantined("ts is null"),
        "no key": quarantined("key is null"),
        "future": ahead,
        "far future": quarantined("ts can't be read as a time"),
        "before calendars": quarantined("ts can't be read as a time"),
    }
    assert source.hours(*AGGREGATES) == [
        ("a", 10, 2, 1, 0.5, 0.5, 2.5, 1, 0.5),
        ("b", 23, 1, 7, -0.5, -0.5, -10.0, 1, -0.5),
        ("c", 1, 1, 1, 1.0, 1.0, 1.0, 1, 1.0),
        ("o", 10, 2, None, 2.0, 1.0, 2.0, 1, 1.0),
    ]
    _overflow_is_critical(source)
    _a_column_that_joins_the_source_is_kept_with_refused_rows(source)


def _overflow_is_critical(source: Source) -> None:
    verdict = validate(source.spark, source.pipeline)
    assert not verdict.passed
    rows = (
        delta.read(source.spark, source.pipeline.table("_quality")).where("not success").collect()
    )
    assert [
        (r["run"], r["window"], r["expectation"], r["severity"], r["observed"]) for r in rows
    ] == [(1, "hourly", "sums_fit_their_type", "critical", "1")]
    _what_failed_is_published_with_a_reason_alone(source)


def _what_failed_is_published_with_a_reason_alone(source: Source) -> None:
    pipeline = source.pipeline
    with pytest.raises(
        ExpectationsFailed, match=r"nothing published, run 1 breaks 1 critical .*--accept REASON"
    ):
        publish(pipeline)
    assert read_history(pipeline).published is None
    publish(pipeline, "that sum is known")
    recorded, pointer = (
        read_history(pipeline).published,
        json.loads(pipeline.table(POINTER).local.read_text()),
    )
    assert recorded is not None
    assert json.loads(recorded.note or "")["accepted"] == "that sum is known"
    assert (pointer["run"], pointer["seq"], pointer["accepted"]) == (
        1,
        recorded.seq,
        "that sum is known",
    )
    # Readers use it already, so it is not judged again.
    again = publish(pipeline)
    assert again.outputs["hourly"]["entry"] == recorded.seq
    assert again.accepted == "that sum is known"
    assert read_history(pipeline).published == recorded


def _a_column_that_joins_the_source_is_kept_with_refused_rows(source: Source) -> None:
    source.land(
        "'good', 'a', timestamp'2026-01-01 10:00', 1, 0.5, '2.5', 'again'",
        "'late', 'a', timestamp'2026-01-01 10:59:59.999999', 1, 0.5, '2.5', 'too late'",
        "'new', 'c', timestamp'2026-01-02 00:30', 1, 0.5, '2.5', 'in time'",
        "'unnamed', 'c', null, 1, 0.5, '2.5', 'no time'",
        schema=f"{WIDE}, remark string",
    )
    second = source.run()
    assert (
        second.run,
        second.read,
        second.accepted,
        second.late,
        second.duplicate,
        second.quarantined,
    ) == (2, 4, 1, 1, 1, 1)
    rows = (
        delta.read(source.spark, source.pipeline.table("_late"))
        .select("remark", "reason", "missed")
        .collect()
    )
    assert [(r[0], r[1], [m["window"] for m in r[2]]) for r in rows] == [
        ("too late", "every window it belongs to had closed", ["hourly"])
    ]
    kept = (
        delta.read(source.spark, source.pipeline.table("_duplicates"))
        .where("run = 2")
        .select("id", "remark", "reason")
        .collect()
    )
    assert [tuple(r) for r in kept] == [("good", "again", "id was accepted before")]
    assert source.hours("n")[-1] == ("o", 10, 2)


@pytest.mark.slow
def test_texts_without_an_offset_are_local_times(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(
        spark,
        tmp_path,
        "id string, key string, ts string",
        {"zone": "Europe/Berlin"},
        {"n": "count()"},
    )
    times = {
        "winter": "2025-01-01 12:00:00",
        "summer": "2025-07-01T12:00:00.5",
        "gap": "2025-03-30 02:30:00",
        "last of the gap": "2025-03-30 02:59:59.999999",
        "after the gap": "2025-03-30 03:00:00",
        "fold": "2025-10-26 02:30:00",
        "utc": "2025-03-30T02:30:00Z",
        "offset": "2025-07-01 12:00:00+05:30",
        "day": "2025-07-02",
        "word": "soon",
        "empty": "",
        "no such day": "2025-02-30 12:00:00",
        "time of day": "12:30:00",
        "zone by name": "2025-07-01 12:00:00 America/New_York",
    }
    source.land(*(f"'{name}', '{name}', '{text}'" for name, text in times.items()))
    report = source.run()
    off_clock = quarantined("ts does not exist on the clock of Europe/Berlin")
    unreadable = quarantined("ts can't be read as a time")
    refused = source.refused()
    assert {name: refused[name] for name in ("gap", "last of the gap")} == dict.fromkeys(
        ("gap", "last of the gap"), off_clock
    )
    assert refused["time of day"] == unreadable, (
        "a time of day without a date would mean another instant every day"
    )
    starts: dict[str, str] = dict(
        delta.read(spark, source.pipeline.table("hourly"))
        .selectExpr("key", "string(window_start)")
        .collect()
    )
    assert starts == {
        "winter": "2025-01-01 11:00:00",
        "summer": "2025-07-01 10:00:00",
        "after the gap": "2025-03-30 01:00:00",
        "fold": "2025-10-26 00:00:00",
        "utc": "2025-03-30 02:00:00",
        "offset": "2025-07-01 06:00:00",
        "day": "2025-07-01 22:00:00",
        "zone by name": "2025-07-01 16:00:00",
    }
    assert refused.keys() == times.keys() - starts.keys()
    assert (report.read, report.accepted, report.quarantined) == (14, 8, 6)


@pytest.mark.slow
def test_timestamps_without_a_zone_are_local_times_and_on_bad_value_null_skips_values(
    spark: SparkSession, tmp_path: Path
) -> None:
    said = {"zone": "America/New_York", "on_bad_value": "null"}
    source = Source(spark, tmp_path, WIDE.replace("timestamp", "timestamp_ntz"), said, AGGREGATES)
    times = {
        "winter": "2025-01-01 12:00",
        "gap": "2025-03-09 02:00",
        "fold": "2025-11-02 01:30",
        "local mean time": "1850-01-01 12:00",
    }
    source.land(
        *(f"'{name}', '{name}', timestamp_ntz'{text}', 1, 1, '1'" for name, text in times.items()),
        "'none', 'none', null, 1, 1, '1'",
        *(row.replace("timestamp'", "timestamp_ntz'") for row in BAD_VALUES),
    )
    report = source.run()
    assert (report.read, report.accepted, report.quarantined) == (11, 9, 2)
    assert source.refused() == {
        "gap": quarantined("ts does not exist on the clock of America/New_York"),
        "none": quarantined("ts is null"),
    }
    assert source.hours("n", "total", "ratios", "most", "paid") == [
        ("a", 15, 6, 6, 3.0, 1.0, 3.0),
        *(
            (name, hour, 1, 1, 1.0, 1.0, 1.0)
            for name, hour in (("fold", 5), ("local mean time", 16), ("winter", 17))
        ),
    ]


def test_numbers_are_times_in_their_unit(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(
        spark,
        tmp_path,
        "id string, key string, ts double",
        {"event_time": {"column": "ts", "unit": "ms"}},
        {"n": "count()"},
    )
    rows = {
        "zero": "0",
        "before": "-0.5",
        "real": "1735689600000.25",
        "nan": "'NaN'",
        "inf": "'Infinity'",
        "huge": "1e300",
        "none": "null",
    }
    source.land(*(f"'{name}', '{name}', double({value})" for name, value in rows.items()))
    report = source.run()
    assert (report.read, report.accepted, report.quarantined) == (7, 3, 4)
    assert source.hours("n") == [("before", 23, 1), ("real", 0, 1), ("zero", 0, 1)]
    unreadable = quarantined("ts can't be read as a time")
    assert source.refused() == {
        **dict.fromkeys(("nan", "inf", "huge"), unreadable),
        "none": quarantined("ts is null"),
    }


def test_texts_of_numbers_are_times_in_their_unit(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(
        spark,
        tmp_path,
        "id string, key string, ts string",
        {"event_time": {"column": "ts", "unit": "s"}},
        {"n": "count()"},
    )
    rows = {
        "zero": "0",
        "half": "1735689600.5",
        "word": "soon",
        "huge": "1e31",
        "date": "2025-01-01",
    }
    source.land(*(f"'{name}', '{name}', '{value}'" for name, value in rows.items()))
    report = source.run()
    assert (report.read, report.accepted, report.quarantined) == (5, 2, 3)
    assert source.refused() == dict.fromkeys(
        ("word", "huge", "date"), quarantined("ts can't be read as a time")
    )


def test_an_empty_source_is_a_run_of_nothing(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    delta.append(source.spark.createDataFrame([], source.schema), Location(source.table))
    report = source.run()
    assert report.as_json() == {
        "run": None, "batches": 0, "read": 0, "accepted": 0, "late": 0, "duplicate": 0,
        "quarantined": 0, "erased": 0, "watermark": None,
        "windows": {"hourly": {"inserted": 0, "updated": 0, "deleted": 0, "restated": 0}},
        "corrections": 0,
        "evolved": [],
        "gave_null": {},
        "published": False,
        "row_by_row": 0,
        "followed": None,
        "versions_unread": 0,
        "alarms": [],
        "changed_days": {},
        "caught_up": {},
    }  # fmt: skip
    assert source.hours("n") == []
    assert [entry.step for entry in read_history(source.pipeline).entries] == ["skip"]
