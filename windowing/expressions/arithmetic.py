"""Arithmetic of values that gives null where plain arithmetic would raise: beyond 64 bits, beyond 38 digits, divided by zero."""

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
    common,
    decimal,
    given,
    needed,
)
from windowing.spec.expressions.tree import Call

_LEAST_SCALE = 6
"""Digits after the point that Spark keeps of a decimal that would need more than 38."""
_ONE_DIGIT = T.DecimalType(1, 0)
_BEYOND = float(2**63)


def _arithmetic(call: Call, values: Values) -> Built:
    needed(NUMBER, call, values)
    kind, (left, right) = common(call, values)
    operate = _ARITHMETIC[call.operation]
    if isinstance(kind, T.DecimalType):
        exact = [decimal(v) for v in values]
        left, right = (v.column.cast(d) for v, d in zip(values, exact, strict=True))
        kind = _decimal(call.operation, *exact)
        return kind, operate(left, right).try_cast(kind)
    return DOUBLE if call.operation == "/" else kind, operate(left, right)


def _decimal(operation: str, left: T.DecimalType, right: T.DecimalType) -> T.DecimalType:
    """What Spark makes of decimals: as many digits as the exact result may have; beyond 38 the last ones after the point go."""
    before, after = (
        (left.precision - left.scale, right.precision - right.scale),
        max(left.scale, right.scale),
    )
    if operation == "*":
        whole, scale = (
            left.precision + right.precision + 1 - left.scale - right.scale,
            left.scale + right.scale,
        )
    elif operation == "/":
        whole, scale = before[0] + right.scale, max(_LEAST_SCALE, left.scale + right.precision + 1)
    else:
        whole, scale = (min(before), after) if operation == "%" else (max(before) + 1, after)
    if whole + scale > MOST_DIGITS:
        return T.DecimalType(MOST_DIGITS, max(MOST_DIGITS - whole, min(scale, _LEAST_SCALE)))
    return T.DecimalType(whole + scale, scale)


def _negate(call: Call, values: Values) -> Built:
    kind, number = _number(call, values)
    if kind == DOUBLE:
        return kind, F.negative(number)
    # Spark's own minus and abs of a decimal round to 34 digits (Scala's BigDecimal).
    negated = F.try_subtract(F.lit(0).cast(LONG if kind == LONG else _ONE_DIGIT), number)
    if isinstance(kind, T.DecimalType):
        kind = _decimal("-", _ONE_DIGIT, kind)
    return kind, negated.try_cast(kind)


def _abs(call: Call, values: Values) -> Built:
    kind, number = _number(call, values)
    if kind == DOUBLE:
        return kind, F.abs(number)
    kind, negated = _negate(call, values)
    return kind, F.when(number < 0, negated).otherwise(number.try_cast(kind))


def _round(call: Call, values: Values) -> Built:
    kind, number = _number(call, values[:1])
    digits = given(call.arguments[1]) if len(values) > 1 else 0
    if kind == LONG or not isinstance(digits, int):
        return kind, number
    if isinstance(kind, T.DecimalType):
        scale = min(kind.scale, digits)
        kind = T.DecimalType(min(kind.precision - kind.scale + 1 + scale, MOST_DIGITS), scale)
    return kind, F.round(number, digits)


def _whole(call: Call, values: Values) -> Built:
    """Floor and ceil: a double that no bigint holds gives null."""
    kind, number = _number(call, values)
    if kind == LONG:
        return kind, number
    cut = (F.floor if call.operation == "floor" else F.ceil)(number)
    if isinstance(kind, T.DecimalType):
        return T.DecimalType(min(kind.precision - kind.scale + 1, MOST_DIGITS), 0), cut
    return LONG, F.when(F.abs(number) < F.lit(_BEYOND), cut)


def _number(call: Call, values: Values) -> Built:
    needed(NUMBER, call, values)
    kind, (number,) = common(call, values)
    return kind, number


_ARITHMETIC: dict[str, Callable[[Column, Column], Column]] = {
    "+": F.try_add, "-": F.try_subtract, "*": F.try_multiply, "/": F.try_divide, "%": F.try_mod,
}  # fmt: skip
NUMBERS: dict[str, Callable[[Call, Values], Built]] = {
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    **{"negate": _negate, "abs": _abs, "round": _round, "floor": _whole, "ceil": _whole},
}
"""What each operation on numbers makes of a call and its values."""
