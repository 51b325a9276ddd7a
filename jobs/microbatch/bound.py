"""How much of the source one batch of a run reads, and how far a run of several batches is.

ledger + log of the source -> files that were not read yet -> Bound; None where one batch reads all

A run is judged as one batch would judge it. Where that would need all events of the run at once, a
bound that the spec names is refused, and the default one does not apply.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from jobs.shortcuts.run_size import MANY_ROWS
from windowing.admit.rule import suspicious_before, suspicious_for_sessions
from windowing.errors import SpecError
from windowing.ledger.counts import BATCH_BYTES
from windowing.ledger.rule import LedgerEntry, LedgerExcerpt
from windowing.report.progress import RunProgress
from windowing.report.text import count
from windowing.source.backlog import Backlog, find_byte_limit, gather_backlog
from windowing.source.table import find_bounded_time
from windowing.spec.batches import DEFAULT, list_filled
from windowing.spec.pipeline import BatchBound, Pipeline
from windowing.spec.words import join_names
from windowing.storage import delta_log
from windowing.storage.file_figures import FileFigures
from windowing.storage.kept_open import read_commit_text
from windowing.storage.stream_offsets import is_inside_snapshot, read_version_at
from windowing.storage.table_figures import list_file_figures


class RestIsForNextRun(Exception):
    """Ends a stream whose next batch the run must not read."""


@dataclass(frozen=True)
class Bound:
    """A batch ends with the file that reaches `bytes`.

    Several batches surely give the result of one up to the version `until` of the source. The run
    reads `all_bytes` and `all_rows`, as far as the log tells when it begins or goes on; None where
    it does not.
    """

    bytes: int
    until: int
    all_bytes: int
    all_rows: int | None


def find_bound(
    spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt, new_rows: int | None
) -> Bound | None:
    """The bound of each batch of the run that follows `past`; None where one batch reads all.

    `new_rows` is how many rows there are to read, None where that is not known. SpecError where the
    spec names a bound that can't be kept.
    """
    named = pipeline.source.batch
    is_small = new_rows is not None and new_rows <= MANY_ROWS
    if named is None and (is_small or any(list_filled(pipeline))):
        return None
    bound = named or DEFAULT
    until = delta_log.known_version(spark, pipeline.source.table)
    backlog = _read_backlog(spark, pipeline, past, until)
    # Delta refuses commits that removed rows before anything is read.
    is_refused = backlog is None or (backlog.rewrites and pipeline.source.changes == "refuse")
    if backlog is None or is_refused or backlog.fits(bound):
        return None
    wrong = find_obstacle(pipeline, past.watermark, backlog, bound)
    if wrong is None:
        return _bound_batches(past, backlog, bound, until)
    if named is None:
        return None
    raise SpecError("source.batch", wrong, pipeline.file)


def check_batch(
    spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt, bound: Bound, version: int
) -> None:
    """Raises RestIsForNextRun where a batch up to `version` is not for a run with this bound.

    That is where versions came since the bound was found, in which rows may be late for sessions:
    which of them are late would depend on where a batch ends.
    """
    if version <= bound.until:
        return
    commits = _read_commits(spark, pipeline, bound.until + 1, version)
    same = BatchBound(bytes=bound.bytes)
    if commits is None or find_obstacle(pipeline, past.watermark, commits, same) is not None:
        raise RestIsForNextRun


def find_obstacle(
    pipeline: Pipeline, watermark_us: int | None, backlog: Backlog, bound: BatchBound
) -> str | None:
    """Why several batches can't read the backlog, or might give another result than one.

    `watermark_us` is the W that the run is judged by.
    """
    if find_byte_limit(backlog, bound) is None:
        return (
            f"the log of {pipeline.source.table} does not say how many rows each file has; "
            "give bytes instead of rows"
        )
    advice = "raise source.batch, or leave it out for this run"
    is_feed = pipeline.source.changes == "feed"
    if is_feed and suspicious_before(pipeline, watermark_us) is not None:
        return (
            f"{_describe(backlog)} are new and rows may be late; which of them a change of the "
            f"source brings back depends on the batch, so one has to read all; {advice}"
        )
    late_before, low_us = suspicious_for_sessions(pipeline, watermark_us), backlog.low_us
    if late_before is None or (low_us is not None and low_us >= late_before):
        return None
    names = join_names(window.name for window in pipeline.chained)
    return (
        f"{_describe(backlog)} are new and some rows may be late; which ones are late for sessions "
        f"({names}) depends on all rows of the run, so one batch has to read them; {advice}"
    )


def _describe(backlog: Backlog) -> str:
    """How much there is to read."""
    size = f"{backlog.bytes / 1e6:,.1f} MB"
    return size if backlog.rows is None else f"{count(backlog.rows, 'row')} ({size})"


def _bound_batches(
    past: LedgerExcerpt, backlog: Backlog, bound: BatchBound, until: int
) -> Bound | None:
    limit = find_byte_limit(backlog, bound)
    if limit is None:
        return None
    since = past.next_version
    # What was read of a version that was not read to its end is among the files of the backlog.
    before = [e for e in _list_done(past) if since is None or _read_version_of(e) < since]
    read_bytes, read_rows = _sum_read(before)
    all_rows = None if backlog.rows is None else backlog.rows + read_rows
    return Bound(limit, until, backlog.bytes + read_bytes, all_rows)


def _read_version_of(entry: LedgerEntry) -> int:
    return -1 if entry.offsets is None else read_version_at(entry.offsets)


def measure_progress(past: LedgerExcerpt, bound: Bound, windows: Iterable[str]) -> RunProgress:
    """How far the run that `past` ends with has come."""
    done = _list_done(past)
    read_bytes, rows = _sum_read(done)
    share = read_bytes / bound.all_bytes if bound.all_bytes else 0.0
    if not read_bytes and bound.all_rows:
        # Spark does not tell how large the files of a change feed are.
        share = rows / bound.all_rows
    changes = [f"{name}.{how}" for name in windows for how in ("inserted", "updated", "deleted")]
    changed = sum(entry.counts.get(name, 0) for entry in done for name in changes)
    return RunProgress(len(done), rows, bound.all_rows, min(1.0, share), changed)


def _list_done(past: LedgerExcerpt) -> tuple[LedgerEntry, ...]:
    """The finished batches of a run that was begun."""
    begun = past.open_run
    return () if begun is None or begun.run is None else past.done(begun.run)


def _sum_read(done: Iterable[LedgerEntry]) -> tuple[int, int]:
    """The bytes of the files that the batches have read, and the rows."""
    entries = list(done)
    found = [sum(entry.counts.get(name, 0) for entry in entries) for name in (BATCH_BYTES, "read")]
    return found[0], found[1]


def _read_backlog(
    spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt, until: int
) -> Backlog | None:
    """What the run has yet to read up to a version; None where a commit of it is gone."""
    offsets = past.offsets(past.last_batch)
    since = past.next_version
    if offsets is None or since is None:
        return _read_snapshot(spark, pipeline, until)
    if not is_inside_snapshot(offsets):
        return _read_commits(spark, pipeline, since, until)
    commits = _read_commits(spark, pipeline, since + 1, until)
    return None if commits is None else _read_snapshot(spark, pipeline, since) + commits


def _read_commits(
    spark: SparkSession, pipeline: Pipeline, since: int, until: int
) -> Backlog | None:
    """The files of the commits `since` to `until`, both included; None where one is gone."""
    home = delta_log.home(spark, pipeline.source.table)
    texts = [read_commit_text(home, version) for version in range(since, until + 1)]
    known = [text for text in texts if text is not None]
    if len(known) < len(texts):
        return None
    return gather_backlog(known, find_bounded_time(spark, pipeline))


def _read_snapshot(spark: SparkSession, pipeline: Pipeline, version: int) -> Backlog:
    """Every file of a version of the source; one of all bytes where only Spark reads its log."""
    table = pipeline.source.table
    event_time = find_bounded_time(spark, pipeline)
    found = list_file_figures(delta_log.home(spark, table), version, event_time)
    if found:
        return Backlog(tuple(found.values()))
    files, size = delta_log.size(spark, table)
    return Backlog((FileFigures(None, None, None, size),) if files else ())
