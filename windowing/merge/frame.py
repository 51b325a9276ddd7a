"""Computes what to write to the tables of a window, without rows that are unchanged.

windows[key, start, end, parts] -> rows[key, start, end, values] -> changes[op, row]
"""

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.aggregates.algebra import FRACTIONS, Algebra
from windowing.columns import DELETE, INSERT, OP, REVISION, START, UPDATE
from windowing.expressions.exact_decimals import exactly, round_number
from windowing.merge.rule import Shape
from windowing.rows import column_named, is_true
from windowing.spec.kinds import Having

LOST = "L"
"""What is done with a row that is only counted, because it is stored already or not shown."""
OVERFLOW = "__overflow"
HIDDEN = "__hidden"
"""True for a row that is not shown, and is only kept because a sum of it is lost."""
BEGUN = "__begun"
"""Where the stored row begins or, if there is none, where the new one begins."""
_ROUNDING = 1e-9
"""Sums of doubles in two orders are no further apart, as a part of the larger one."""
_OPERATORS = {
    "=": Column.__eq__,
    "!=": Column.__ne__,
    "<": Column.__lt__,
    "<=": Column.__le__,
    ">": Column.__gt__,
    ">=": Column.__ge__,
}


def lower_partials(
    merged: DataFrame, columns: Sequence[str], algebras: Mapping[str, Algebra]
) -> DataFrame:
    """Lowers partial aggregates to the values that users see, by the algebras by their names.

    [columns, parts] -> [columns, aggregates, __overflow], and the bounds of those that have any,
    for a comparison with what is stored.
    """
    values = []
    bounds = []
    overflows = []
    for name, algebra in algebras.items():
        values.append(algebra.lower.alias(name))
        if algebra.near is not None:
            bounds.append(algebra.near.low.alias(_name_low(name)))
            bounds.append(algebra.near.high.alias(_name_high(name)))
        if algebra.overflow is not None:
            overflows.append(algebra.overflow)
    any_overflow = reduce(or_, overflows) if overflows else F.lit(False)
    overflow = is_true(any_overflow).alias(OVERFLOW)
    return merged.select(*columns, *values, overflow, *bounds)


def filter_having(rows: DataFrame, having: Having | None) -> DataFrame:
    """The rows whose aggregate compares as `having` requires; null does not."""
    if having is None:
        return rows
    return rows.where(_qualifies(rows, having))


def hide_by_having(rows: DataFrame, having: Having | None) -> DataFrame:
    """`filter_having` of rows that were lowered: also keeps those of which a sum is lost.

    Such a sum is null, so its row may not qualify, and nothing else would count it. The column
    `__hidden` is true for rows that do not qualify: [row, overflow] -> [row, overflow, hidden].
    Without `having` there is no such column.
    """
    if having is None:
        return rows
    hidden = ~is_true(_qualifies(rows, having))
    marked = rows.withColumn(HIDDEN, hidden)
    return marked.where(~F.col(HIDDEN) | F.col(OVERFLOW))


def _qualifies(rows: DataFrame, having: Having) -> Column:
    """Whether the aggregate of a row compares as `having` requires; may be null."""
    kind = rows.schema[having.aggregate].dataType
    value = column_named(having.aggregate)
    compare = _OPERATORS[having.operator]
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return compare(value, F.lit(having.number).cast("double"))
    number = Decimal(having.number)
    places = kind.scale if isinstance(kind, T.DecimalType) else 0
    needs_equality = having.operator in ("=", "!=")
    if needs_equality and number != round_number(number, places, ROUND_FLOOR):
        # No value with so few places equals the number.
        return value.isNotNull() & F.lit(having.operator == "!=")
    # Spark rounds both sides where 38 digits can't have the whole part of one and the places of
    # the other. So the number is rounded first, to the side on which each value compares as before.
    direction = ROUND_FLOOR if having.operator in (">", "<=") else ROUND_CEILING
    return compare(value, exactly(number, places, direction))


def keep_differing(
    points: DataFrame, group: Sequence[str], order: Sequence[str], shown: Sequence[str], before: str
) -> DataFrame:
    """The rows of `points` that differ in some `shown` column from the row before them.

    Rows are compared within a `group`, in `order`. Rows marked `before` are only compared with, and
    are not returned.
    """
    ordered = Window.partitionBy(*group).orderBy(*order)
    same = []
    for name in shown:
        value_before = F.lag(f"`{name}`").over(ordered)
        same.append(column_named(name).eqNullSafe(value_before))
    marked = points.withColumn("__same", reduce(and_, same))
    return marked.where(~F.col("__same") & ~F.col(before)).drop("__same")


def compute_corrections(new: DataFrame, stored: DataFrame, shape: Shape) -> DataFrame:
    """The rows to insert or update so that `stored` contains `new`.

    Unchanged rows are left out, unless a sum of theirs is lost.

    -> [op, row, revision, begun, overflow]
    """
    return _compare_with_stored(new, stored, shape, "left")


