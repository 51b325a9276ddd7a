"""What a table holds against what it should hold: rows missing, rows not expected, rows that differ; as values and as people read it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from math import isclose, isnan
from typing import Any

from windowing.report.text import instant, plain
from windowing.spec.times import instant as read_instant

Row = Mapping[str, Any]
CLOSE = 1e-6
"""How far fractions may be apart, relative to their size, and still agree."""

_PLAIN = re.compile(
    r"[A-Za-z_][\w./-]*|\d{4}-\d\d-\d\d([T ]\d\d:[\d:.]+(Z|[+-]\d\d:\d\d)?)?", re.ASCII
)
_WORDS = ("true", "false", "null", "yes", "no", "on", "off")
_ASIDE = ("revision", "run", "batch")


@dataclass(frozen=True)
class Unequal:
    """A row that is there with other values: `columns` has (expected, found) for each that differs; `place` tells which row it is."""

    place: Row
    columns: Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True)
class Difference:
    """Where a table is not what was expected."""

    table: str
    missing: tuple[Row, ...]
    unexpected: tuple[Row, ...]
    unequal: tuple[Unequal, ...]

    def as_json(self) -> dict[str, object]:
        """The difference as plain JSON values."""
        unequal = [
            {
                "row": plain(u.place),
                "columns": {
                    c: {"expected": plain(e), "found": plain(f)} for c, (e, f) in u.columns.items()
                },
            }
            for u in self.unequal
        ]
        rows = {"missing": self.missing, "unexpected": self.unexpected}
        return {
            "table": self.table,
            **{name: [plain(r) for r in found] for name, found in rows.items()},
            "different": unequal,
        }


def difference(
    table: str, expected: Sequence[Row], found: Sequence[Row], identity: Sequence[str]
) -> Difference | None:
    """How the rows `found` differ from those `expected`, in any order; None if they agree.

    A column that an expected row leaves out is not compared. `identity` are the columns that tell one row from another.
    """
    left, over = _unmatched(expected, found)
    wrong = _paired([expected[i] for i in left], [found[i] for i in over], identity)
    missing = [expected[i] for i in left if all(expected[i] is not e for e, _ in wrong)]
    unexpected = [
        _brief(found[i], expected, identity)
        for i in over
        if all(found[i] is not f for _, f in wrong)
    ]
    unequal = [_unequal(e, f, identity) for e, f in wrong]
    return (
        Difference(table, tuple(missing), tuple(unexpected), tuple(unequal))
        if left or over
        else None
    )


def lines(found: Difference) -> list[str]:
    """The difference as lines of text; rows are written as a transcript writes them."""
    table = found.table
    unequal = [
        f"{table}: {row(u.place)} differs in {_changes(u.columns)}"
        if u.place
        else _changes(u.columns)
        for u in found.unequal
    ]
    missing = [f"{table}: {row(r)} is missing" for r in found.missing]
    return [*unequal, *missing, *(f"{table}: {row(r)} was not expected" for r in found.unexpected)]


def row(values: Row) -> str:
    """A row on one line, as YAML.

    >>> row({"origin": "JFK", "flights": 2, "worst": None, "gate": "12"})
    "{origin: JFK, flights: 2, worst: null, gate: '12'}"
    """
    return (
        f"{{{', '.join(f'{name}: {spelled(value)}' for name, value in values.items())}}}"
        if values
        else ""
    )


def spelled(value: Any) -> str:
    """A value as a transcript writes it."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.10g}"
        case datetime():
            return instant(value)
        case list() | tuple():
            return f"[{', '.join(map(spelled, value))}]"
        case Mapping():
            return row(value) or "{}"
        case str():
            return value if _simple(value) else repr(value)
    return str(value)


