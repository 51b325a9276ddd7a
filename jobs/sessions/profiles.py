"""The settings of Spark sessions, by what a session is for."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from jobs.shortcuts.run_size import RunSize, stores_little
from windowing.spec.pipeline import Pipeline
from windowing.storage.kept_open import lake_seen
from windowing.storage.master import is_local

Profile = Mapping[str, str]
"""Settings that a session has besides the usual ones."""

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
    # On S3 VACUUM would delete files without a commit before, which the fence can refuse.
    "spark.databricks.delta.vacuum.logging.enabled": "true",
}
"""The settings that results depend on.

All are Spark's or Delta's defaults, except the first two, that of Parquet's times and the last two.
"""
DEFAULTS = {
    # Without this, Hadoop settings of the environment would turn a path without a scheme into one
    # of their cluster.
    "spark.hadoop.fs.defaultFS": "file:///",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    **EXACT,
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "20000",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.databricks.delta.merge.materializeSource": "none",
    # Spark describes the plan of every query for its web pages, which are off here. Small runs
    # spent a twelfth of their time on that.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "500",
    # Spark stores in every expression the Java frames that created it, and serializes them with it.
    # Here these are only frames of the bridge to Python.
    "spark.sql.dataFrameQueryContext.enabled": "false",
    # For every column PySpark makes more calls to the JVM, so that an error can name a line of
    # Python. That was half of the Python time of a small run.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Spark caches 100 generated classes by default, and one run needs about 300 of them, so each
    # warm run compiled some 500 again. The cache belongs to the JVM, so it can only be set when
    # that starts.
    "spark.sql.codegen.cache.maxEntries": "5000",
    # Spark lists more files than that in a job, before it reads them.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    # VACUUM lists the files of a table in up to this many tasks of a few milliseconds; the default
    # is 10,000. A table of a pipeline is one directory, so more executors would not help.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
HERE = "local[*]"
"""The master of a session that works in a JVM of this machine alone, on all of its cores."""
DRIVER_OPTIONS = "spark.driver.defaultJavaOptions"
"""Options of the driver's JVM; those of a user are in another setting and come after them.

Those of a profile are added to those of every session.
"""
LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # With what the JVM needs beside its heap, its process stays within 4 GiB.
    "spark.driver.memory": "3400m",
    "spark.sql.shuffle.partitions": "4",
    "spark.databricks.delta.snapshotPartitions": "2",
    # Few rows are collected, however large each of them is.
    "spark.driver.maxResultSize": "0",
    # Every sort, aggregation and broadcast begins with a zeroed page of this size. With few cores
    # Spark would choose 64 MB.
    "spark.buffer.pageSize": "4m",
    # The optimizing compiler took a fourth of the CPU time of a first load of 5 million rows, for
    # code that runs a few seconds. Here it waits for code that runs eight times as often as usual.
    DRIVER_OPTIONS: (
        "-XX:Tier4InvocationThreshold=40000 -XX:Tier4MinInvocationThreshold=4800 "
        "-XX:Tier4CompileThreshold=120000 -XX:Tier4BackEdgeThreshold=320000"
    ),
}
"""Settings of a local session; a cluster has settings of its own for them."""
CLUSTER = {
    # The log of a table has a row for each file, of which some hundred thousand are few for a task.
    # The default is 50 tasks for each version of each table.
    "spark.databricks.delta.snapshotPartitions": "8",
    # Rows that are pinned in files are needed as long as the frame that has them.
    "spark.cleaner.referenceTracking.cleanCheckpoints": "true",
    # For so many milliseconds an executor goes on to copy rows to the executors that it knew. With
    # 60,000, the default, it copies none to one that has just replaced a lost one.
    "spark.storage.cachedPeersTtl": "1000",
}
"""Settings of a session on a cluster.

How many partitions a shuffle has is left to Spark, which joins small ones, and to those who have
set it for their cluster.
"""
SHORT: Profile = {
    # Files on S3 are small there, and this reads one of up to 8 MB by one request.
    "spark.hadoop.fs.s3a.input.stream.type": "prefetch",
    DRIVER_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
}
"""Settings of a short session: the JVM compiles quickly rather than well.

A cold run of 1,000 rows spent half of its CPU time on compiling. With millions of rows and sketches
such a JVM makes a run take longer.
"""
TINY: Profile = {
    **SHORT,
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings of a short session that reads few rows: queries are interpreted, too."""
TEST: Profile = {
    **TINY,
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.adaptive.enabled": "false",
    "spark.buffer.pageSize": "1m",
    "spark.sql.constraintPropagation.enabled": "false",
}
"""Settings of a session for tables of a few rows.

There, compiling and planning a query again costs more than running it.
"""
FULL: Profile = {}
"""A session of any length."""
_SHORT_BYTES = 20_000_000
"""Up to this size of files, compiling well takes longer than it saves."""
COMMON = {
    "spark.executor.defaultJavaOptions": "-Duser.timezone=UTC",
    "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "tidemark-warehouse"),
}
"""Settings of local sessions and of those of a cluster that no result depends on."""


def place_session(profile: Profile, named_master: str | None) -> Profile:
    """The profile with the place where its session works: here, or on the cluster that is named.

    `named_master` is a master such as Spark's `spark://host:7077`; None where the user has named
    none. A session that reads few rows works here, because executors of a cluster take longer to
    start than it lasts.
    """
    if named_master is None or is_local(named_master) or profile == FULL:
        return profile
    return {"spark.master": HERE, **profile}


def choose_for_run(size: RunSize | None) -> Profile:
    """The profile of a run of this size; None is a size that isn't known."""
    if size is not None and size.is_tiny:
        return TINY
    if size is not None and size.is_short:
        return SHORT
    return FULL


def choose_for_tables(pipeline: Pipeline) -> Profile:
    """The profile of a command that reads rows of the pipeline's tables."""
    with lake_seen(pipeline.root):
        return SHORT if stores_little(pipeline) else FULL


def choose_for_files(size: int) -> Profile:
    """The profile of an ingest of so many bytes."""
    return SHORT if size <= _SHORT_BYTES else FULL