def compute_replacements(new: DataFrame, stored: DataFrame, shape: Shape) -> DataFrame:
    """`compute_corrections`, and the rows of `stored` that are not in `new`, to delete.

    A deleted row has its old values.
    """
    return _compare_with_stored(new, stored, shape, "full_outer")


def _compare_with_stored(new: DataFrame, stored: DataFrame, shape: Shape, how: str) -> DataFrame:
    """What to do with each row of both frames, which are joined on their identity.

    A hidden row of `new` is none that is stored: it is only counted.
    """
    identity = list(shape.identity)
    compared = [name for name in shape.shown if name not in shape.identity]
    old_values = [column_named(name).alias(f"__old_{name}") for name in compared]
    old_revision = F.col(REVISION).alias("__old")
    old = stored.select(*identity, *old_values, old_revision, F.lit(True).alias("__was"))
    joined = new.withColumn("__is", ~is_hidden(new)).join(old, identity, how)
    # Names alone are quicker to ask for than types.
    has_near = any(_name_low(name) in new.columns for name in compared)
    both = _keep_near_values(joined, compared, new) if has_near else joined
    is_shown = is_true(F.col("__is"))
    op = (
        F.when(F.col("__was").isNull(), F.when(is_shown, INSERT).otherwise(LOST))
        .when(~is_shown, DELETE)
        .when(_values_differ(compared), UPDATE)
        .when(F.col(OVERFLOW), LOST)
    )
    values = [_new_or_old_value(name) for name in compared]
    revision = F.coalesce(F.col("__old") + 1, F.lit(0)).cast("bigint").alias(REVISION)
    # Where the start is part of the identity, the join has one column for both rows.
    old_start = f"__old_{START}" if START in compared else START
    begun = F.coalesce(old_start, START).alias(BEGUN)
    lost = is_true(F.col(OVERFLOW)).alias(OVERFLOW)
    rows = both.select(op.alias(OP), *map(F.col, identity), *values, revision, begun, lost)
    return rows.where(F.col(OP).isNotNull())


def _keep_near_values(both: DataFrame, compared: Sequence[str], new: DataFrame) -> DataFrame:
    """`both`, with the stored value in place of a new one that is as good, where all else is equal.

    `new` are the new rows among `both`.
    """
    types = {field.name: field.dataType for field in new.schema.fields}
    drawn = [name for name in compared if _name_low(name) in types]
    others = {name: types[name] for name in compared if name not in drawn}
    differs = _differs_beyond_rounding(others)
    kept = {}
    for name in drawn:
        stored = F.col(f"`__old_{name}`")
        is_near = stored.between(column_named(_name_low(name)), column_named(_name_high(name)))
        kept[name] = F.when(is_near & ~differs, stored).otherwise(column_named(name))
    return both.withColumns(kept)


def _differs_beyond_rounding(columns: Mapping[str, T.DataType]) -> Column:
    """True where a new value is not the stored one, nor a double that was summed in another order.

    `columns` have the types by name.
    """
    differs = F.lit(False)
    for name, kind in columns.items():
        new, old = column_named(name), F.col(f"`__old_{name}`")
        unequal = ~new.eqNullSafe(old)
        if isinstance(kind, FRACTIONS):
            apart = F.abs(new - old) > _ROUNDING * F.greatest(F.abs(new), F.abs(old))
            unequal = unequal & F.coalesce(apart, F.lit(True))
        differs = differs | unequal
    return differs


def _name_low(name: str) -> str:
    return f"__low_{name}"


def _name_high(name: str) -> str:
    return f"__high_{name}"


def _new_or_old_value(name: str) -> Column:
    """The new value of a column; the stored one for a row to delete, which has no new one."""
    is_new = F.col("__is")
    return F.when(is_new, column_named(name)).otherwise(F.col(f"`__old_{name}`")).alias(name)


def compute_inserts(new: DataFrame, shape: Shape) -> DataFrame:
    """The rows of a table that has no row yet, and whether a sum of theirs is lost.

    -> [row, revision, overflow], and hidden where `new` has it
    """
    revision = F.lit(0).cast("bigint").alias(REVISION)
    hidden = [HIDDEN] if HIDDEN in new.columns else []
    return new.select(*shape.shown, revision, OVERFLOW, *hidden)


def mark_inserts(inserts: DataFrame) -> DataFrame:
    """What `compute_inserts` returns in the form of `compute_corrections`."""
    op = F.when(is_hidden(inserts), LOST).otherwise(INSERT)
    return inserts.withColumns({OP: op, BEGUN: F.col(START)}).drop(HIDDEN)


def is_hidden(rows: DataFrame) -> Column:
    """True for the rows that `hide_by_having` has marked as hidden."""
    return F.col(HIDDEN) if HIDDEN in rows.columns else F.lit(False)


def _values_differ(columns: Sequence[str]) -> Column:
    """True where a new value of `columns` is not the stored one; null equals null."""
    same = [column_named(name).eqNullSafe(F.col(f"`__old_{name}`")) for name in columns]
    if not same:
        return F.lit(False)
    return ~reduce(and_, same)
