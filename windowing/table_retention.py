"""What a Delta table keeps beyond its newest version: older files, older commits, and for how long its properties say so."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from windowing import delta
from windowing.delta import local_path

_LOG_KEPT, _FILES_KEPT = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration"


def has_older_files(path: str, moment: datetime) -> bool:
    """Whether a file of the table at `path`, needed or not, was last written before `moment` (aware, outside); VACUUM deletes no others."""
    return _any_before(moment, _files(path))


def has_older_commits(path: str, moment: datetime) -> bool:
    """Whether the log of the table at `path` has a commit that was written before `moment` (aware, outside)."""
    return _any_before(moment, (local_path(path) / "_delta_log").glob("*.json"))


def _any_before(moment: datetime, files: Iterable[Path]) -> bool:
    return any(f.stat().st_mtime < moment.timestamp() for f in files)


def shorten_log(spark: SparkSession, path: str, kept: timedelta) -> None:
    """Sums the log of the table at `path` up; whatever lies before the last sum that is older than `kept` (whole days) goes.

    Delta counts to midnight, UTC. Versions of before can't be read any more. The table's own property says how long, if it is set.
    """
    if delta.setting(spark, path, _LOG_KEPT) is None:
        _keep(spark, path, kept, kept)
    delta.log_of(spark, path).checkpoint()


def has_past(spark: SparkSession, path: str) -> bool:
    """Whether files of the table at `path` hold more than its newest version: older ones, rows marked as deleted, what no commit names."""
    newest = delta.snapshot(spark, path)
    if sum(1 for _ in _files(path)) != int(newest.numOfFiles()):
        return True
    marked = newest.numDeletionVectorsOpt()
    return bool(newest.deletionVectorsSupported()) and not (
        marked.isDefined() and int(marked.get()) == 0
    )


def kept(spark: SparkSession, path: str) -> timedelta:
    """How long the table at `path` keeps files that its newest version doesn't need, as its properties say; its log, no less."""
    return timedelta(
        milliseconds=delta.logs(spark).tombstoneRetentionMillis(
            delta.snapshot(spark, path).metadata()
        )
    )


def keep_longer(spark: SparkSession, path: str, time: timedelta) -> None:
    """The table at `path` keeps files that its newest version doesn't need for `time` (whole days), and its log for no less."""
    snapshot = delta.snapshot(spark, path)
    log = timedelta(milliseconds=snapshot.deltaLog().deltaRetentionMillis(snapshot.metadata()))
    _keep(spark, path, time, max(time, log))


def _keep(spark: SparkSession, path: str, files: timedelta, log: timedelta) -> None:
    """Sets both at once: Delta lets no log be kept for less than files."""
    told = ", ".join(
        f"'{name}' = 'interval {time.days} days'"
        for name, time in ((_FILES_KEPT, files), (_LOG_KEPT, log))
    )
    spark.sql(f"alter table delta.`{path}` set tblproperties ({told})")


def _files(path: str) -> Iterator[Path]:
    """What VACUUM looks at of the table at `path`."""
    home = local_path(path)
    found = (f for f in home.rglob("*") if f.relative_to(home).parts[0] != "_delta_log")
    return (f for f in found if not f.name.startswith(".") and f.is_file())
