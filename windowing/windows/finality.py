"""Which rows of an output are closed, final or expired by a watermark."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windowing.columns import CLOSED_BY, END
from windowing.grid.frame import instant
from windowing.rows import is_true
from windowing.spec.description import describe_window
from windowing.spec.pipeline import Pipeline


def with_finality(
    rows: DataFrame,
    pipeline: Pipeline,
    window: str,
    watermark: int | None,
    whole: DataFrame | None,
) -> DataFrame:
    """Adds `is_closed` and `is_final` for rows that were written at `watermark`.

    `watermark` is in microseconds; None is minus infinity. Count, delta and punctuation windows are
    final only when complete, which `whole`, the table of all their windows, records.
    """
    described = describe_window(pipeline.window(window))
    lateness = pipeline.watermark.allowed_lateness_us
    never = F.lit(False)
    if watermark is None:
        return rows.withColumns({"is_closed": never, "is_final": never})
    closed = is_true(F.col(END) <= instant(watermark))
    finality = described.finality
    if lateness is None or finality is None:
        return rows.withColumns({"is_closed": closed, "is_final": never})
    names = list(rows.columns)
    if described.closed_by_event and whole is not None:
        ids = [*pipeline.source.key, *described.identity]
        rows = rows.join(whole.select(*ids, CLOSED_BY), ids, "left")
    unchanged_since = F.unix_micros(finality.column) + F.lit(finality.after_us)
    # A window without that time can still change, and null is not final.
    final_since = unchanged_since + F.lit(lateness)
    final = is_true(final_since <= F.lit(watermark))
    marked = rows.withColumns({"is_closed": closed, "is_final": final})
    return marked.select(*names, "is_closed", "is_final")


def is_expired(pipeline: Pipeline, watermark_us: int | None) -> Column:
    """True for rows of a grid window that `retention.output` does not keep at this watermark.

    The watermark is in microseconds; None is minus infinity.
    """
    kept_us = pipeline.retention.output_us
    if kept_us is None or watermark_us is None:
        return F.lit(False)
    return F.col(END) <= instant(watermark_us - kept_us)
