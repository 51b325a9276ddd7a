"""Reading an output: the version that was published, or the newest, with what the watermark says of each row."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windowing import delta
from windowing.columns import END
from windowing.errors import UsageError
from windowing.grid.zone import moment
from windowing.ledger.rule import Story
from windowing.ledger.table import story
from windowing.spec.pipeline import Pipeline, Session


def read(spark: SparkSession, pipeline: Pipeline, window: str, published: bool = True) -> DataFrame:  # noqa: FBT001, FBT002 (fixed by contract)
    """The rows of one output with `is_closed` (W has passed its end) and `is_final` (nothing can change it but a backfill).

    `published` reads the versions that passed their expectations, otherwise the newest. UsageError for a window the pipeline lacks,
    before the first run, and before anything was published.
    """
    past = story(spark, pipeline)
    rows = _rows(spark, pipeline, window, _version(pipeline, past, window) if published else None)
    as_of = past.watermark_of(past.published.run) if published and past.published else past.watermark
    return with_finality(rows, pipeline, window, as_of)


def with_finality(rows: DataFrame, pipeline: Pipeline, window: str, watermark: int | None) -> DataFrame:
    """Adds `is_closed` and `is_final` for rows that were written when W stood at `watermark` (microseconds; None: minus infinity)."""
    lateness = pipeline.watermark.allowed_lateness_us
    if watermark is None:
        return rows.withColumns({"is_closed": F.lit(False), "is_final": F.lit(False)})
    found = pipeline.window(window)
    extra = found.gap_us if isinstance(found, Session) else 0
    closed = F.col(END) <= F.lit(moment(watermark))
    final = F.lit(False) if lateness is None else F.unix_micros(END) + F.lit(extra + lateness) <= F.lit(watermark)
    return rows.withColumns({"is_closed": closed, "is_final": final})


def _rows(spark: SparkSession, pipeline: Pipeline, window: str, version: int | None) -> DataFrame:
    if window not in [w.name for w in pipeline.windows]:
        raise UsageError(f"{pipeline.name} has no window {window!r}; it has {', '.join(w.name for w in pipeline.windows)}")
    if not delta.exists(spark, pipeline.table(window)):
        raise UsageError(f"{pipeline.name} has not run yet, so {window} has no table; `tidemark run` first")
    return delta.read(spark, pipeline.table(window), version)


def _version(pipeline: Pipeline, past: Story, window: str) -> int:
    if past.published is None or window not in past.published.versions:
        raise UsageError(f"{pipeline.name}: nothing has been published yet; `tidemark validate` and `tidemark publish` first")
    return past.published.versions[window]
