"""The session of a run that reads few rows."""

from pyspark.sql import SparkSession

from jobs.preflight.exact_session import copy_session
from jobs.preflight.run_size import RunSize

SMALL = {
    # Adaptive execution makes every shuffle a job of its own, to measure it before it plans on.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
}
"""Settings with which every query is planned once and runs in one task after each shuffle."""


def session_of_size(spark: SparkSession, size: RunSize | None) -> SparkSession:
    """`spark`, or for a run that is known to be small a copy of it with the settings `SMALL`."""
    if size is None or not size.is_small:
        return spark
    return copy_session(spark, SMALL)
