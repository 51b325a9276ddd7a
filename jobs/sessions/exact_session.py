"""The session that a command works in, with the settings that results depend on.

It is the caller's own session, or a copy of it. A notebook or a cluster may have set another time
zone, or have switched ANSI off. Then text and local timestamps would be read hours off, and a
number that doesn't fit would become null without an error. The caller's own session keeps its
settings, also while a command runs.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from pyspark.sql import SparkSession

from windowing.storage.spark_internals import clone_session

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

EXACT = {
    # Text and timestamps without a zone are turned into instants by the session's clock.
    "spark.sql.session.timeZone": "UTC",
    # Without ANSI a cast or a sum that does not fit is null, or wraps around.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    # With TIMESTAMP_NTZ the word `timestamp` in a cast or a schema would name a local time.
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    # A text that another parser reads would raise, or be read by that one.
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.caseSensitive": "false",
    # A replaced range would keep what the new rows do not touch.
    "spark.sql.sources.partitionOverwriteMode": "STATIC",
    # Times as nanoseconds, Spark's default, end in the year 2262 for other readers.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Dates before 1900 would be written as those of another calendar, which only Spark reads back.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    # A MERGE that marks rows fails without the number of rows of each file.
    "spark.databricks.delta.stats.collect": "true",
    # Delta would read an older version than the newest, which this process may have committed.
    "spark.databricks.delta.stalenessLimit": "0",
    # Rows of a file that was deleted or damaged would be left out without an error.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # A MERGE would add columns to outputs.
    "spark.databricks.delta.schema.autoMerge.enabled": "false",
    # Published versions stay readable, though Delta would refuse those past its retention.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
}
"""The settings that results depend on.

All are Spark's or Delta's defaults, except the first two, that of Parquet's times and the last.
"""


def in_exact_session(
    command: Callable[Concatenate[SparkSession, _Given], _Result],
) -> Callable[Concatenate[SparkSession, _Given], _Result]:
    """`command`, which always gets a session with the `EXACT` settings."""

    @wraps(command)
    def exact(spark: SparkSession, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        return command(exact_session(spark), *args, **kwargs)

    return exact


def exact_session(spark: SparkSession) -> SparkSession:
    """`spark` where it has the `EXACT` settings already, else a copy of it that has them."""
    # Spark takes another default than None for a value of the setting, and refuses what is none.
    if all(spark.conf.get(name, None) == value for name, value in EXACT.items()):
        return spark
    return copy_session(spark, EXACT)


def copy_session(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A session with other `settings` that shares context, catalog and views with `spark`."""
    copy = clone_session(spark)
    for name, value in settings.items():
        copy.conf.set(name, value)
    return copy
