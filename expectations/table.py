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


def _after_others(spark: SparkSession, path: str) -> datetime:
    """The host clock, but later than every check before.

    The last check counts, even after the host clock was set back.
    """
    now = datetime.now(UTC)
    newest = (
        delta.read(spark, path).agg(F.unix_micros(F.max("checked_at"))).collect()[0][0]
        if delta.exists(spark, path)
        else None
    )
    return now if newest is None else max(now, moment(newest + 1))


def record_outcomes(
    spark: SparkSession,
    path: str,
    run: int,
    seq: int,
    versions: Mapping[str, int],
    outcomes: Sequence[Outcome],
) -> None:
    """Records the outcomes for the `versions` that the ledger's step `seq` of `run` names."""
    origin = {"run": run, "seq": seq, "checked_at": _after_others(spark, path)}
    rows = [{**asdict(o), **origin, "version": versions.get(o.window)} for o in outcomes]
    delta.append(delta.rows(spark, rows, _SCHEMA), path)


def read_outcomes(spark: SparkSession, pipeline: Pipeline, past: LedgerHistory) -> list[Row]:
    """What every validation of a step not older than what is published has found."""
    if not delta.exists(spark, pipeline.table(QUALITY)):
        return []
    since = min(e.seq if e else -1 for e in (past.published, past.newest))
    quality = delta.read(spark, pipeline.table(QUALITY)).where(F.col("seq") >= since)
    return quality.select(
        "seq",
        "window",
        "expectation",
        "severity",
        "success",
        F.unix_micros("checked_at").alias("checked_at"),
    ).collect()
