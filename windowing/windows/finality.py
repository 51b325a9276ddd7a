"""Which rows of an output are closed and which are final, by the watermark at their run."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windowing.columns import CLOSED_BY, END, INDEX, LAST
from windowing.grid.frame import instant
from windowing.spec.kinds import AnySession, EventDriven, Global, Window
from windowing.spec.pipeline import Pipeline


def with_finality(
    rows: DataFrame,
    pipeline: Pipeline,
    window: str,
    watermark: int | None,
    whole: DataFrame | None = None,
) -> DataFrame:
    """Adds `is_closed` and `is_final` for rows that were written at `watermark`.

    `watermark` is in microseconds; None is minus infinity. Count, delta and punctuation windows are
    final only when complete, which `whole`, the table of all their windows, records.
    """
    found = pipeline.window(window)
    lateness = pipeline.watermark.allowed_lateness_us
    never = F.lit(False)
    if watermark is None:
        return rows.withColumns({"is_closed": never, "is_final": never})
    closed = F.coalesce(F.col(END) <= instant(watermark), F.lit(False))
    if lateness is None or isinstance(found, Global):
        return rows.withColumns({"is_closed": closed, "is_final": never})
    names = list(rows.columns)
    last_change = _last_change(found)
    if isinstance(found, EventDriven) and whole is not None:
        ids = [*pipeline.source.key, INDEX]
        rows = rows.join(whole.select(*ids, CLOSED_BY), ids, "left")
    # A window that is not complete has no time of its last change, and null is not final.
    final = F.coalesce(last_change + F.lit(lateness) <= F.lit(watermark), F.lit(False))
    marked = rows.withColumns({"is_closed": closed, "is_final": final})
    return marked.select(*names, "is_closed", "is_final")


def _last_change(window: Window) -> Column:
    """The watermark, less the allowed lateness, from which on no event can change a row."""
    if isinstance(window, AnySession):
        return F.unix_micros(LAST) + F.lit(2 * window.gap_us)
    if isinstance(window, EventDriven):
        return F.unix_micros(CLOSED_BY) + F.lit(1)
    return F.unix_micros(END)
