"""What to write: windows[key, start, end, parts] -> rows[key, start, end, values] -> changes[op, row], unchanged rows left out."""

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windowing.columns import END, LAST, OP, REVISION, RUN, START
from windowing.panes.algebra import Algebra
from windowing.spec.pipeline import Session, Window

INSERT, UPDATE, DELETE = "I", "U", "D"
OVERFLOW = "__overflow"


def identity(window: Window, keys: Sequence[str]) -> list[str]:
    """The columns that tell one row of an output from another."""
    return [*keys, START] if isinstance(window, Session) else [*keys, START, END]


def bounds(window: Window) -> list[str]:
    """The time columns of an output."""
    return [START, END, LAST] if isinstance(window, Session) else [START, END]


def values(merged: DataFrame, window: Window, keys: Sequence[str], algebras: Mapping[str, Algebra]) -> DataFrame:
    """Lowers partials to what users see. [keys, bounds, parts] -> [keys, bounds, aggregates, __overflow]."""
    lowered = [algebras[a.name].lower.alias(a.name) for a in window.aggregates]
    lost = [o for a in window.aggregates if (o := algebras[a.name].overflow) is not None]
    overflow = reduce(lambda x, y: x | y, lost) if lost else F.lit(False)
    return merged.select(*keys, *bounds(window), *lowered, F.coalesce(overflow, F.lit(False)).alias(OVERFLOW))


def corrections(new: DataFrame, stored: DataFrame, window: Window, keys: Sequence[str]) -> DataFrame:
    """The rows to insert or update so that `stored` holds `new`: [op, keys, bounds, aggregates, revision]; unchanged rows are left out."""
    return _compared(new, stored, window, keys, "left")


def replacements(new: DataFrame, stored: DataFrame, window: Window, keys: Sequence[str]) -> DataFrame:
    """`corrections`, and every row of `stored` that is not in `new` deleted; a deleted row carries its old values."""
    return _compared(new, stored, window, keys, "full_outer")


def _compared(new: DataFrame, stored: DataFrame, window: Window, keys: Sequence[str], how: str) -> DataFrame:
    ids, shown = identity(window, keys), [a.name for a in window.aggregates]
    rest = [c for c in bounds(window) if c not in ids] + shown
    old = stored.select(*ids, *(F.col(c).alias(f"__old_{c}") for c in rest), F.col(REVISION).alias("__old"), F.lit(True).alias("__was"))
    both = new.withColumn("__is", F.lit(True)).join(old, ids, how)
    op = F.when(F.col("__was").isNull(), INSERT).when(F.col("__is").isNull(), DELETE).when(_differs(rest), UPDATE)
    row: list[Column] = [*map(F.col, ids), *(F.when(F.col("__is"), F.col(c)).otherwise(F.col(f"__old_{c}")).alias(c) for c in rest)]
    revision = F.coalesce(F.col("__old") + 1, F.lit(0)).cast("bigint").alias(REVISION)
    return both.select(op.alias(OP), *row, revision, F.coalesce(OVERFLOW, F.lit(False)).alias(OVERFLOW)).where(F.col(OP).isNotNull())


def inserts(new: DataFrame, window: Window, keys: Sequence[str]) -> DataFrame:
    """`corrections` against an empty table."""
    shown = [*keys, *bounds(window), *(a.name for a in window.aggregates)]
    return new.select(F.lit(INSERT).alias(OP), *shown, F.lit(0).cast("bigint").alias(REVISION), OVERFLOW)


def output(window: Window, keys: Sequence[str]) -> list[str]:
    """The columns of an output table, in order."""
    return [*keys, *bounds(window), *(a.name for a in window.aggregates), REVISION, RUN]


def _differs(columns: Sequence[str]) -> Column:
    same = [F.col(c).eqNullSafe(F.col(f"__old_{c}")) for c in columns]
    return ~reduce(lambda x, y: x & y, same)
