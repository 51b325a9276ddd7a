"""Reading an output: the version that was published, or the newest, with what the watermark says of each row."""

from collections.abc import Mapping

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from windowing import delta
from windowing.errors import UsageError
from windowing.ledger.rule import Entry, Story
from windowing.ledger.table import story
from windowing.merge.rule import complete
from windowing.spec.kinds import Counted
from windowing.spec.pipeline import Pipeline
from windowing.windows.finality import with_finality


def read(spark: SparkSession, pipeline: Pipeline, window: str, published: bool = True) -> DataFrame:  # noqa: FBT001, FBT002 (fixed by contract)
    """The rows of one output with `is_closed` (W has passed its end) and `is_final` (nothing can change it but a backfill).

    `published` reads the versions that passed their expectations, otherwise the newest. UsageError for a window the pipeline lacks,
    before the first run, before anything was published, and where its version is gone.
    """
    past = story(spark, pipeline)
    if not published:
        return newest(spark, pipeline, window, past)
    entry = _published(pipeline, past, window)
    try:
        rows, whole = (
            _rows(spark, pipeline, window, entry.versions[window]),
            whole_of(spark, pipeline, window, entry.versions),
        )
    except AnalysisException as error:
        gone = f"what was published of {window} is not kept any more: {delta.reason(error)}"
        raise UsageError(
            f"{pipeline.name}: {gone}; `tidemark validate` and `tidemark publish` what is newest"
        ) from error
    return with_finality(rows, pipeline, window, past.watermark_of(entry.run), whole)


def newest(spark: SparkSession, pipeline: Pipeline, window: str, past: Story) -> DataFrame:
    """What `read` gives of the newest version, for whoever has read the ledger already."""
    rows = _rows(spark, pipeline, window, None)
    return with_finality(
        rows, pipeline, window, past.watermark, whole_of(spark, pipeline, window, None)
    )


def whole_of(
    spark: SparkSession, pipeline: Pipeline, window: str, versions: Mapping[str, int] | None
) -> DataFrame | None:
    """The table of all windows of a kind whose finality it says, as of `versions` (None: newest)."""
    if not isinstance(pipeline.window(window), Counted):
        return None
    path = complete(pipeline, pipeline.window(window)).path
    name = path.removeprefix(f"{pipeline.root}/")
    return delta.read(spark, path, None if versions is None else versions.get(name))


def _rows(spark: SparkSession, pipeline: Pipeline, window: str, version: int | None) -> DataFrame:
    if window not in [w.name for w in pipeline.windows]:
        raise UsageError(
            f"{pipeline.name} has no window {window!r}; it has {', '.join(w.name for w in pipeline.windows)}"
        )
    if not delta.exists(spark, pipeline.table(window)):
        raise UsageError(
            f"{pipeline.name} has not run yet, so {window} has no table; `tidemark run` first"
        )
    return delta.read(spark, pipeline.table(window), version)


def _published(pipeline: Pipeline, past: Story, window: str) -> Entry:
    if past.published is None or window not in past.published.versions:
        raise UsageError(
            f"{pipeline.name}: nothing has been published yet; `tidemark validate` and `tidemark publish` first"
        )
    return past.published