def agree(expected: Any, found: Any, *, nested: bool = False) -> bool:
    """Whether a value is what a transcript says: times as instants, whole numbers and decimals exactly, fractions nearly.

    Of a nested mapping only the fields that are said are compared; nested times are texts.
    """
    match found:
        case bool() | None:
            return expected is found
        case datetime():
            return _moment(expected) == found
        case int() | float() | Decimal():
            return _same_number(expected, found)
        case list():
            return (
                isinstance(expected, list)
                and len(expected) == len(found)
                and all(map(_agree_inside, expected, found))
            )
        case dict():
            return isinstance(expected, dict) and all(
                _agree_inside(value, found.get(name)) for name, value in expected.items()
            )
    same_time = nested and _moment(expected) is not None and _moment(expected) == _moment(found)
    return isinstance(expected, str) and (expected == found or same_time)


def _agree_inside(expected: Any, found: Any) -> bool:
    return agree(expected, found, nested=True)


def _moment(value: Any) -> datetime | None:
    return (
        read_instant(value)
        if isinstance(value, str)
        else value
        if isinstance(value, datetime)
        else None
    )


def _same_number(expected: Any, found: float | Decimal) -> bool:
    if isinstance(found, Decimal):
        try:
            return (
                isinstance(expected, (int, float, str, Decimal))
                and not isinstance(expected, bool)
                and Decimal(str(expected)) == found
            )
        except ArithmeticError:
            return False
    if not isinstance(expected, (int, float)) or isinstance(expected, bool):
        return False
    if isinstance(found, int):
        return expected == found
    return (isnan(found) and isnan(expected)) or isclose(
        expected, found, rel_tol=CLOSE, abs_tol=CLOSE * CLOSE
    )


def _agree(expected: Row, found: Row) -> bool:
    return all(agree(value, found.get(name)) for name, value in expected.items())


def _unmatched(expected: Sequence[Row], found: Sequence[Row]) -> tuple[list[int], list[int]]:
    """What is left of both sides once as many rows as can be are matched, each with one that agrees."""
    fits = [[j for j, f in enumerate(found) if _agree(e, f)] for e in expected]
    taken: dict[int, int] = {}

    def place(i: int, tried: set[int]) -> bool:
        for j in fits[i]:
            if j not in tried:
                tried.add(j)
                if j not in taken or place(taken[j], tried):
                    taken[j] = i
                    return True
        return False

    left = [i for i in range(len(expected)) if not place(i, set())]
    return left, [j for j in range(len(found)) if j not in taken]


def _paired(
    left: Sequence[Row], over: Sequence[Row], identity: Sequence[str]
) -> list[tuple[Row, Row]]:
    """Rows that are meant to be one and the same, those that differ least first; each is in one pair at most."""
    same = [
        (e, f) for e in left for f in over if all(agree(e[c], f.get(c)) for c in identity if c in e)
    ]
    pairs: list[tuple[Row, Row]] = []
    for e, f in sorted(same, key=lambda pair: len(_differing(*pair))):
        if all(e is not a and f is not b for a, b in pairs):
            pairs.append((e, f))
    return pairs


def _differing(expected: Row, found: Row) -> list[str]:
    return [name for name, value in expected.items() if not agree(value, found.get(name))]


def _unequal(expected: Row, found: Row, identity: Sequence[str]) -> Unequal:
    columns = {name: (expected[name], found.get(name)) for name in _differing(expected, found)}
    return Unequal({c: found[c] for c in identity if c in found and c not in columns}, columns)


def _brief(found: Row, expected: Sequence[Row], identity: Sequence[str]) -> Row:
    """The part of a row that tells which it is, and what is compared in this table; where nothing is, all that has a value."""
    compared = {name for other in expected for name in other}
    if not compared:
        return {
            name: value
            for name, value in found.items()
            if value not in (None, []) and name not in _ASIDE
        }
    return {name: value for name, value in found.items() if name in compared or name in identity}


def _changes(columns: Mapping[str, tuple[Any, Any]]) -> str:
    return "; ".join(
        f"{name}: expected {spelled(e)}, found {spelled(f)}" for name, (e, f) in columns.items()
    )


def _simple(text: str) -> bool:
    return bool(_PLAIN.fullmatch(text)) and text.lower() not in _WORDS
