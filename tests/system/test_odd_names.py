"""Columns of a source that have a backtick in their names, or are called as tables are."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from jobs.backfill import backfill
from jobs.cli.main import main
from jobs.validate import validate
from tests.system.test_bad_rows import Source
from windowing.errors import SpecError
from windowing.report.frame import records
from windowing.storage import delta

SCHEMA = "id string, key string, ts timestamp, value bigint, `a``b` string"


@pytest.mark.deep
def test_a_column_with_a_backtick_in_its_name_is_stored_with_refused_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Source(spark, tmp_path, SCHEMA)
    time = "timestamp'2026-01-01 10:00'"
    source.land(f"'1', 'a', {time}, 1, 'x'", f"'2', null, {time}, 1, 'y'")
    report = source.run()
    assert (report.accepted, report.quarantined) == (1, 1)
    day = datetime(2026, 1, 1, tzinfo=UTC)
    again = backfill(spark, source.pipeline, day, day.replace(day=2))
    assert (again.read, again.accepted) == (1, 0)
    assert validate(spark, source.pipeline).passed
    (row,) = records(delta.read(spark, source.pipeline.table("_quarantine")), 10)
    assert (row["a`b"], row["reason"]) == ("y", "key is null")


@pytest.mark.parametrize(
    "field",
    [
        "event_time",
        pytest.param("event_id", marks=pytest.mark.deep),
        pytest.param("order_by", marks=pytest.mark.deep),
    ],
)
def test_a_column_with_a_backtick_in_its_name_is_used_in_backticks(
    field: str, spark: SparkSession, tmp_path: Path
) -> None:
    said: dict[str, Any] = {field: "a`b", "zone": "UTC"}
    if field == "order_by":
        said[field] = ["a`b"]
    source = Source(spark, tmp_path, SCHEMA, said)
    source.land("'1', 'a', timestamp'2026-01-01 10:00', 1, '2026-01-01'")
    with pytest.raises(SpecError) as refused:
        source.run()
    assert refused.value.field.startswith(f"source.{field}")
    advice = "a name with other characters than letters, digits and _ is in backticks"
    assert refused.value.message.endswith(advice)
    source.source[field] = ["`a``b`"] if field == "order_by" else "`a``b`"
    assert source.run().accepted == 1
    assert validate(spark, source.pipeline).passed


@pytest.mark.deep
def test_late_shows_the_source_s_own_column_where_both_have_one_of_that_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = "run string, key string, ts timestamp, value bigint"
    source = Source(spark, tmp_path, schema, {"event_id": "run"})
    source.land("'ride-7', null, timestamp'2026-01-01 10:00', 1")
    source.run()
    spec = tmp_path / "bad.yaml"
    spec.write_text(json.dumps(source.spec()))
    result = CliRunner().invoke(main, ["late", str(spec)], prog_name="tidemark")
    assert result.exit_code == 0, result.output
    assert "ride-7" in result.stdout
