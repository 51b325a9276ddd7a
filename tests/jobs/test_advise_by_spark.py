"""Rows that Spark alone can read arrive as those that are read without it."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from jobs.advise import advise
from tests.support.planted_history import EVENTS, Planted, plant_spec, write_history
from windowing.advise.advice import Wanted
from windowing.advise.reading import Asked
from windowing.errors import SpecError, UsageError
from windowing.grid.zone import micros
from windowing.spec.load import load_pipeline

START = datetime(2026, 1, 1, tzinfo=UTC)
WIDER = EVENTS.append(pa.field("written", pa.string())).append(pa.field("hidden", pa.bool_()))


def batch(n: int) -> Planted:
    """Events of the hour before `n` hours have passed, some late, one hidden and one unreadable."""
    arrival = START + timedelta(hours=n)
    rows = []
    for m in range(8):
        at = arrival - timedelta(minutes=7 * m * (n % 3 + 1))
        rows.append(
            {
                "id": f"{n}-{m}",
                "shop": f"shop {m % 2}",
                "at": at,
                "written": f"{at:%Y-%m-%d %H:%M:%S}",
                "hidden": False,
            }
        )
    rows.append(rows[0] | {"id": f"{n}-hidden", "shop": "shop 9", "hidden": True})
    rows.append(rows[0] | {"id": f"{n}-bad", "written": "soon", "at": None})
    return Planted(micros(arrival), rows)


def test_texts_and_conditions_arrive_as_plain_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "source"
    write_history(table, [batch(n) for n in range(6)], WIDER)
    # The files of these commits are in older versions alone.
    DeltaTable(table).optimize.compact()
    write_history(table, [batch(n) for n in range(6, 9)], WIDER)

    def read(**source: Any) -> dict[str, Any]:
        spec = plant_spec(tmp_path)
        pipeline = load_pipeline(spec | {"source": spec["source"] | source})
        return advise(pipeline, Asked(by=("shop",)), Wanted(), lambda: spark).as_json()

    plain = read(event_id="id")
    by_spark = read(
        event_id="id", event_time="written", zone="UTC", where="not hidden", key=["place"],
        columns={"place": "shop"},
    )  # fmt: skip
    hidden = {each["name"]: each["events"] for each in plain["groups"]}.pop("shop 9")
    assert plain["history"]["events"] - hidden - 1 == by_spark["history"]["events"] == 9 * 8
    assert plain["history"]["invalid"] == by_spark["history"]["invalid"] == 9
    assert by_spark["history"]["commits"] == plain["history"]["commits"] == 9
    of = {each["name"]: each["quantiles"] for each in plain["groups"]}
    assert {each["name"]: each["quantiles"] for each in by_spark["groups"]} == {
        name: of[name] for name in ("shop 0", "shop 1")
    }
    assert by_spark["histogram"][1:] == plain["histogram"][1:]
    with pytest.raises(SpecError, match=r"source\.key: the source has no column 'shopp'"):
        read(where="not hidden", key=["shopp"])


def test_commits_whose_files_are_gone_are_left_out_by_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "source"
    write_history(table, [batch(n) for n in range(4)], WIDER)
    opened = DeltaTable(table)
    opened.optimize.compact()
    opened.vacuum(0, dry_run=False, enforce_retention_duration=False)
    write_history(table, [batch(n) for n in range(4, 7)], WIDER)
    spec = plant_spec(tmp_path)
    pipeline = load_pipeline(spec | {"source": spec["source"] | {"where": "not hidden"}})
    found = advise(pipeline, Asked(), Wanted(), lambda: spark).reading
    assert [(left.commits, left.rows) for left in found.left_out] == [(4, 4 * 10)]
    assert "VACUUM" in found.left_out[0].reason
    # Of each of the other three, one row is hidden, and one has no time.
    assert (len(found.events.time), found.invalid) == (3 * 8, 3)
    assert found.complete_from_us == micros(START + timedelta(hours=3))


def test_days_of_partitions_are_event_times(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([("shop", pa.string()), ("day", pa.date32())])
    days = [date(2026, 1, 1), date(2026, 1, 2)]
    rows = pa.Table.from_pylist([{"shop": "a", "day": day} for day in days], schema)
    write_deltalake(tmp_path / "source", rows, partition_by=["day"])
    spec = plant_spec(tmp_path)
    timed = {"event_time": "day", "zone": "Asia/Kolkata"}
    pipeline = load_pipeline(spec | {"source": spec["source"] | timed})
    found = advise(pipeline, Asked(), Wanted(), lambda: spark).reading
    # Days begin five and a half hours before those of UTC.
    midnights = [
        datetime(2025, 12, 31, 18, 30, tzinfo=UTC),
        datetime(2026, 1, 1, 18, 30, tzinfo=UTC),
    ]
    expected = [micros(midnight) for midnight in midnights]
    assert (sorted(found.events.time.tolist()), found.invalid) == (expected, 0)


def test_a_column_without_texts_makes_no_groups_by_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    kinds = {
        "struct": pa.struct([("a", pa.int64())]),
        "array": pa.list_(pa.int64()),
        "binary": pa.binary(),
    }
    schema = pa.schema([*EVENTS, *((f"of_{kind}", stored) for kind, stored in kinds.items())])
    write_history(tmp_path / "source", [Planted(micros(START), [])], schema)
    spec = plant_spec(tmp_path)
    pipeline = load_pipeline(spec | {"source": spec["source"] | {"where": "shop = 'a'"}})
    for kind in kinds:
        with pytest.raises(UsageError, match=f"--by: 'of_{kind}' is of type {kind}; "):
            advise(pipeline, Asked(by=(f"of_{kind}",)), Wanted(), lambda: spark)
