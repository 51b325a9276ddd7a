"""The session of a run that reads few rows."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from jobs.sessions.exact_session import copy_session
from jobs.shortcuts.run_size import RunSize
from windowing.storage.spark_internals import list_settings

SMALL = {
    # Adaptive execution makes every shuffle a job of its own, to measure it before it plans on.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
}
"""Settings with which every query is planned once and runs in one task after each shuffle."""


@dataclass(frozen=True)
class _Copy:
    """A session with the settings `SMALL`, and the settings that it was made with."""

    session: SparkSession
    settings: str


# Spark keeps a listener for every session that has started a stream, and never drops it. So one
# copy serves all runs of a session.
_copies: WeakKeyDictionary[SparkSession, _Copy] = WeakKeyDictionary()


def session_of_size(spark: SparkSession, size: RunSize | None) -> SparkSession:
    """`spark`, or for a run that is known to be small a copy of it with the settings `SMALL`."""
    return small_copy(spark) if size is not None and size.is_small else spark


def small_copy(spark: SparkSession) -> SparkSession:
    """A copy of `spark` with the settings `SMALL`, the same one as long as its settings stay."""
    settings = list_settings(spark)
    known = _copies.get(spark)
    if known is None or known.settings != settings:
        known = _Copy(copy_session(spark, SMALL), settings)
        _copies[spark] = known
    return known.session
