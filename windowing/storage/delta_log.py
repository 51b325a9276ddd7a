"""What Delta's log of a table knows in the JVM, read without a query.

Delta promises nothing of these objects, so they are for this file alone, and each call has a test
of its own.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from windowing.location import Location
from windowing.storage.files import find_time, locate_uri
from windowing.storage.kept_open import (
    find_next_version,
    forget_version,
    note_version,
    read_commit_text,
)
from windowing.storage.permission import check_permission
from windowing.storage.store import store_of


def version(spark: SparkSession, path: Location) -> int:
    """The newest version of the table at `path`; -1 when there is none."""
    return int(_snapshot(spark, path).version())


def known_version(spark: SparkSession, path: Location) -> int:
    """The newest version of the table at `path` that this JVM has seen or made; -1 for none.

    The log is not read again, so this costs nothing.
    """
    return int(_log(spark, path).unsafeVolatileSnapshot().version())


@contextmanager
def committing(spark: SparkSession, path: Location) -> Iterator[None]:
    """Inside, Spark commits to the table at `path`; the version is one that this command has made.

    On shared storage Spark can commit no version but the one after that which this command has
    begun with or has made, so it does not go on where another has taken over while it slept.
    """
    check_permission()
    allowed = find_next_version(path)
    if allowed is not None:
        allow_commit(spark, path.hadoop, allowed)
    yield
    # What this JVM knows may be of another command, which has taken over meanwhile.
    made = (
        known_version(spark, path) if allowed is None else _find_next_commit(spark, path.hadoop) - 1
    )
    note_version(path, made)


def allow_commit(spark: SparkSession, table: str, version: int) -> None:
    """Lets the JVM commit this version of a table next, in a directory as Spark spells it."""
    java: Any = spark._jvm
    java.tidemark.Fence.allow(table, version)


def _find_next_commit(spark: SparkSession, table: str) -> int:
    """The version after that which this command has begun with or has made last."""
    java: Any = spark._jvm
    return int(java.tidemark.Fence.next(table))


class CommitFence:
    """Which versions the JVM may commit to the tables of a lake; it refuses all others.

    From the start there are none but those that `allow_commit` names. After its own commit of a
    version it may commit the next one. What it refuses ends with an error that has `FENCED` in its
    text, before anything is written. Tables whose log store is one of Delta's own have no fence.
    """

    def __init__(self, spark: SparkSession, lake: str) -> None:
        java: Any = spark._jvm
        self._fence, self._lake = java.tidemark.Fence, lake
        self._fence.only(lake)

    def close(self) -> None:
        """Nothing may be committed any more, not even a version that was allowed before."""
        # A JVM that has ended commits nothing.
        with suppress(OSError, Py4JError):
            self._fence.only(self._lake)

    def lift(self) -> None:
        """Whatever lies in the lake may be committed to again."""
        # A JVM that has ended has no fence any more.
        with suppress(OSError, Py4JError):
            self._fence.lift(self._lake)


def known_schema(spark: SparkSession, path: Location) -> T.StructType:
    """The columns of that version with their metadata, which reading the table does not show."""
    known = _log(spark, path).unsafeVolatileSnapshot()
    return T.StructType.fromJson(json.loads(known.metadata().schema().json()))


def known_features(spark: SparkSession, path: Location) -> frozenset[str]:
    """The table features of the newest version that this JVM has seen or made, by their names."""
    names = _log(spark, path).unsafeVolatileSnapshot().protocol().readerAndWriterFeatureNames()
    return frozenset(str(names.mkString(" ")).split())


def known_table_id(spark: SparkSession, path: Location) -> str:
    """The id that a table created later at the same path does not have.

    It is that of the newest version that this JVM has seen or made. The log is not read again.
    """
    return str(_log(spark, path).unsafeVolatileSnapshot().metadata().id())


def home(spark: SparkSession, path: Location) -> Location:
    """The directory of the table at `path`."""
    return locate_uri(str(_log(spark, path).dataPath()))


def committed(spark: SparkSession, path: Location, version: int) -> int | None:
    """When `version` of the table at `path` was written, microseconds by its writer's clock.

    It is None where the commit file was deleted or has no time.
    """
    return find_time(read_commit_text(home(spark, path), version))


def setting(spark: SparkSession, path: Location, name: str) -> str | None:
    """A property of the table at `path`; None where it is not set."""
    found = _snapshot(spark, path).metadata().configuration().get(name)
    return str(found.get()) if found.isDefined() else None


def size(spark: SparkSession, path: Location) -> tuple[int, int]:
    """Files and bytes of the newest version of the table at `path`."""
    newest = _snapshot(spark, path)
    checksum = newest.checksumOpt()
    if checksum.isDefined():
        # Without the checksum file Delta runs a Spark job to count.
        return int(checksum.get().numFiles()), int(checksum.get().tableSizeBytes())
    return int(newest.numOfFiles()), int(newest.sizeInBytes())


def may_mark_rows(spark: SparkSession, path: Location) -> bool:
    """Whether rows of the table at `path` may be marked as deleted in the files that have them."""
    newest = _snapshot(spark, path)
    if not newest.deletionVectorsSupported():
        return False
    deletion_vectors = newest.numDeletionVectorsOpt()
    # Where Delta can't tell how many there are, there may be some.
    return not deletion_vectors.isDefined() or int(deletion_vectors.get()) > 0


def log_retention(spark: SparkSession, path: Location) -> timedelta:
    """How long the table at `path` keeps its log."""
    newest = _snapshot(spark, path)
    return timedelta(milliseconds=newest.deltaLog().deltaRetentionMillis(newest.metadata()))


def file_retention(spark: SparkSession, path: Location) -> timedelta:
    """How long the table at `path` keeps files that its newest version doesn't need."""
    metadata = _snapshot(spark, path).metadata()
    return timedelta(milliseconds=_logs(spark).tombstoneRetentionMillis(metadata))


