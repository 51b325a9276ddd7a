"""Arithmetic of values that is null where plain arithmetic would raise.

That is beyond 64 bits, beyond 38 digits, and where something is divided by zero.
"""

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.expressions.values import (
    DOUBLE,
    LONG,
    MOST_DIGITS,
    NUMBER,
    Built,
    Values,
    common_type,
    decimal_type,
    literal_value,
    require_families,
)
from windowing.spec.expressions.tree import Call

_LEAST_SCALE = 6
"""Digits after the point that Spark keeps of a decimal that would need more than 38."""
_ONE_DIGIT = T.DecimalType(1, 0)
_BEYOND = float(2**63)
"""The first double above every bigint."""


def _build_arithmetic(call: Call, values: Values) -> Built:
    require_families(NUMBER, call, values)
    kind, (left, right) = common_type(call, values)
    operate = _ARITHMETIC[call.operation]
    if isinstance(kind, T.DecimalType):
        left_kind, right_kind = (decimal_type(value) for value in values)
        kind = _result_of_decimals(call.operation, left_kind, right_kind)
        left = values[0].column.cast(left_kind)
        right = values[1].column.cast(right_kind)
        return kind, operate(left, right).try_cast(kind)
    if call.operation == "/":
        kind = DOUBLE
    return kind, operate(left, right)


def _result_of_decimals(operation: str, left: T.DecimalType, right: T.DecimalType) -> T.DecimalType:
    """The type of a result as in Spark: as many digits as the exact result may have.

    Beyond 38 digits the last ones after the point are dropped.
    """
    left_whole = left.precision - left.scale
    right_whole = right.precision - right.scale
    scale = max(left.scale, right.scale)
    if operation == "*":
        whole = left_whole + right_whole + 1
        scale = left.scale + right.scale
    elif operation == "/":
        whole = left_whole + right.scale
        scale = max(_LEAST_SCALE, left.scale + right.precision + 1)
    elif operation == "%":
        whole = min(left_whole, right_whole)
    else:
        whole = max(left_whole, right_whole) + 1
    if whole + scale > MOST_DIGITS:
        kept_scale = max(MOST_DIGITS - whole, min(scale, _LEAST_SCALE))
        return T.DecimalType(MOST_DIGITS, kept_scale)
    return T.DecimalType(whole + scale, scale)


def _build_negation(call: Call, values: Values) -> Built:
    kind, number = _require_one_number(call, values)
    if kind == DOUBLE:
        return kind, F.negative(number)
    if isinstance(kind, T.DecimalType) and kind.precision == MOST_DIGITS:
        return kind, _negate_text(number.cast("string")).try_cast(kind)
    # Spark's own minus and abs of a decimal round to 34 digits (Scala's BigDecimal).
    kind_of_zero = LONG if kind == LONG else _ONE_DIGIT
    zero = F.lit(0).cast(kind_of_zero)
    negated = F.try_subtract(zero, number)
    if isinstance(kind, T.DecimalType):
        kind = _result_of_decimals("-", _ONE_DIGIT, kind)
    return kind, negated.try_cast(kind)


def _negate_text(number: Column) -> Column:
    """The text of a number with the other sign: no type has a digit more than this one."""
    is_negative = F.startswith(number, F.lit("-"))
    return F.when(is_negative, F.substring(number, 2, MOST_DIGITS + 2)).otherwise(
        F.concat(F.lit("-"), number)
    )


def _build_abs(call: Call, values: Values) -> Built:
    kind, number = _require_one_number(call, values)
    if kind == DOUBLE:
        return kind, F.abs(number)
    kind, negated = _build_negation(call, values)
    return kind, F.when(number < 0, negated).otherwise(number.try_cast(kind))


def _build_round(call: Call, values: Values) -> Built:
    kind, number = _require_one_number(call, values[:1])
    digits = literal_value(call.arguments[1]) if len(values) > 1 else 0
    if kind == LONG or not isinstance(digits, int):
        return kind, number
    if isinstance(kind, T.DecimalType):
        scale = min(kind.scale, digits)
        # One digit more before the point, since 9.9 may be rounded to 10.
        precision = kind.precision - kind.scale + 1 + scale
        kind = T.DecimalType(min(precision, MOST_DIGITS), scale)
    return kind, F.round(number, digits)


def _build_floor_or_ceil(call: Call, values: Values) -> Built:
    """Whole numbers; a double beyond the bigints gives null."""
    kind, number = _require_one_number(call, values)
    if kind == LONG:
        return kind, number
    whole = F.floor(number) if call.operation == "floor" else F.ceil(number)
    if isinstance(kind, T.DecimalType):
        precision = kind.precision - kind.scale + 1
        return T.DecimalType(min(precision, MOST_DIGITS), 0), whole
    return LONG, F.when(F.abs(number) < F.lit(_BEYOND), whole)


def _require_one_number(call: Call, values: Values) -> Built:
    require_families(NUMBER, call, values)
    kind, (number,) = common_type(call, values)
    return kind, number


_ARITHMETIC: dict[str, Callable[[Column, Column], Column]] = {
    "+": F.try_add, "-": F.try_subtract, "*": F.try_multiply, "/": F.try_divide, "%": F.try_mod,
}  # fmt: skip
NUMBERS: dict[str, Callable[[Call, Values], Built]] = {
    **dict.fromkeys(_ARITHMETIC, _build_arithmetic),
    "negate": _build_negation,
    "abs": _build_abs,
    "round": _build_round,
    "floor": _build_floor_or_ceil,
    "ceil": _build_floor_or_ceil,
}
"""By operation on numbers the function that builds its column from a call and its values."""
