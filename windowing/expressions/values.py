"""What an expression is while it is built, and how its values are brought to one type.

    values[node, Spark type, column] -> one type and a column of it for each value

Whole numbers meet as bigint, decimals as the decimal that contains both, and anything with a double
as double. Nothing raises while rows are read: what does not fit is null.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.expressions.exact_decimals import PARTS, split_decimal
from windowing.grid.zone import micros
from windowing.rows import column_named
from windowing.spec.expressions.parse import print_expression
from windowing.spec.expressions.tree import Literal, Name, Node
from windowing.spec.words import join_names, quote_value, suggest_name

LONG = T.LongType()
DOUBLE = T.DoubleType()
TEXT = T.StringType()
TRUTH = T.BooleanType()
NUMBER = "a number"
TIMES = ("a time", "a local time", "a date")
NULL = "null"
OTHER = "neither a number, a text, a time nor true or false"
MOST_DIGITS = 38

_WHOLE_DIGITS: dict[type[T.DataType], int] = {
    T.ByteType: 3,
    T.ShortType: 5,
    T.IntegerType: 10,
    T.LongType: 20,
}
_FAMILIES: dict[type[T.DataType], str] = {
    **dict.fromkeys((*_WHOLE_DIGITS, T.FloatType, T.DoubleType, T.DecimalType), NUMBER),
    T.BooleanType: "true or false",
    T.TimestampType: TIMES[0],
    T.TimestampNTZType: TIMES[1],
    T.DateType: TIMES[2],
    T.NullType: NULL,
}
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_LOCAL = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?", re.ASCII)
_TIME = re.compile(_LOCAL.pattern[:-2] + r"(Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_FORMS = {
    TIMES[0]: (
        _TIME,
        "a time such as '2024-01-31', '2024-01-31 06:00' or '2024-01-31T06:00:00Z',"
        " in UTC if it names no offset",
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
        return f"{print_expression(self.node)} of type {self.kind.simpleString()}"


Built = tuple[T.DataType, Column]
Values = Sequence[Value]


def type_family(kind: T.DataType) -> str:
    """What can be done with a type, as words."""
    if kind == TEXT:
        return "a text"
    return _FAMILIES.get(type(kind), OTHER)


def named_column(node: Name, schema: T.StructType) -> Value:
    """The column of exactly that name."""
    if node.name not in schema.names:
        hint = suggest_name(node.name, schema.names)
        columns = join_names(sorted(schema.names))
        wrong = f"{quote_value(print_expression(node))} is no column of the source{hint}"
        raise Unfit(f"{wrong}; it has {columns}")
    return Value(node, schema[node.name].dataType, column_named(node.name))


def constant_value(node: Literal) -> Value:
    """A literal; whole numbers are bigint, decimals as wide as they are written."""
    value = node.value
    kind = _kind_of_literal(node)
    column = F.lit(value)
    # A number has the type that its spelling has, whatever Spark takes for the Python value.
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        column = column.cast(kind)
    return Value(node, kind, column)


def require_families(wanted: str | Collection[str], whole: Node, values: Values) -> None:
    """Raises unless every value is of one of the families `wanted`."""
    allowed = (wanted,) if isinstance(wanted, str) else wanted
    for value in values:
        if type_family(value.kind) not in allowed:
            found = f"{quote_value(print_expression(whole))} has {quote_value(str(value))}"
            raise Unfit(f"{found} where {' or '.join(allowed)} is needed")


def common_type(whole: Node, values: Values) -> tuple[T.DataType, list[Column]]:
    """The one type of all values, and their columns in it.

    Text literals among times are read as times, and nulls are of any type. Raises Unfit where there
    is no such type.
    """
    families = {type_family(value.kind) for value in values} - {NULL}
    times = families.intersection(TIMES)
    if len(times) == 1 and families - times == {"a text"}:
        return common_type(whole, _texts_as_times(whole, values, times))
    if len(families) > 1:
        wrong = f"{quote_value(print_expression(whole))} mixes {_name_two_families(values)}"
        raise Unfit(f"{wrong}; all have to be numbers, texts, times, or true or false")
    if OTHER in families:
        wrong = f"{quote_value(print_expression(whole))} has {quote_value(str(values[0]))}"
        raise Unfit(f"{wrong}, with which only is null and is not null work")
    kinds = [value.kind for value in values if value.kind != T.NullType()]
    kind = _common_kind(kinds, values)
    return kind, [_cast_value(value, kind) for value in values]


def _texts_as_times(whole: Node, values: Values, times: Collection[str]) -> list[Value]:
    """The values with each text literal as a time of the one type that the others have."""
    (kind,) = {value.kind for value in values if type_family(value.kind) in times}
    found = []
    for value in values:
        if type_family(value.kind) == "a text":
            found.append(_parse_time(whole, value, kind))
        else:
            found.append(value)
    return found


def comparable_columns(whole: Node, values: Values) -> list[Column]:
    """The columns of all values as one type that compares as they do.

    Decimals that no type of 38 digits contains together are in two parts, whole and rest.
    """
    kind, columns = common_type(whole, values)
    if not isinstance(kind, T.DecimalType):
        return columns
    scales = [decimal_type(value).scale for value in values if value.kind != T.NullType()]
    if all(scale <= kind.scale for scale in scales):
        return columns
    return [_parts_of(value) for value in values]


def _parts_of(value: Value) -> Column:
    if value.kind == T.NullType():
        return F.lit(None).cast(PARTS)
    return split_decimal(value.column)


def literal_value(node: Node) -> object:
    """The value of a literal; None for any other node."""
    return node.value if isinstance(node, Literal) else None


def decimal_type(value: Value) -> T.DecimalType:
    """The decimal that contains every number of a value that is whole or decimal."""
    if isinstance(value.kind, T.DecimalType):
        return value.kind
    if isinstance(value.node, Literal):
        digits = str(value.node.value).lstrip("-")
        return T.DecimalType(len(digits), 0)
    return T.DecimalType(_WHOLE_DIGITS[type(value.kind)], 0)


def _kind_of_literal(node: Literal) -> T.DataType:
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
            scale = -int(exponent)
            return T.DecimalType(max(len(digits), scale), scale)


def _common_kind(kinds: Sequence[T.DataType], values: Values) -> T.DataType:
    """The type of all `values`, whose types but null are `kinds`, all of one family."""
    if not kinds:
        return T.NullType()
    if type_family(kinds[0]) != NUMBER:
        return kinds[0]
    if any(isinstance(kind, (T.FloatType, T.DoubleType)) for kind in kinds):
        return DOUBLE
    if not any(isinstance(kind, T.DecimalType) for kind in kinds):
        return LONG
    decimals = [decimal_type(value) for value in values if value.kind != T.NullType()]
    whole_digits = max(each.precision - each.scale for each in decimals)
    scale = max(each.scale for each in decimals)
    kept_scale = min(scale, MOST_DIGITS - whole_digits)
    return T.DecimalType(whole_digits + kept_scale, kept_scale)


def _cast_value(value: Value, kind: T.DataType) -> Column:
    if value.kind == kind:
        return value.column
    if isinstance(kind, T.DecimalType):
        return value.column.try_cast(kind)
    return value.column.cast(kind)


def _name_two_families(values: Values) -> str:
    """The first value that is not null, and the first one of another family."""
    not_null = [value for value in values if type_family(value.kind) != NULL]
    first = not_null[0]
    family = type_family(first.kind)
    other = next(value for value in not_null if type_family(value.kind) != family)
    return f"{quote_value(str(first))} and {quote_value(str(other))}"


def _parse_time(whole: Node, value: Value, kind: T.DataType) -> Value:
    """A text literal as the time that it names."""
    pattern, form = _FORMS[type_family(kind)]
    text = literal_value(value.node)
    if not isinstance(text, str):
        compared = f"compares a {kind.simpleString()} with {quote_value(str(value))}"
        raise Unfit(f"{quote_value(print_expression(whole))} {compared}; use {form}")
    try:
        if not pattern.fullmatch(text):
            raise ValueError(text)
        at = datetime.fromisoformat(text)
    except ValueError:
        found = f"{quote_value(text)} in {quote_value(print_expression(whole))}"
        raise Unfit(f"{found} is not {form}") from None
    if isinstance(kind, T.TimestampType):
        if at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
        column = F.timestamp_micros(F.lit(micros(at)))
    elif isinstance(kind, T.DateType):
        column = F.lit(at.date().isoformat()).cast(kind)
    else:
        column = F.lit(at.isoformat(" ")).cast(kind)
    return replace(value, kind=kind, column=column)
