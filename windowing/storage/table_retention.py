"""What a Delta table keeps besides its newest version: older files and older commits."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from pyspark.sql import SparkSession

from windowing.location import Location
from windowing.storage import delta_log
from windowing.storage.commit_file import CHANGES
from windowing.storage.log_lines import LOG
from windowing.storage.store import StoredFile, store_of
from windowing.storage.table_properties import FILES_KEPT, LOG_KEPT

_NOT_HIDDEN = (CHANGES, "_delta_index")


def has_older_files(path: Location, moment: datetime) -> bool:
    """Whether a file of the table at `path`, needed or not, was last written before `moment`.

    `moment` is aware and exclusive. VACUUM deletes no other files.
    """
    return _any_written_before(moment, _list_data_files(path).values())


def has_older_commits(path: Location, moment: datetime) -> bool:
    """Whether the log of the table at `path` has a commit that was written before `moment`.

    `moment` is aware and exclusive.
    """
    log = path / LOG
    found = store_of(log).list_files(log).items()
    commits = [file for name, file in found if name.endswith(".json") and "/" not in name]
    return _any_written_before(moment, commits)


def _any_written_before(moment: datetime, files: Iterable[StoredFile]) -> bool:
    return any(file.written_s < moment.timestamp() for file in files)


def shorten_log(spark: SparkSession, path: Location, kept: timedelta) -> None:
    """Writes a log checkpoint and deletes commit files older than `kept` (whole days).

    Commits are deleted only up to the last log checkpoint that is older than `kept`; Delta counts
    to midnight, UTC. Earlier versions can't be read any more. If the table's own property says how
    long commits are kept, it takes precedence.
    """
    if delta_log.setting(spark, path, LOG_KEPT) is None:
        _set_retention(spark, path, kept, kept)
    delta_log.write_checkpoint(spark, path)


def clean_log(spark: SparkSession, path: Location, now: datetime) -> None:
    """Writes a log checkpoint and deletes the commit files that the table need not keep.

    Nothing is done where no commit is older than the table keeps its log. Commits that are not
    Spark's delete none by themselves.
    """
    if has_older_commits(path, now - delta_log.log_retention(spark, path)):
        delta_log.write_checkpoint(spark, path)


def has_past(spark: SparkSession, path: Location) -> bool:
    """Whether files of the table at `path` contain more than its newest version.

    More are files of older versions, rows marked as deleted, and files that no commit names.
    """
    return count_past_files(spark, path) != 0 or delta_log.may_mark_rows(spark, path)


def count_past_files(spark: SparkSession, path: Location) -> int:
    """How many files more than its newest version needs the table at `path` has.

    Deletion vectors are among them.
    """
    return len(_list_data_files(path)) - delta_log.size(spark, path)[0]


def keep_longer(spark: SparkSession, path: Location, time: timedelta) -> None:
    """Sets for how long the table at `path` keeps files that its newest version doesn't need.

    `time` is whole days. The log is kept for no less.
    """
    _set_retention(spark, path, time, max(time, delta_log.log_retention(spark, path)))


def _set_retention(spark: SparkSession, path: Location, files: timedelta, log: timedelta) -> None:
    """Sets both at once, because Delta keeps no log for less time than files."""
    files_kept = f"'{FILES_KEPT}' = 'interval {files.days} days'"
    log_kept = f"'{LOG_KEPT}' = 'interval {log.days} days'"
    with delta_log.committing(spark, path):
        spark.sql(f"alter table {path.sql} set tblproperties ({files_kept}, {log_kept})")


def _list_data_files(path: Location) -> Mapping[str, StoredFile]:
    """The files of the table at `path` that VACUUM lists."""
    found = store_of(path).list_files(path)
    return {name: file for name, file in found.items() if _is_listed(name)}


def _is_listed(name: str) -> bool:
    return not any(map(_is_hidden, name.split("/")))


def _is_hidden(name: str) -> bool:
    """Whether Delta passes over a file or a directory of that name."""
    return name.startswith((".", "_")) and not name.startswith(_NOT_HIDDEN)
