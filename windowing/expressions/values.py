"""What an expression is while it is built: values[node, Spark type, column], and how values come to one type without ever raising on data.

Whole numbers meet as bigint, decimals as the decimal that holds both, anything with a double as double; what does not fit is null.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.expressions.exact_decimals import PARTS, parts
from windowing.grid.zone import micros
from windowing.spec.expressions.parse import printed
from windowing.spec.expressions.tree import Literal, Name, Node
from windowing.spec.words import listed, near, shown

LONG, DOUBLE, TEXT, TRUTH = T.LongType(), T.DoubleType(), T.StringType(), T.BooleanType()
NUMBER, TIMES = "a number", ("a time", "a local time", "a date")
NULL, OTHER = "null", "neither a number, a text, a time nor true or false"
MOST_DIGITS = 38

_WHOLE_DIGITS: dict[type[T.DataType], int] = {
    T.ByteType: 3,
    T.ShortType: 5,
    T.IntegerType: 10,
    T.LongType: 20,
}
_FAMILIES: dict[type[T.DataType], str] = {
    **dict.fromkeys((*_WHOLE_DIGITS, T.FloatType, T.DoubleType, T.DecimalType), NUMBER),
    **{
        T.BooleanType: "true or false",
        T.TimestampType: TIMES[0],
        T.TimestampNTZType: TIMES[1],
        T.DateType: TIMES[2],
        T.NullType: NULL,
    },
}
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_LOCAL = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?", re.ASCII)
_TIME = re.compile(_LOCAL.pattern[:-2] + r"(Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_FORMS = {
    TIMES[0]: (
        _TIME,
        "a time such as '2024-01-31', '2024-01-31 06:00' or '2024-01-31T06:00:00Z', in UTC if it names no offset",
    ),
    TIMES[1]: (
        _LOCAL,
        "a local time such as '2024-01-31' or '2024-01-31 06:00', without an offset",
    ),
    TIMES[2]: (_DATE, "a date such as '2024-01-31'"),
}


class Unfit(Exception):
    """Raised with one sentence when an operation gets a value it has no meaning for."""


@dataclass(frozen=True)
class Value:
    """A node of an expression with the column it becomes and the type that column has."""

    node: Node
    kind: T.DataType
    column: Column

    def __str__(self) -> str:
        return f"{printed(self.node)} of type {self.kind.simpleString()}"


Built = tuple[T.DataType, Column]
Values = Sequence[Value]


def family(kind: T.DataType) -> str:
    """What can be done with a type, as words."""
    return "a text" if kind == TEXT else _FAMILIES.get(type(kind), OTHER)


def named(node: Name, schema: T.StructType) -> Value:
    """The column of that very name."""
    if node.name not in schema.names:
        hint = near(node.name, schema.names)
        raise Unfit(
            f"{shown(printed(node))} is no column of the source{hint}; it has {listed(sorted(schema.names))}"
        )
    return Value(node, schema[node.name].dataType, F.col(f"`{node.name.replace('`', '``')}`"))


def constant(node: Literal) -> Value:
    """A literal; whole numbers are bigint, decimals as wide as they are written."""
    value, kind = node.value, _kind(node)
    plain = isinstance(value, (str, bool, float)) or value is None
    return Value(node, kind, F.lit(value) if plain else F.lit(value).cast(kind))


def needed(wanted: str | Collection[str], whole: Node, values: Values) -> None:
    """Raises unless every value is of one of the families `wanted`."""
    allowed = (wanted,) if isinstance(wanted, str) else wanted
    for value in values:
        if family(value.kind) not in allowed:
            raise Unfit(
                f"{shown(printed(whole))} has {shown(str(value))} where {' or '.join(allowed)} is needed"
            )


def common(whole: Node, values: Values) -> tuple[T.DataType, list[Column]]:
    """The one type of all values and their columns in it; text literals beside times are times, nulls are of any type."""
    families = {family(v.kind) for v in values} - {NULL}
    times = families.intersection(TIMES)
    if len(times) == 1 and families - times == {"a text"}:
        (time,) = {v.kind for v in values if family(v.kind) in times}
        return common(
            whole, [_time(whole, v, time) if family(v.kind) == "a text" else v for v in values]
        )
    if len(families) > 1:
        raise Unfit(
            f"{shown(printed(whole))} mixes {_different(values)}; all have to be numbers, texts, times, or true or false"
        )
    if OTHER in families:
        raise Unfit(
            f"{shown(printed(whole))} has {shown(str(values[0]))}, with which only is null and is not null work"
        )
    kind = _meeting([v.kind for v in values if v.kind != T.NullType()], values)
    return kind, [_cast(v, kind) for v in values]


def comparable(whole: Node, values: Values) -> list[Column]:
    """The columns of all values as one type that compares as they do; decimals that no type of 38 digits holds together in two parts."""
    kind, columns = common(whole, values)
    if not isinstance(kind, T.DecimalType) or all(
        decimal(v).scale <= kind.scale for v in values if v.kind != T.NullType()
    ):
        return columns
    return [F.lit(None).cast(PARTS) if v.kind == T.NullType() else parts(v.column) for v in values]


def given(node: Node) -> object:
    """What a literal says."""
    return node.value if isinstance(node, Literal) else None


def decimal(value: Value) -> T.DecimalType:
    """The decimal that holds every number of a value that is whole or decimal."""
    if isinstance(value.kind, T.DecimalType):
        return value.kind
    if isinstance(value.node, Literal):
        return T.DecimalType(len(str(value.node.value).lstrip("-")), 0)
    return T.DecimalType(_WHOLE_DIGITS[type(value.kind)], 0)


def _kind(node: Literal) -> T.DataType:
    match node.value:
        case None:
            return T.NullType()
        case bool():
            return TRUTH
        case str():
            return TEXT
        case int():
            return LONG
        case float():
            return DOUBLE
        case Decimal() as number:
            _, digits, exponent = number.as_tuple()
            return T.DecimalType(max(len(digits), -int(exponent)), -int(exponent))


def _meeting(kinds: Sequence[T.DataType], values: Sequence[Value]) -> T.DataType:
    if not kinds or family(kinds[0]) != NUMBER:
        return kinds[0] if kinds else T.NullType()
    if any(isinstance(k, (T.FloatType, T.DoubleType)) for k in kinds):
        return DOUBLE
    if not any(isinstance(k, T.DecimalType) for k in kinds):
        return LONG
    exact = [decimal(v) for v in values if v.kind != T.NullType()]
    before = max(d.precision - d.scale for d in exact)
    after = min(max(d.scale for d in exact), MOST_DIGITS - before)
    return T.DecimalType(before + after, after)


def _cast(value: Value, kind: T.DataType) -> Column:
    if value.kind == kind:
        return value.column
    return (
        value.column.try_cast(kind) if isinstance(kind, T.DecimalType) else value.column.cast(kind)
    )


def _different(values: Sequence[Value]) -> str:
    first = next(v for v in values if family(v.kind) != NULL)
    other = next(v for v in values if family(v.kind) not in (NULL, family(first.kind)))
    return f"{shown(str(first))} and {shown(str(other))}"


def _time(whole: Node, value: Value, kind: T.DataType) -> Value:
    """A text literal as the time it says."""
    pattern, form = _FORMS[family(kind)]
    text = given(value.node)
    if not isinstance(text, str):
        raise Unfit(
            f"{shown(printed(whole))} compares a {kind.simpleString()} with {shown(str(value))}; use {form}"
        )
    try:
        if not pattern.fullmatch(text):
            raise ValueError(text)
        said = datetime.fromisoformat(text)
    except ValueError:
        raise Unfit(f"{shown(text)} in {shown(printed(whole))} is not {form}") from None
    if isinstance(kind, T.TimestampType):
        at = said if said.tzinfo else said.replace(tzinfo=UTC)
        return replace(value, kind=kind, column=F.timestamp_micros(F.lit(micros(at))))
    return replace(
        value,
        kind=kind,
        column=F.lit(said.isoformat(" ")[: 10 if isinstance(kind, T.DateType) else None]).cast(
            kind
        ),
    )
