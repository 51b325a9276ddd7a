"""The tree of an expression: names, literals and calls, and the functions that may be called.

A part of a column is a call, too: `payload.tags[0]` is the element 0 of the field tags of payload.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Union

ANY_NUMBER = 100
FUNCTIONS = {
    "abs": (1, 1),
    "floor": (1, 1),
    "ceil": (1, 1),
    "lower": (1, 1),
    "upper": (1, 1),
    "trim": (1, 1),
    "length": (1, 1),
    "year": (1, 1),
    "month": (1, 1),
    "day": (1, 1),
    "hour": (1, 1),
    "minute": (1, 1),
    "second": (1, 1),
    "date_trunc": (2, 2),
    "convert_timezone": (2, 2),
    "to_timestamp": (2, 2),
    "get_json_object": (2, 2),
    "regexp_like": (2, 2),
    "regexp_extract": (2, 2),
    "regexp_replace": (3, 3),
    "coalesce": (1, ANY_NUMBER),
    "concat": (1, ANY_NUMBER),
    "least": (2, ANY_NUMBER),
    "greatest": (2, ANY_NUMBER),
    "round": (1, 2),
    "nullif": (2, 2),
    "substring": (2, 3),
    "if": (3, 3),
    "replace": (3, 3),
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
    `cast` ends with its type as a text. `.` has a struct and the name of its field as a text. `[]`
    has an array and the number of its element from 0, or a map and its key as a text.
    """

    operation: str
    arguments: tuple["Node", ...]


Node = Union[Name, Literal, Call]  # noqa: UP007 -- Call names it before it is bound

FIELD, ELEMENT = ".", "[]"
"""The operations that take a part of a column: a field of a struct, an element of an array or map.
"""


def path_of(node: Node) -> tuple[str | int, ...]:
    """The name of a column, and the fields and elements that lead to a part of it.

    Empty for a node that is neither a column nor a part of one.

    >>> path_of(Call("[]", (Call(".", (Name("payload"), Literal("tags"))), Literal(0))))
    ('payload', 'tags', 0)
    """
    match node:
        case Name(name):
            return (name,)
        case Call("." | "[]", (inner, Literal(str() | int() as step))):
            above = path_of(inner)
            return (*above, step) if above else ()
    return ()
