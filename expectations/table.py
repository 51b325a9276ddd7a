"""The table `_quality`: one row for each expectation and validation, written and read."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from expectations.outcome import Outcome
from windowing import delta
from windowing.grid.zone import moment
from windowing.ledger.rule import LedgerHistory
from windowing.spec.pipeline import Pipeline

QUALITY = "_quality"
_SCHEMA = """run bigint, seq bigint, window string, suite string, expectation string,
severity string, success boolean, observed string, detail string,
checked_at timestamp_ltz, version bigint"""


def _choose_check_time(spark: SparkSession, path: str) -> datetime:
    """The host clock, but later than every check before.

    The last check counts, even after the host clock was set back.
    """
    now = datetime.now(UTC)
    if not delta.exists(spark, path):
        return now
    last_check_us = F.unix_micros(F.max("checked_at"))
    newest_us = delta.read(spark, path).agg(last_check_us).collect()[0][0]
    if newest_us is None:
        # The table has no rows yet.
        return now
    return max(now, moment(newest_us + 1))


def record_outcomes(
    spark: SparkSession,
    path: str,
    run: int,
    seq: int,
    versions: Mapping[str, int],
    outcomes: Sequence[Outcome],
) -> None:
    """Records the outcomes for the `versions` that the ledger's step `seq` of `run` names."""
    origin = {"run": run, "seq": seq, "checked_at": _choose_check_time(spark, path)}
    rows = []
    for outcome in outcomes:
        rows.append({**asdict(outcome), **origin, "version": versions.get(outcome.window)})
    delta.append(delta.rows(spark, rows, _SCHEMA), path)


def read_outcomes(spark: SparkSession, pipeline: Pipeline, past: LedgerHistory) -> list[Row]:
    """What every validation of a step not older than what is published has found."""
    if not delta.exists(spark, pipeline.table(QUALITY)):
        return []
    # Before anything is published, or before the first step, every validation counts.
    published_seq = past.published.seq if past.published else -1
    newest_seq = past.newest.seq if past.newest else -1
    since = min(published_seq, newest_seq)
    quality = delta.read(spark, pipeline.table(QUALITY)).where(F.col("seq") >= since)
    return quality.select(
        "seq",
        "window",
        "expectation",
        "severity",
        "success",
        F.unix_micros("checked_at").alias("checked_at"),
    ).collect()
