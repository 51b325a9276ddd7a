"""Reads an output, published or newest, and derives which of its rows are closed or final."""

from collections.abc import Callable, Mapping
from functools import partial

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from jobs.diagnosis.diagnose import refusal_of
from jobs.diagnosis.spec_changes import check_columns
from jobs.foreign_errors.control_errors import control_errors_explained
from windowing.doctor.rule import of_tables
from windowing.errors import UsageError
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import LedgerEntry
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.merge.rule import complete_table
from windowing.spec.description import describe_window
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta
from windowing.storage.kept_open import has_commit, newest_version
from windowing.windows.finality import with_finality


def read(
    spark: SparkSession,
    pipeline: Pipeline,
    window: str,
    published: bool = True,  # noqa: FBT001, FBT002 (fixed by contract)
) -> DataFrame:
    """The rows of one output, with `is_closed` and `is_final`.

    A window is closed when the watermark has reached its end, and final when only a backfill can
    still change it. `published` reads the version that was validated and published, otherwise the
    newest. Raises UsageError for a window that the pipeline doesn't have, before the first run,
    before anything was published, and where the published version has been removed; StateRefused
    where the ledger is damaged, the table was lost, or another spec has made the output.
    """
    with control_errors_explained(pipeline):
        past = read_history(pipeline)
    if not published:
        return newest(spark, pipeline, window, past)
    _check_output(pipeline, window, past)
    entry = published_entry(pipeline, past, window)
    try:
        rows = _read_version(spark, pipeline.table(window), entry.versions[window])
        complete_rows = whole_of(spark, pipeline, window, entry.versions)
    except AnalysisException as error:
        raise UsageError(
            f"{pipeline.name}: the published version of {window} has been removed: "
            f"{delta.reason(error)}; run `tidemark validate`, then `tidemark publish`"
        ) from error
    check_columns(pipeline, past, pipeline.window(window), rows.columns)
    return with_finality(
        rows, pipeline, window, past.watermark_of(past.run_shown(window)), complete_rows
    )


def newest(spark: SparkSession, pipeline: Pipeline, window: str, past: LedgerHistory) -> DataFrame:
    """What `read` returns of the newest version, for a caller that has read the ledger already."""
    _check_output(pipeline, window, past)
    return newest_by(partial(_read_version, spark, version=None), pipeline, window, past)


def newest_by(
    reads: Callable[[Location], DataFrame], pipeline: Pipeline, window: str, past: LedgerHistory
) -> DataFrame:
    """`newest` of an output that exists; `reads` gives the newest rows of the table at a path."""
    rows = reads(pipeline.table(window))
    check_columns(pipeline, past, pipeline.window(window), rows.columns)
    complete = _complete_path(pipeline, window)
    complete_rows = None if complete is None else reads(complete)
    return with_finality(rows, pipeline, window, past.watermark, complete_rows)


def whole_of(
    spark: SparkSession, pipeline: Pipeline, window: str, versions: Mapping[str, int] | None
) -> DataFrame | None:
    """The complete table of a window whose finality needs it, as of `versions` (None: newest).

    None for other kinds, whose finality follows from the rows of the output alone.
    """
    path = _complete_path(pipeline, window)
    if path is None:
        return None
    return _read_version(spark, path, None if versions is None else versions.get(path.name))


def _complete_path(pipeline: Pipeline, window: str) -> Location | None:
    """Where the complete table of a window lies whose finality needs it; None for other kinds."""
    declared = pipeline.window(window)
    if not describe_window(declared).closed_by_event:
        return None
    return complete_table(pipeline, declared).path


def explain_missing(pipeline: Pipeline, window: str, past: LedgerHistory) -> str | None:
    """Why no run has made the table of an output yet; None where there is one.

    Raises StateRefused where the table was lost.
    """
    if has_commit(pipeline.table(window)):
        return None
    if not past.entries:
        return "there is no run yet"
    if window in past.versions:
        for lost in of_tables({window: past.versions[window]}, {}, {}):
            raise refusal_of(pipeline, lost)
    return f"{window} is new in the spec, and the next run fills it"


def _check_output(pipeline: Pipeline, window: str, past: LedgerHistory) -> None:
    names = [w.name for w in pipeline.windows]
    if window not in names:
        raise UsageError(f"{pipeline.name} has no window {window!r}; it has {', '.join(names)}")
    missing = explain_missing(pipeline, window, past)
    if missing is not None:
        raise UsageError(
            f"{pipeline.name}: {window} has no table, because {missing}; `tidemark run` first"
        )


def _read_version(spark: SparkSession, path: Location, version: int | None) -> DataFrame:
    """A version of a table; the newest one for None, also where Delta may read an older one.

    The caller's session may have `spark.databricks.delta.stalenessLimit`.
    """
    return delta.read(spark, path, newest_version(path) if version is None else version)


def published_entry(pipeline: Pipeline, past: LedgerHistory, window: str) -> LedgerEntry:
    """The newest publication, which names the output; UsageError where readers see none of it."""
    if past.published is None or window not in past.published.versions:
        raise UsageError(
            f"{pipeline.name}: {window} has not been published yet; "
            "run `tidemark validate`, then `tidemark publish`"
        )
    return past.published
