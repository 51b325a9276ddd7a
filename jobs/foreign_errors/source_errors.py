"""Errors of Delta about the source, turned into a named error that says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from pyspark.sql import SparkSession

from windowing.doctor.rule import advice, name_command
from windowing.errors import StateRefused
from windowing.grid.zone import moment
from windowing.ledger.rule import LedgerExcerpt
from windowing.report.text import count, instant
from windowing.source.rewrites import Rewrite
from windowing.source.table import list_rewrites
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta_log
from windowing.storage.spark_internals import SPARK_ERRORS

REWRITTEN, VACUUMED = "SOURCE_REWRITTEN", "SOURCE_VACUUMED"
WIDER = "DELTA_SCHEMA_CHANGED"
FILE_GONE = "FAILED_READ_FILE.FILE_NOT_EXIST"
_LOST_VERSION = ("DELTA_VERSION_NOT_FOUND", "DELTA_LOG_FILE_NOT_FOUND")
REFUSALS = {
    "DELTA_SOURCE_TABLE_IGNORE_CHANGES": (
        REWRITTEN,
        "rows of the source were updated or deleted after they had been read",
    ),
    "DELTA_SOURCE_IGNORE_DELETE": (
        REWRITTEN,
        "rows of the source were deleted after they had been read",
    ),
    "DELTA_MISSING_CHANGE_DATA": (
        REWRITTEN,
        "rows of the source were updated or deleted while it recorded no change feed",
    ),
    "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE": (
        "SOURCE_RECREATED",
        "the source was dropped and created again",
    ),
    "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE": (
        "SOURCE_CHANGED",
        "columns of the source were renamed, dropped or changed their type",
    ),
    "DELTA_MISSING_FILES": (
        VACUUMED,
        "files or versions of the source that were not read yet have been vacuumed",
    ),
    "DELTA_STREAMING_TRAILING_COMMIT_MISSING": (
        "SOURCE_OLDER",
        "versions of the source that were seen, though not read yet, are missing",
    ),
    "DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE": (
        VACUUMED,
        "versions of the source that are still needed are missing",
    ),
    "DELTA_VERSIONS_NOT_CONTIGUOUS": (
        VACUUMED,
        "versions of the source that were not read yet are missing",
    ),
}
"""Delta's error conditions: the code of our error, and what is wrong with the source."""
_FOLLOW = (
    "{command} reprocesses the event times that they touched; `source.changes: feed` does so in "
    "each run, where the source records its change feed from then on"
)


@contextmanager
def source_errors_explained(
    spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt, first: str | None = None
) -> Iterator[None]:
    """Raises StateRefused for what Delta refuses to read of the source inside the block.

    `first` is what to do before a reset where the source has lost what was read.
    """
    try:
        yield
    except SPARK_ERRORS as error:
        found = explain_source_error(spark, pipeline, past, error, first)
        if found is error:
            raise
        raise found from error


@contextmanager
def lost_version_explained(pipeline: Pipeline, first: str | None = None) -> Iterator[None]:
    """Raises StateRefused where the log has lost the version that is opened inside the block.

    `first` is what to do before a reset.
    """
    try:
        yield
    except SPARK_ERRORS as error:
        if not any(condition in str(error) for condition in _LOST_VERSION):
            raise
        problem = (
            f"{pipeline.source.table}: the version of the source that was read last can't be read "
            "any more, so what changed since is not known"
        )
        raise StateRefused(VACUUMED, f"{problem}; {_advise_on_loss(pipeline, first)}") from error


def _advise_on_loss(pipeline: Pipeline, first: str | None) -> str:
    """What to do where the source has lost what was read: a reset comes last."""
    return advice(pipeline) if first is None else f"{first}; or {advice(pipeline)}"


def is_version_gone(error: BaseException) -> bool:
    """Whether a version of a table was not read because its commits or files were deleted."""
    return any(condition in str(error) for condition in (*_LOST_VERSION, FILE_GONE))


def explain_source_error(
    spark: SparkSession,
    pipeline: Pipeline,
    past: LedgerExcerpt,
    error: BaseException,
    first: str | None = None,
) -> BaseException:
    """The error to raise for `error`, with which the stream of a run or one of its batches ended.

    It is `error` itself where its condition is not a known one. `first` is what to do before a
    reset where the source has lost what was read.
    """
    text = str(error)
    table = pipeline.source.table
    if WIDER in text:
        changed = f"{table}: the columns of the source changed while it was read"
        repair = f"run again, and if that ends in the same way, {advice(pipeline)}"
        return StateRefused("SOURCE_CHANGED", f"{changed}; {repair}")
    known = _find_meaning(spark, pipeline, text)
    if known is None:
        return error
    code, meaning = known
    problem = f"{table}: {meaning}"
    if code == VACUUMED:
        return StateRefused(code, f"{problem}; {_advise_on_loss(pipeline, first)}")
    if code != REWRITTEN:
        return StateRefused(code, f"{problem}; {advice(pipeline)}")
    which = describe_rewrites(spark, pipeline, past)
    if which:
        problem = f"{problem}: {which}"
    if pipeline.source.event_time.column is None:
        return StateRefused(
            code,
            f"{problem}; events that happen when they arrive can't be reprocessed, so "
            f"{advice(pipeline)}",
        )
    follow = _FOLLOW.format(command=name_command(pipeline, "backfill", "--source newest"))
    return StateRefused(code, f"{problem}; {follow}; or {advice(pipeline)}")


def _find_meaning(spark: SparkSession, pipeline: Pipeline, text: str) -> tuple[str, str] | None:
    """The code and the meaning of a message of Delta's; None where it is not a known one."""
    # A missing file may also be one of the pipeline's own tables, so the message has to name the
    # source. Spark quotes the file as a URL.
    if FILE_GONE in text and f"{delta_log.home(spark, pipeline.source.table)}/" in unquote(text):
        return (VACUUMED, "files of the source that are still needed have been vacuumed")
    for condition, meaning in REFUSALS.items():
        if condition in text:
            return meaning
    return None


def describe_rewrites(spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt) -> str:
    """The commits not read yet that removed rows, with the event times these may be of.

    For example: version 3 (DELETE, 40 rows fewer, 10:00 to 11:00), version 5 (UPDATE).
    """
    newest = delta_log.version(spark, pipeline.source.table)
    found = list_rewrites(spark, pipeline, past.next_version or 0, newest)
    return ", ".join(_describe_rewrite(rewrite) for rewrite in found)


def _describe_rewrite(rewrite: Rewrite) -> str:
    """A commit that removed rows: version 3 (DELETE, 40 rows fewer, 10:00 to 11:00)."""
    parts = [rewrite.operation]
    if rewrite.fewer:
        change = "fewer" if rewrite.fewer > 0 else "more"
        parts.append(f"{count(abs(rewrite.fewer), 'row')} {change}")
    if rewrite.within is not None:
        ends = moment(rewrite.within.low_us), moment(rewrite.within.high_us)
        parts.append(" to ".join(map(instant, ends)))
    return f"version {rewrite.version} ({', '.join(parts)})"
