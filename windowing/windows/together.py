"""Windows that are computed in one pass: a row says which of them it is about.

    panes[key, pane_start]  ->  [key, pane_start, __window]    for each window a row
    CASE __window WHEN 0 THEN ... WHEN 1 THEN ... END          what differs between the windows

A window alone needs neither the column nor the copies of rows.
"""

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windowing.columns import WINDOW
from windowing.spec.kinds import Aligned


def identify(keys: Sequence[str], windows: Sequence[Aligned]) -> tuple[str, ...]:
    """The columns within which rows belong together: the keys, and the window if it is not alone.

    >>> identify(["key"], [])
    ('key', '__window')
    """
    return tuple(keys) if len(windows) == 1 else (*keys, WINDOW)


def spread(rows: DataFrame, windows: Sequence[Aligned], places: Sequence[int]) -> DataFrame:
    """A copy of each row for each of the windows at `places`; the rows alone for a single window.

    rows -> rows + [__window]
    """
    if len(windows) == 1:
        return rows
    numbers = ", ".join(map(str, places))
    return rows.withColumn(WINDOW, F.expr(f"explode(array({numbers}))"))


def add_chosen(
    rows: DataFrame, windows: Sequence[Aligned], **columns_of: Callable[[Aligned], Column]
) -> DataFrame:
    """`rows` and more columns: what the function of each name makes of the window of a row."""
    if len(windows) == 1:
        return rows.withColumns({name: of(windows[0]) for name, of in columns_of.items()})
    chosen = [choose(windows, of).alias(name) for name, of in columns_of.items()]
    # Spark computes a column of a generator once. It would repeat a plain expression of a hundred
    # terms wherever the column is used, until the code of a query is too long to be compiled.
    return rows.select("*", F.inline(F.array(F.struct(*chosen))))


def choose(windows: Sequence[Aligned], column_of: Callable[[Aligned], Column]) -> Column:
    """For each row what `column_of` makes of its window."""
    first, *others = windows
    if not others:
        return column_of(first)
    # A row without a branch of its own is one of the last window.
    chosen = F.when(F.col(WINDOW) == 0, column_of(first))
    for place, window in enumerate(others[:-1], 1):
        chosen = chosen.when(F.col(WINDOW) == place, column_of(window))
    return chosen.otherwise(column_of(others[-1]))
