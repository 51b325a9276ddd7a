"""Computes what to write to the tables of a window, without rows that are unchanged.

windows[key, start, end, parts] -> rows[key, start, end, values] -> changes[op, row]
"""

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.aggregates.algebra import Algebra
from windowing.columns import OP, REVISION, START
from windowing.expressions.exact_decimals import exactly, rounded
from windowing.merge.rule import Target
from windowing.spec.kinds import Aggregate, Having

INSERT, UPDATE, DELETE, LOST = "I", "U", "D", "L"
"""What is done with a row. A lost one is only counted, because it is stored already."""
OVERFLOW = "__overflow"
BEGUN = "__begun"
"""Where the stored row begins or, if there is none, where the new one begins."""
_OPERATORS = {
    "=": Column.__eq__,
    "!=": Column.__ne__,
    "<": Column.__lt__,
    "<=": Column.__le__,
    ">": Column.__gt__,
    ">=": Column.__ge__,
}


def lower_partials(
    merged: DataFrame,
    columns: Sequence[str],
    aggregates: Sequence[Aggregate],
    algebras: Mapping[str, Algebra],
) -> DataFrame:
    """Lowers partial aggregates to the values that users see.

    [columns, parts] -> [columns, aggregates, __overflow]
    """
    lowered = [algebras[a.name].lower.alias(a.name) for a in aggregates]
    lost = [o for a in aggregates if (o := algebras[a.name].overflow) is not None]
    overflow = reduce(lambda x, y: x | y, lost) if lost else F.lit(False)
    return merged.select(*columns, *lowered, F.coalesce(overflow, F.lit(False)).alias(OVERFLOW))


def filter_having(rows: DataFrame, having: Having | None) -> DataFrame:
    """The rows whose aggregate compares as `having` requires; null does not."""
    if having is None:
        return rows
    kind, value, compares = (
        rows.schema[having.aggregate].dataType,
        F.col(f"`{having.aggregate}`"),
        _OPERATORS[having.operator],
    )
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return rows.where(compares(value, F.lit(having.number).cast("double")))
    number, places = Decimal(having.number), kind.scale if isinstance(kind, T.DecimalType) else 0
    if having.operator in ("=", "!=") and number != rounded(number, places, ROUND_FLOOR):
        return rows.where(value.isNotNull() & F.lit(having.operator == "!="))
    return rows.where(
        compares(
            value,
            exactly(
                number, places, ROUND_FLOOR if having.operator in (">", "<=") else ROUND_CEILING
            ),
        )
    )


def keep_differing(
    points: DataFrame, group: Sequence[str], order: Sequence[str], shown: Sequence[str], before: str
) -> DataFrame:
    """The rows of `points` that differ in some `shown` column from the row before them.

    Rows are compared within a `group`, in `order`. Rows marked `before` are only compared with, and
    are not returned.
    """
    ordered = Window.partitionBy(*group).orderBy(*order)
    same = [F.col(f"`{c}`").eqNullSafe(F.lag(f"`{c}`").over(ordered)) for c in shown]
    marked = points.withColumn("__same", reduce(lambda x, y: x & y, same))
    return marked.where(~F.col("__same") & ~F.col(before)).drop("__same")


def compute_corrections(new: DataFrame, stored: DataFrame, target: Target) -> DataFrame:
    """The rows to insert or update so that `stored` contains `new`.

    Unchanged rows are left out, unless a sum of theirs is lost.

    -> [op, row, revision, begun, overflow]
    """
    return _compared(new, stored, target, "left")


def compute_replacements(new: DataFrame, stored: DataFrame, target: Target) -> DataFrame:
    """`compute_corrections`, and the rows of `stored` that are not in `new`, to delete.

    A deleted row has its old values.
    """
    return _compared(new, stored, target, "full_outer")


def _compared(new: DataFrame, stored: DataFrame, target: Target, how: str) -> DataFrame:
    ids, rest = list(target.identity), [c for c in target.shown if c not in target.identity]
    kept = [F.col(f"`{c}`").alias(f"__old_{c}") for c in rest]
    old = stored.select(*ids, *kept, F.col(REVISION).alias("__old"), F.lit(True).alias("__was"))
    both = new.withColumn("__is", F.lit(True)).join(old, ids, how)
    op = (
        F.when(F.col("__was").isNull(), INSERT)
        .when(F.col("__is").isNull(), DELETE)
        .when(_differs(rest), UPDATE)
    )
    op = op.when(F.col(OVERFLOW), LOST)
    row = [
        *map(F.col, ids),
        *(
            F.when(F.col("__is"), F.col(f"`{c}`")).otherwise(F.col(f"`__old_{c}`")).alias(c)
            for c in rest
        ),
    ]
    revision = F.coalesce(F.col("__old") + 1, F.lit(0)).cast("bigint").alias(REVISION)
    begun = F.coalesce(f"__old_{START}" if START in rest else START, START).alias(BEGUN)
    lost = F.coalesce(OVERFLOW, F.lit(False)).alias(OVERFLOW)
    return both.select(op.alias(OP), *row, revision, begun, lost).where(F.col(OP).isNotNull())


def compute_inserts(new: DataFrame, target: Target) -> DataFrame:
    """`compute_corrections` against an empty table."""
    return new.select(
        F.lit(INSERT).alias(OP),
        *target.shown,
        F.lit(0).cast("bigint").alias(REVISION),
        F.col(START).alias(BEGUN),
        OVERFLOW,
    )


def _differs(columns: Sequence[str]) -> Column:
    same = [F.col(f"`{c}`").eqNullSafe(F.col(f"`__old_{c}`")) for c in columns]
    return ~reduce(lambda x, y: x & y, same) if same else F.lit(False)
