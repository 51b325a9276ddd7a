"""What Delta refuses to read of the source, as one sentence with a name and what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from windowing import delta
from windowing.doctor.rule import advice
from windowing.errors import StateRefused
from windowing.ledger.rule import Story
from windowing.report.text import instant
from windowing.source.table import commits
from windowing.spec.pipeline import Pipeline

REWRITTEN = "SOURCE_REWRITTEN"
WIDER, FILE_GONE = "DELTA_SCHEMA_CHANGED", "FAILED_READ_FILE.FILE_NOT_EXIST"
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
        "versions of the source that were seen, though not read yet, are gone",
    ),
    "DELTA_VERSIONS_NOT_CONTIGUOUS": (
        "SOURCE_VACUUMED",
        "versions of the source that were not read yet are gone",
    ),
}
"""Delta's conditions, by our name and in our words."""


@contextmanager
def told(spark: SparkSession, pipeline: Pipeline, past: Story) -> Iterator[None]:
    """What Delta refuses inside the block is raised as one sentence with a name and what to do."""
    try:
        yield
    except PySparkException as error:
        found = refusal(spark, pipeline, past, error)
        if found is error:
            raise
        raise found from error


def refusal(
    spark: SparkSession, pipeline: Pipeline, past: Story, error: BaseException
) -> BaseException:
    """The error of a run whose stream, or a batch of it, ended with `error`; that as it is where its condition is not a known one."""
    text = str(error)
    if WIDER in text:
        said = f"{pipeline.source.table}: the columns of the source changed while it was read"
        return StateRefused(
            "SOURCE_CHANGED", f"{said}; run again, and if that ends so too, {advice(pipeline)}"
        )
    known = next((meaning for condition, meaning in REFUSALS.items() if condition in text), None)
    if FILE_GONE in text and f"{delta.home(spark, pipeline.source.table)}/" in unquote(text):
        known = ("SOURCE_VACUUMED", "files of the source that are still needed have been vacuumed")
    if known is None:
        return error
    code, said = known
    where = f"{pipeline.source.table}: {said}"
    if code != REWRITTEN:
        return StateRefused(code, f"{where}; {advice(pipeline)}")
    which = rewrites(spark, pipeline, past)
    feed = "`source.changes: feed` counts their event times again where the source has recorded its change feed"
    return StateRefused(code, f"{where}{f': {which}' if which else ''}; {feed}; {advice(pipeline)}")


def rewrites(spark: SparkSession, pipeline: Pipeline, past: Story) -> str:
    """The commits not read yet that took away rows, with the event times they may be of: version 3 (UPDATE, 10:00 to 11:00), ..."""
    new = commits(
        spark, pipeline, past.next_version or 0, delta.version(spark, pipeline.source.table)
    )
    found = [c for c in new if c is not None and c.rewrites]
    times = {
        c.version: f", {instant(c.low)} to {instant(c.high)}" if c.low and c.high else ""
        for c in found
    }
    return ", ".join(f"version {c.version} ({c.operation}{times[c.version]})" for c in found)
