"""The facts of the report page without a session, beside those that Spark finds in the tables."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.backfill import backfill
from jobs.run import run
from jobs.validate import validate
from tests.support.session_settings import setting_changed
from windowing.admit.outcomes import REFUSED
from windowing.ledger.rule import COUNTS
from windowing.report.ages import count_ages
from windowing.report.facts import Facts, Revised
from windowing.report.kept_rows import Asked
from windowing.report.table import read_facts
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta, delta_log

ROWS = "id string, place string, at timestamp, fare bigint"
LAKE_READ = datetime(2013, 1, 1, 12, tzinfo=UTC)


def at(hour: int) -> datetime:
    return datetime(2013, 1, 1, hour, tzinfo=UTC)


@dataclass(frozen=True)
class Lake:
    """A pipeline with rows of every outcome, one of them accepted later by a backfill."""

    spark: SparkSession
    pipeline: Pipeline

    def alter(self, table: str, statement: str) -> None:
        """Runs SQL on a table, which the statement calls {table}."""
        self.spark.sql(statement.format(table=f"delta.`{self.pipeline.table(table)}`"))

    def facts(self) -> Facts:
        """The facts, read without a session."""
        return read_facts(self.pipeline, refuse)

    def counted(self) -> set[tuple[Any, ...]]:
        """What Spark counts of the refused rows: (outcome, reason, rows, accepted later)."""
        found = set()
        for table in REFUSED:
            rows = delta.read(self.spark, self.pipeline.table(table))
            grouped = rows.groupBy("outcome", F.coalesce("reason", F.lit("")))
            counted = grouped.agg(F.count("*"), F.count("resolved_by")).collect()
            found |= {tuple(row) for row in counted}
        return found


def refuse() -> SparkSession:
    """A session that must not be opened."""
    raise AssertionError("a session was opened")


def make_pipeline(root: Path) -> Pipeline:
    """A pipeline whose lake and source lie in `root`."""
    return load_pipeline(
        {
            "name": "trips",
            "lake": str(root),
            "source": {
                "table": str(root / "source"),
                "event_time": "at",
                "key": ["place"],
                "event_id": "id",
            },
            "watermark": {"delay": "0 seconds", "allowed_lateness": "0 seconds"},
            "aggregates": {"n": "count()"},
            "windows": {
                "hourly": {"kind": "tumbling", "size": "1 hour"},
                "daily": {"kind": "tumbling", "size": "1 day"},
            },
        }
    )


@pytest.fixture(scope="module")
def lived(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a pipeline with two runs, a backfill and a validation."""
    root = tmp_path_factory.mktemp("lived")
    pipeline = make_pipeline(root)

    def land(*rows: tuple[str, str | None, datetime | None, int]) -> None:
        frame = spark.createDataFrame(list(rows), ROWS).coalesce(1)
        delta.append(frame, pipeline.source.table)

    land(("a", "EWR", at(6), 2), ("b", "JFK", at(7), 3))
    run(spark, pipeline, LAKE_READ)
    late = [(f"late {n}", "EWR", at(5) - timedelta(days=1), n) for n in range(5)]
    worst = [("bad", None, at(7), 1), ("worse", "EWR", None, 1), ("bad too", None, at(7), 1)]
    land(*late, ("a", "EWR", at(6), 2), *worst, ("c", "JFK", at(2), 1), ("d", "JFK", at(8), 1))
    run(spark, pipeline, LAKE_READ)
    backfill(spark, pipeline, at(2), at(3))
    validate(spark, pipeline)
    return root


@pytest.fixture
def lake(spark: SparkSession, lived: Path, tmp_path: Path) -> Lake:
    """A copy of its own, which a test may change."""
    shutil.copytree(lived, tmp_path, dirs_exist_ok=True)
    return Lake(spark, make_pipeline(tmp_path))


def as_counted(facts: Facts) -> set[tuple[Any, ...]]:
    """The refused rows of the page as `Lake.counted` has them."""
    return {(each.outcome, each.reason, each.rows, each.resolved) for each in facts.refusals}


@pytest.mark.slow
def test_every_fact_is_the_one_that_spark_finds(lake: Lake) -> None:
    facts = lake.facts()
    assert as_counted(facts) == lake.counted()
    assert {each.outcome for each in facts.refusals} == {
        "late",
        "partial",
        "duplicate",
        "quarantined",
    }
    assert sum(each.resolved for each in facts.refusals) == 1
    for output in facts.outputs:
        path = lake.pipeline.table(output.name)
        assert output.rows == delta.read(lake.spark, path).count() > 0
        assert output.version == delta_log.version(lake.spark, path)
    _compare_runs(lake, facts)
    _compare_checks(lake, facts)


def test_corrections_are_those_that_spark_finds(lake: Lake) -> None:
    facts = read_facts(lake.pipeline, refuse, Asked.VALUES)
    assert facts.lateness is not None
    late = delta.read(lake.spark, lake.pipeline.table("_late"))
    behind = F.unix_micros("watermark") - F.unix_micros("event_time")
    lengths = [row[0] for row in late.select(behind).collect()]
    assert facts.lateness.behind == count_ages(lengths)
    assert facts.lateness.behind.total == 6
    revised = 0
    for output in facts.outputs:
        found = output.revisions
        assert found is not None and found.shape is not None
        rows = delta.read(lake.spark, lake.pipeline.table(output.name))
        corrected = rows.where("revision > 0").count()
        assert found.back.total + found.open_rows + found.unknown_rows == corrected
        assert sum(found.shape.newest) == rows.count()
        assert found.shape.published is None, "nothing is published"
        revised += corrected
        for each in found.most:
            _compare_history(lake, output.name, each)
    assert revised > 0


