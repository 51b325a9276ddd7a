"""Which rows of an output are closed and which are final, by the watermark they were written at."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windowing.columns import CLOSED_BY, END, INDEX, LAST
from windowing.grid.frame import instant
from windowing.spec.kinds import Chained, Counted, Global, Window
from windowing.spec.pipeline import Pipeline


def with_finality(
    rows: DataFrame,
    pipeline: Pipeline,
    window: str,
    watermark: int | None,
    whole: DataFrame | None = None,
) -> DataFrame:
    """Adds `is_closed` and `is_final` for rows that were written when W stood at `watermark` (microseconds; None: minus infinity).

    Count, delta and punctuation windows are final only when complete, which `whole`, the table of all their windows, says.
    """
    lateness, found = pipeline.watermark.allowed_lateness_us, pipeline.window(window)
    if watermark is None:
        return rows.withColumns({"is_closed": F.lit(False), "is_final": F.lit(False)})
    by, names = instant(watermark), list(rows.columns)
    closed = F.coalesce(F.col(END) <= by, F.lit(False))
    if lateness is None or isinstance(found, Global):
        return rows.withColumns({"is_closed": closed, "is_final": F.lit(False)})
    last = _settled(found)
    if isinstance(found, Counted) and whole is not None:
        ids = [*pipeline.source.key, INDEX]
        rows = rows.join(whole.select(*ids, CLOSED_BY), ids, "left")
    final = F.coalesce(last + F.lit(lateness) <= F.lit(watermark), F.lit(False))
    return rows.withColumns({"is_closed": closed, "is_final": final}).select(
        *names, "is_closed", "is_final"
    )


def _settled(window: Window) -> Column:
    """The watermark, less the allowed lateness, from which on no event can change a row."""
    if isinstance(window, Chained):
        return F.unix_micros(LAST) + F.lit(2 * window.gap_us)
    return (
        F.unix_micros(CLOSED_BY) + F.lit(1) if isinstance(window, Counted) else F.unix_micros(END)
    )
