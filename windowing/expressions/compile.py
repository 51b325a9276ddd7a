"""Checked expressions -> columns, built from the tree with functions of Spark; no text is ever executed. source[columns] -> column.

Nothing raises while rows are read: a division by zero, a number that is too large or a text that is none gives null. Whole numbers
count in 64 bits, times are in UTC, text compares by its bytes, and NaN equals itself and exceeds every number, as in Spark.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.errors import SpecError
from windowing.expressions.arithmetic import NUMBERS
from windowing.expressions.values import (
    DOUBLE,
    LONG,
    NULL,
    NUMBER,
    OTHER,
    TEXT,
    TIMES,
    TRUTH,
    Built,
    Unfit,
    Value,
    Values,
    common,
    comparable,
    constant,
    family,
    given,
    named,
    needed,
)
from windowing.spec.expressions.parse import printed, tree
from windowing.spec.expressions.tree import Call, Literal, Name, Node
from windowing.spec.kinds import Expression
from windowing.spec.words import shown


def column(expression: Expression, schema: T.StructType, field: str = "expression") -> Column:
    """The column of a checked expression over rows of `schema`; SpecError at `field` where types don't fit."""
    return _value(expression, schema, field).column


def condition(expression: Expression, schema: T.StructType, field: str) -> Column:
    """The same for an expression that is true, false or null."""
    value = _value(expression, schema, field)
    if value.kind != TRUTH:
        raise SpecError(field, f"{shown(str(value))} is no condition; write one such as delay > 60")
    return value.column


def checked(expression: Expression, schema: T.StructType, field: str) -> T.DataType:
    """The type of that column, exactly as Spark will have it."""
    return _value(expression, schema, field).kind


def _value(expression: Expression, schema: T.StructType, field: str) -> Value:
    try:
        value = _built(tree(expression), schema)
    except Unfit as unfit:
        raise SpecError(field, str(unfit)) from None
    if family(value.kind) in (NULL, OTHER):
        raise SpecError(
            field, f"{shown(str(value))} can't be used by itself; it is {family(value.kind)}"
        )
    return value


def _built(node: Node, schema: T.StructType) -> Value:
    if isinstance(node, Name):
        return named(node, schema)
    if isinstance(node, Literal):
        return constant(node)
    kind, built = _OPERATIONS[node.operation](node, [_built(a, schema) for a in node.arguments])
    return Value(node, kind, built)


def _logic(call: Call, values: Values) -> Built:
    needed("true or false", call, values)
    columns = [v.column for v in values]
    return TRUTH, ~columns[0] if call.operation == "not" else reduce(
        and_ if call.operation == "and" else or_, columns
    )


def _comparison(call: Call, values: Values) -> Built:
    if call.operation != "<=>":
        _without_null(call, values)
    left, right = comparable(call, values)
    return TRUTH, _COMPARISONS[call.operation](left, right)


def _without_null(call: Call, values: Values) -> None:
    if any(family(v.kind) == NULL for v in values):
        raise Unfit(
            f"{shown(printed(call))} compares with null, which is never true; write is null, is not null or <=>"
        )


def _among(call: Call, values: Values) -> Built:
    _without_null(call, values)
    subject, *others = comparable(call, values)
    return TRUTH, subject.isin(*others)


def _between(call: Call, values: Values) -> Built:
    _without_null(call, values)
    subject, low, high = comparable(call, values)
    return TRUTH, (subject >= low) & (subject <= high)


def _like(call: Call, values: Values) -> Built:
    needed("a text", call, values)
    return TRUTH, values[0].column.like(str(given(call.arguments[1])))


def _is_null(call: Call, values: Values) -> Built:
    return TRUTH, values[0].column.isNull()


def _choice(call: Call, values: Values) -> Built:
    kind, columns = common(call, values)
    return kind, _CHOICES[call.operation](*columns)


def _null_if(call: Call, values: Values) -> Built:
    _without_null(call, values)
    kind, (value, other) = common(call, values)
    return kind, F.when(value == other, F.lit(None).cast(kind)).otherwise(value)


