"""Checked expressions -> columns, built from the tree with functions of Spark.

No text is ever executed. Nothing raises while rows are read: a division by zero, a number that is
too large, a text that is no number, or a part that is not there gives null. Whole numbers have 64
bits, times are in UTC, text compares by its bytes, and NaN equals itself and exceeds every number,
as in Spark.

    source[columns] -> column
"""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.errors import SpecError
from windowing.expressions.arithmetic import NUMBERS
from windowing.expressions.nested import (
    build_element,
    build_field,
    build_json_value,
    refuse_column_with_points,
)
from windowing.expressions.regex import REGEX_FUNCTIONS
from windowing.expressions.times import TIME_FUNCTIONS
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
    common_type,
    comparable_columns,
    constant_value,
    literal_value,
    named_column,
    require_families,
    type_family,
)
from windowing.rows import read_double
from windowing.spec.expressions.parse import print_expression, tree
from windowing.spec.expressions.tree import ELEMENT, FIELD, Call, Literal, Name, Node
from windowing.spec.kinds import Expression
from windowing.spec.words import quote_value


def compile_value(expression: Expression, schema: T.StructType, field: str) -> Value:
    """The column of a checked expression over rows of `schema`, and its type as Spark will have it.

    Raises SpecError at `field` where types don't fit.
    """
    try:
        value = _build_node(tree(expression), schema)
    except Unfit as unfit:
        raise SpecError(field, str(unfit)) from None
    kind = type_family(value.kind)
    if kind in (NULL, OTHER):
        raise SpecError(field, f"{quote_value(str(value))} can't be used by itself; it is {kind}")
    return value


def compile_condition(expression: Expression, schema: T.StructType, field: str) -> Column:
    """The column of an expression that is true, false or null."""
    value = compile_value(expression, schema, field)
    if value.kind != TRUTH:
        wrong = f"{quote_value(str(value))} is no condition"
        raise SpecError(field, f"{wrong}; write one such as delay > 60")
    return value.column


def _build_node(node: Node, schema: T.StructType) -> Value:
    if isinstance(node, Name):
        return named_column(node, schema)
    if isinstance(node, Literal):
        return constant_value(node)
    if node.operation == FIELD:
        refuse_column_with_points(node, schema)
    build = _OPERATIONS[node.operation]
    values = [_build_node(argument, schema) for argument in node.arguments]
    kind, column = build(node, values)
    return Value(node, kind, column)


def _build_logic(call: Call, values: Values) -> Built:
    require_families("true or false", call, values)
    columns = [value.column for value in values]
    if call.operation == "not":
        return TRUTH, ~columns[0]
    combine = and_ if call.operation == "and" else or_
    return TRUTH, reduce(combine, columns)


def _build_comparison(call: Call, values: Values) -> Built:
    if call.operation != "<=>":
        _refuse_null(call, values)
    left, right = comparable_columns(call, values)
    return TRUTH, _COMPARISONS[call.operation](left, right)


def _refuse_null(call: Call, values: Values) -> None:
    if any(type_family(value.kind) == NULL for value in values):
        wrong = f"{quote_value(print_expression(call))} compares with null, which is never true"
        raise Unfit(f"{wrong}; write is null, is not null or <=>")


def _build_membership(call: Call, values: Values) -> Built:
    _refuse_null(call, values)
    subject, *others = comparable_columns(call, values)
    return TRUTH, subject.isin(*others)


def _build_between(call: Call, values: Values) -> Built:
    _refuse_null(call, values)
    subject, low, high = comparable_columns(call, values)
    return TRUTH, (subject >= low) & (subject <= high)


def _build_like(call: Call, values: Values) -> Built:
    require_families("a text", call, values)
    pattern = str(literal_value(call.arguments[1]))
    return TRUTH, values[0].column.like(pattern)


def _build_is_null(call: Call, values: Values) -> Built:
    return TRUTH, values[0].column.isNull()


def _build_choice(call: Call, values: Values) -> Built:
    kind, columns = common_type(call, values)
    return kind, _CHOICES[call.operation](*columns)


def _build_null_if(call: Call, values: Values) -> Built:
    _refuse_null(call, values)
    kind, (value, _) = common_type(call, values)
    left, right = comparable_columns(call, values)
    null = F.lit(None).cast(kind)
    return kind, F.when(left == right, null).otherwise(value)


def _build_if(call: Call, values: Values) -> Built:
    require_families("true or false", call, values[:1])
    kind, (then, otherwise) = common_type(call, values[1:])
    return kind, F.when(values[0].column, then).otherwise(otherwise)


