"""Texts of types, looked at without a JVM: words that no type of Spark has are found early."""

import re
from collections.abc import Iterator

_TYPES = {
    *("string", "boolean", "byte", "tinyint", "short", "smallint", "int", "integer", "long"),
    *("bigint", "float", "real", "double", "decimal", "dec", "numeric", "date", "timestamp"),
    *("timestamp_ntz", "timestamp_ltz", "binary", "variant", "char", "character", "varchar"),
    *("array", "map", "struct", "interval", "void", "time", "geometry", "geography"),
}
_QUOTED = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_LENGTHS = re.compile(r"\([^()]*\)")
_TOKEN = re.compile(r"[<>,:]|[^\s<>,:]+")
_MARKS = ("<", ">", ",", ":")


def find_unknown_type(text: str) -> str | None:
    """A word that stands where a type should, and is none; None where there is no such word.

    What is wrong in other ways is left to Spark.

    >>> find_unknown_type("struct<a: bigit, b: array<int>>"), find_unknown_type("decimal(10,2)")
    ('bigit', None)
    """
    plain = _LENGTHS.sub("", _QUOTED.sub("quoted", text))
    words = _find_types(_TOKEN.findall(plain))
    return next((word for word in words if word.lower() not in _TYPES), None)


def _find_types(tokens: list[str]) -> Iterator[str]:
    """The words at the places of types."""
    inside: list[str] = []
    for place, token in enumerate(tokens):
        before = tokens[max(place - 2, 0) : place]
        if token == "<":
            inside.append("".join(before[-1:]).lower())
        elif token == ">":
            inside = inside[:-1]
        elif token not in _MARKS and _is_place(before, inside[-1:]):
            yield token


def _is_place(before: list[str], inside: list[str]) -> bool:
    """Whether a type stands behind these two tokens, in a type with parts or in none."""
    match inside, before:
        case [], _:
            return not before
        case ["struct"], [*_, ":"]:
            return True
        case ["struct"], ["<" | ",", name]:
            return name not in _MARKS
        case ["array"] | ["map"], [*_, last]:
            return last in "<,"
    return False