def _if(call: Call, values: Values) -> Built:
    needed("true or false", call, values[:1])
    kind, (then, otherwise) = common(call, values[1:])
    return kind, F.when(values[0].column, then).otherwise(otherwise)


def _case(call: Call, values: Values) -> Built:
    needed("true or false", call, values[:-1:2])
    return _arms(call, [v.column for v in values[:-1:2]], [*values[1::2], values[-1]])


def _case_of(call: Call, values: Values) -> Built:
    compared = [values[0], *values[1:-1:2]]
    _without_null(call, compared)
    operand, *others = comparable(call, compared)
    return _arms(call, [operand == other for other in others], [*values[2::2], values[-1]])


def _arms(call: Call, conditions: Sequence[Column], values: Values) -> Built:
    kind, (*thens, otherwise) = common(call, values)
    (first, then), *others = zip(conditions, thens, strict=True)
    return kind, reduce(lambda chain, arm: chain.when(*arm), others, F.when(first, then)).otherwise(
        otherwise
    )


def _text(call: Call, values: Values) -> Built:
    needed("a text", call, values)
    return TEXT, _TEXTS[call.operation](*(v.column for v in values))


def _length(call: Call, values: Values) -> Built:
    needed("a text", call, values)
    return LONG, F.length(values[0].column).cast(LONG)


def _substring(call: Call, values: Values) -> Built:
    needed("a text", call, values[:1])
    kind, places = common(call, values[1:])
    if kind != LONG:
        raise Unfit(
            f"{shown(printed(call))} counts places in whole numbers, but {shown(str(values[-1]))} is none"
        )
    return TEXT, F.substr(values[0].column, *(place.try_cast("int") for place in places))


def _calendar(call: Call, values: Values) -> Built:
    needed(TIMES[:2] if call.operation == "hour" else TIMES, call, values)
    return LONG, _FIELDS[call.operation](values[0].column).cast(LONG)


def _cast(call: Call, values: Values) -> Built:
    kind = _CASTS.get(str(given(call.arguments[1]))) or T.DecimalType(
        *map(int, str(given(call.arguments[1]))[8:-1].split(","))
    )
    needed(
        (NUMBER, "a text", "true or false", NULL, *(TIMES if kind == TEXT else ())),
        call,
        values[:1],
    )
    return kind, values[0].column.try_cast(kind)


_CASTS: dict[str, T.DataType] = {"bigint": LONG, "double": DOUBLE, "string": TEXT}
_COMPARISONS: dict[str, Callable[[Column, Column], Column]] = {
    "=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge, "<=>": lambda left, right: left.eqNullSafe(right),
}  # fmt: skip
_CHOICES: dict[str, Callable[..., Column]] = {
    "coalesce": F.coalesce,
    "least": F.least,
    "greatest": F.greatest,
}
_TEXTS: dict[str, Callable[..., Column]] = {
    "lower": F.lower, "upper": F.upper, "trim": F.trim, "concat": F.concat, "replace": F.replace,
}  # fmt: skip
_FIELDS: dict[str, Callable[[Column], Column]] = {
    "year": F.year,
    "month": F.month,
    "day": F.day,
    "hour": F.hour,
}
_OPERATIONS: dict[str, Callable[[Call, Values], Built]] = {
    **dict.fromkeys(("and", "or", "not"), _logic),
    **dict.fromkeys(_COMPARISONS, _comparison),
    **NUMBERS,
    **dict.fromkeys(_CHOICES, _choice),
    **dict.fromkeys(_TEXTS, _text),
    **dict.fromkeys(_FIELDS, _calendar),
    **{"in": _among, "between": _between, "like": _like, "is null": _is_null},
    **{
        "nullif": _null_if,
        "if": _if,
        "case": _case,
        "case of": _case_of,
        "length": _length,
        "substring": _substring,
        "cast": _cast,
    },
}