def write_checkpoint(spark: SparkSession, path: Location) -> None:
    """Writes a log checkpoint, and deletes the commit files that the table need not keep."""
    _log(spark, path).checkpoint()


def forget(spark: SparkSession, directory: Location) -> None:
    """Forgets the tables in `directory`, which are about to be deleted, here and in the JVM."""
    paths = store_of(directory).list_files(directory)
    for home in {path.rpartition("/_delta_log/")[0] for path in paths if "/_delta_log/" in path}:
        path = directory / home
        forget_version(path)
        table = getattr(spark._jvm, "org.apache.hadoop.fs.Path")(path.hadoop)
        _logs(spark).invalidateCache(spark._jsparkSession, table)


def forget_all(spark: SparkSession) -> None:
    """Removes every table from the JVM's cache: one may be deleted and made again meanwhile."""
    _logs(spark).clearCache()


def _snapshot(spark: SparkSession, path: Location) -> Any:
    """The newest version of the table at `path`."""
    directory = _find_directory(spark, path).hadoop
    return _logs(spark).forTableWithSnapshot(spark._jsparkSession, directory)._2()


def _log(spark: SparkSession, path: Location) -> Any:
    return _logs(spark).forTable(spark._jsparkSession, _find_directory(spark, path).hadoop)


def _logs(spark: SparkSession) -> Any:
    """Delta's cache of logs, through which it opens each of them."""
    return getattr(spark._jvm, "org.apache.spark.sql.delta.DeltaLog")


def _find_directory(spark: SparkSession, path: Location) -> Location:
    """The directory of the table at `path`, which may be a name of the catalog."""
    if not path.is_in_catalog:
        return path
    detail = spark.sql(f"describe detail {path.sql}")
    (row,) = detail.select("location").collect()
    return locate_uri(row["location"])
