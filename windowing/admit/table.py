"""Refused rows, stored whole in `_late`, `_duplicates` and `_quarantine`.

Each row has its outcome, reason, run and watermark.
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windowing.admit.outcomes import ACCEPTED, PARTIAL, REFUSED
from windowing.columns import DIGEST, MISSED, OUTCOME, TIME, WHY, kept_name
from windowing.panes.table import Stamp, once_of
from windowing.rows import column_named
from windowing.spec.pipeline import Pipeline
from windowing.storage import own_tables


def refused_rows(judged: DataFrame, columns: list[str], stamp: Stamp) -> DataFrame:
    """The refused and the partly late rows.

    judged -> [source columns, outcome, reason, missed, event_time, run, batch, watermark,
    resolved_by, __digest].
    """
    partial = (F.col(OUTCOME) == ACCEPTED) & (F.size(MISSED) > 0)
    outcome = F.when(partial, PARTIAL).otherwise(F.col(OUTCOME))
    source_columns = [column_named(name).alias(kept_name(name)) for name in columns]
    refused = judged.where(partial | (F.col(OUTCOME) != ACCEPTED))
    return refused.select(
        *source_columns,
        outcome.alias("outcome"),
        F.col(WHY).alias("reason"),
        F.col(MISSED).alias("missed"),
        F.timestamp_micros(TIME).alias("event_time"),
        F.lit(stamp.run).cast("bigint").alias("run"),
        F.lit(stamp.batch).cast("bigint").alias("batch"),
        stamp.watermark.alias("watermark"),
        F.lit(None).cast("string").alias("resolved_by"),
        DIGEST,
    )


def store_refused(
    rows: DataFrame, pipeline: Pipeline, counts: Mapping[str, int], stamp: Stamp
) -> None:
    """Appends `rows` to the tables of their outcomes.

    Tables of outcomes that no row has, by `counts`, stay as they are.
    """
    for table, outcomes in REFUSED.items():
        if not any(counts.get(outcome) for outcome in outcomes):
            continue
        stored = rows.where(F.col("outcome").isin(*outcomes))
        if table != "_late":
            stored = stored.drop("missed")
        own_tables.append_many(stored, once_of(pipeline, table, stamp), widen=True)