def _compare_history(lake: Lake, window: str, revised: Revised) -> None:
    """Each past of the window is one that a version of the table has, the last one the newest."""
    path = lake.pipeline.table(window)
    pasts = []
    for number in range(delta_log.version(lake.spark, path) + 1):
        rows = delta.read(lake.spark, path, number).where(F.col("place") == revised.key["place"])
        pasts.append([(row["run"], row["revision"], row["n"]) for row in rows.collect()])
    told = [(was.run, was.revision, was.values["n"]) for was in revised.history]
    assert told[-1] in pasts[-1]
    assert all(any(was in past for past in pasts) for was in told)
    assert [was.revision for was in revised.history] == [*range(revised.revision + 1)]


def test_what_rows_hold_is_read_only_where_it_was_asked_for(lake: Lake) -> None:
    for output in lake.facts().outputs:
        assert output.revisions is not None
        for each in output.revisions.most:
            assert each.key == {}
            assert [was.values for was in each.history] == [{}] * len(each.history)


def _compare_runs(lake: Lake, facts: Facts) -> None:
    rows = delta.read(lake.spark, lake.pipeline.table("_watermarks")).orderBy("run")
    times = (F.unix_micros("arrival"), F.unix_micros("watermark"))
    shown = [
        (each.run, each.arrival_us, each.watermark_us, *(getattr(each, name) for name in COUNTS))
        for each in facts.runs
    ]
    assert shown == [tuple(row) for row in rows.select("run", *times, *COUNTS).collect()]
    assert [each.run for each in facts.runs] == [1, 2]
    assert facts.runs[0].changed.inserted == 4


def _compare_checks(lake: Lake, facts: Facts) -> None:
    columns = ("run", "window", "expectation", "severity", "success", "observed", "detail")
    rows = delta.read(lake.spark, lake.pipeline.table("_quality"))
    ordered = rows.orderBy("success", "severity", "window", "expectation").select(*columns)
    shown = [tuple(getattr(each, name) for name in columns) for each in facts.checks]
    assert sorted(shown) == sorted(tuple(row) for row in ordered.collect())
    assert [row[:4] for row in shown] == [tuple(row)[:4] for row in ordered.collect()]


def test_only_the_newest_validation_is_shown(lake: Lake) -> None:
    before = lake.facts().checks
    validate(lake.spark, lake.pipeline)
    assert len(lake.facts().checks) == len(before) > 0
    quality = delta.read(lake.spark, lake.pipeline.table("_quality"))
    (newest,) = quality.agg(F.max(F.unix_micros("checked_at"))).collect()[0]
    newer = f"unix_micros(checked_at) = {newest}"
    lake.alter("_quality", f"update {{table}} set detail = 'newest' where {newer}")
    assert {each.detail for each in lake.facts().checks} == {"newest"}


def test_rows_that_a_deletion_vector_marks_are_not_counted(lake: Lake) -> None:
    lake.alter(
        "_late", "alter table {table} set tblproperties ('delta.enableDeletionVectors' = 'true')"
    )
    before = lake.counted()
    lake.alter("_late", "delete from {table} where id = 'late 2'")
    log = lake.pipeline.table("_late").local / "_delta_log"
    assert "deletionVector" in max(log.glob("*.json")).read_text()
    facts = lake.facts()
    assert as_counted(facts) == lake.counted() != before
    assert facts.lateness is not None and facts.lateness.behind.total == 5


def test_columns_that_are_stored_under_another_name_are_found(lake: Lake) -> None:
    lake.alter(
        "_late", "alter table {table} set tblproperties ('delta.columnMapping.mode' = 'name')"
    )
    lake.alter("_late", "alter table {table} rename column reason to was")
    lake.alter("_late", "alter table {table} rename column outcome to reason")
    lake.alter("_late", "alter table {table} rename column was to outcome")
    facts = read_facts(lake.pipeline, lambda: lake.spark)
    assert as_counted(facts) == lake.counted()
    assert "late" in {each.reason for each in facts.refusals}


def widen(lake: Lake) -> None:
    """A column of another type, as a wider source leaves it."""
    lake.alter(
        "_late", "alter table {table} set tblproperties ('delta.enableTypeWidening' = 'true')"
    )
    lake.alter("_late", "alter table {table} alter column fare type decimal(38, 0)")


def lose_statistics(lake: Lake) -> None:
    """A version whose file has no number of rows."""
    with setting_changed(lake.spark, "spark.databricks.delta.stats.collect", "false"):
        rows = delta.read(lake.spark, lake.pipeline.table("hourly")).localCheckpoint()
        rows.write.format("delta").mode("overwrite").save(lake.pipeline.table("hourly").text)


@pytest.mark.parametrize(("change", "times"), [(widen, 2), (lose_statistics, 1)])
def test_a_table_that_only_spark_can_read_is_read_by_spark(
    lake: Lake, change: Callable[[Lake], None], times: int
) -> None:
    before = lake.facts()
    change(lake)
    opened = []

    def open_session() -> SparkSession:
        opened.append(change)
        return lake.spark

    facts = read_facts(lake.pipeline, open_session)
    assert len(opened) == times, "reasons and lateness of one table, or rows of one output"
    assert facts.lateness == before.lateness
    assert as_counted(facts) == as_counted(before) == lake.counted()
    assert [each.rows for each in facts.outputs] == [each.rows for each in before.outputs]