def _build_case(call: Call, values: Values) -> Built:
    """`values` are condition, result, condition, result, ..., result otherwise."""
    conditions = values[:-1:2]
    require_families("true or false", call, conditions)
    results = [*values[1::2], values[-1]]
    condition_columns = [condition.column for condition in conditions]
    return _choose_arm(call, condition_columns, results)


def _build_case_of(call: Call, values: Values) -> Built:
    """`values` are operand, value, result, value, result, ..., result otherwise."""
    compared = [values[0], *values[1:-1:2]]
    _refuse_null(call, compared)
    operand, *others = comparable_columns(call, compared)
    results = [*values[2::2], values[-1]]
    conditions = [operand == other for other in others]
    return _choose_arm(call, conditions, results)


def _choose_arm(call: Call, conditions: Sequence[Column], results: Values) -> Built:
    """The result of the first condition that is true, else the last result."""
    kind, (*thens, otherwise) = common_type(call, results)
    (first, then), *others = zip(conditions, thens, strict=True)
    chain = F.when(first, then)
    for other, result in others:
        chain = chain.when(other, result)
    return kind, chain.otherwise(otherwise)


def _build_text(call: Call, values: Values) -> Built:
    require_families("a text", call, values)
    build = _TEXTS[call.operation]
    return TEXT, build(*[value.column for value in values])


def _build_length(call: Call, values: Values) -> Built:
    require_families("a text", call, values)
    return LONG, F.length(values[0].column).cast(LONG)


def _build_substring(call: Call, values: Values) -> Built:
    require_families("a text", call, values[:1])
    kind, places = common_type(call, values[1:])
    if kind != LONG:
        wrong = f"{quote_value(print_expression(call))} counts places in whole numbers"
        raise Unfit(f"{wrong}, but {quote_value(str(values[-1]))} is none")
    # Spark's substr wants integers of 32 bits; places beyond them give null.
    narrow_places = [place.try_cast("int") for place in places]
    return TEXT, F.substr(values[0].column, *narrow_places)


def _build_cast(call: Call, values: Values) -> Built:
    kind = _find_cast_type(str(literal_value(call.arguments[1])))
    allowed = [NUMBER, "a text", "true or false", NULL]
    if kind == TEXT:
        allowed += TIMES
    require_families(allowed, call, values[:1])
    column = values[0].column
    if values[0].kind == TEXT and kind == DOUBLE:
        return kind, read_double(column)
    return kind, column.try_cast(kind)


def _find_cast_type(name: str) -> T.DataType:
    """The type of a cast: one of `_CASTS`, or "decimal(precision,scale)"."""
    if name in _CASTS:
        return _CASTS[name]
    digits = name.removeprefix("decimal(").removesuffix(")")
    precision, scale = digits.split(",")
    return T.DecimalType(int(precision), int(scale))


_CASTS: dict[str, T.DataType] = {"bigint": LONG, "double": DOUBLE, "string": TEXT}
_COMPARISONS: dict[str, Callable[[Column, Column], Column]] = {
    "=": eq,
    "!=": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
    "<=>": lambda left, right: left.eqNullSafe(right),
}
_CHOICES: dict[str, Callable[..., Column]] = {
    "coalesce": F.coalesce,
    "least": F.least,
    "greatest": F.greatest,
}
_TEXTS: dict[str, Callable[..., Column]] = {
    "lower": F.lower, "upper": F.upper, "trim": F.trim, "concat": F.concat, "replace": F.replace,
}  # fmt: skip
_OPERATIONS: dict[str, Callable[[Call, Values], Built]] = {
    **NUMBERS,
    **dict.fromkeys(("and", "or", "not"), _build_logic),
    **dict.fromkeys(_COMPARISONS, _build_comparison),
    **dict.fromkeys(_CHOICES, _build_choice),
    **dict.fromkeys(_TEXTS, _build_text),
    **TIME_FUNCTIONS,
    **REGEX_FUNCTIONS,
    FIELD: build_field,
    ELEMENT: build_element,
    "get_json_object": build_json_value,
    "in": _build_membership,
    "between": _build_between,
    "like": _build_like,
    "is null": _build_is_null,
    "nullif": _build_null_if,
    "if": _build_if,
    "case": _build_case,
    "case of": _build_case_of,
    "length": _build_length,
    "substring": _build_substring,
    "cast": _build_cast,
}
"""By operation the function that builds its column from a call and its values."""
