"""Errors of Delta about the source, turned into a named error that says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from windowing import delta
from windowing.doctor.rule import advice
from windowing.errors import StateRefused
from windowing.ledger.rule import LedgerExcerpt
from windowing.report.text import instant
from windowing.source.table import commits
from windowing.spec.pipeline import Pipeline

REWRITTEN = "SOURCE_REWRITTEN"
WIDER = "DELTA_SCHEMA_CHANGED"
FILE_GONE = "FAILED_READ_FILE.FILE_NOT_EXIST"
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
        "SOURCE_VACUUMED",
        "files or versions of the source that were not read yet have been vacuumed",
    ),
    "DELTA_STREAMING_TRAILING_COMMIT_MISSING": (
        "SOURCE_OLDER",
        "versions of the source that were seen, though not read yet, are missing",
    ),
    "DELTA_VERSIONS_NOT_CONTIGUOUS": (
        "SOURCE_VACUUMED",
        "versions of the source that were not read yet are missing",
    ),
}
"""Delta's error conditions: the code of our error, and what is wrong with the source."""
_USE_FEED = (
    "`source.changes: feed` reprocesses their event times where the source has recorded its change "
    "feed"
)


@contextmanager
def source_errors_explained(
    spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt
) -> Iterator[None]:
    """Raises StateRefused for what Delta refuses to read of the source inside the block."""
    try:
        yield
    except PySparkException as error:
        found = explain_source_error(spark, pipeline, past, error)
        if found is error:
            raise
        raise found from error


def explain_source_error(
    spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt, error: BaseException
) -> BaseException:
    """The error to raise for `error`, with which the stream of a run or one of its batches ended.

    It is `error` itself where its condition is not a known one.
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
    if code != REWRITTEN:
        return StateRefused(code, f"{problem}; {advice(pipeline)}")
    which = describe_rewrites(spark, pipeline, past)
    if which:
        problem = f"{problem}: {which}"
    return StateRefused(code, f"{problem}; {_USE_FEED}; {advice(pipeline)}")


def _find_meaning(spark: SparkSession, pipeline: Pipeline, text: str) -> tuple[str, str] | None:
    """The code and the meaning of a message of Delta's; None where it is not a known one."""
    # A missing file may also be one of the pipeline's own tables, so the message has to name the
    # source. Spark quotes the file as a URL.
    if FILE_GONE in text and f"{delta.home(spark, pipeline.source.table)}/" in unquote(text):
        return ("SOURCE_VACUUMED", "files of the source that are still needed have been vacuumed")
    for condition, meaning in REFUSALS.items():
        if condition in text:
            return meaning
    return None


def describe_rewrites(spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt) -> str:
    """The commits not read yet that removed rows, with the event times these may be of.

    For example: version 3 (UPDATE, 10:00 to 11:00), version 5 (DELETE).
    """
    newest = delta.version(spark, pipeline.source.table)
    texts = []
    for commit in commits(spark, pipeline, past.next_version or 0, newest):
        if commit is None or not commit.rewrites:
            continue
        times = ""
        if commit.low and commit.high:
            times = f", {instant(commit.low)} to {instant(commit.high)}"
        texts.append(f"version {commit.version} ({commit.operation}{times})")
    return ", ".join(texts)
