"""The tree of an expression: names, literals and calls, and the functions that may be called."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Union

ANY_NUMBER = 100
FUNCTIONS = {
    **dict.fromkeys(
        (
            "abs",
            "floor",
            "ceil",
            "lower",
            "upper",
            "trim",
            "length",
            "year",
            "month",
            "day",
            "hour",
        ),
        (1, 1),
    ),
    **dict.fromkeys(("coalesce", "concat"), (1, ANY_NUMBER)),
    **dict.fromkeys(("least", "greatest"), (2, ANY_NUMBER)),
    **{"round": (1, 2), "nullif": (2, 2), "substring": (2, 3), "if": (3, 3), "replace": (3, 3)},
}
"""Every function and the fewest and most arguments it takes; `cast` has a syntax of its own."""


@dataclass(frozen=True)
class Name:
    """A column; `quoted` if it was written in backticks."""

    name: str
    quoted: bool = False


@dataclass(frozen=True)
class Literal:
    """A constant: text, a number, true, false or null (None).

    Whole numbers are int, numbers with a point Decimal, those with an exponent float.
    """

    value: str | int | Decimal | float | bool | None


@dataclass(frozen=True)
class Call:
    """An operator, a predicate or a function of its arguments, at least one.

    `case` has (condition, value)*, else; `case of` has operand, (compared, value)*, else.
    `cast` ends with its type as a text.
    """

    operation: str
    arguments: tuple["Node", ...]


Node = Union[Name, Literal, Call]  # noqa: UP007 -- Call names it before it is bound
