"""How the rows of a table differ from those expected: as values and as people read it.

Rows are missing, not expected, or there with other values.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from math import isclose, isnan
from typing import Any

from windowing.report.text import instant, plain, plain_fields
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
    """A row that is there with other values.

    `columns` has (expected, found) for each that differs, and `place` identifies the row.
    """

    place: Row
    columns: Mapping[str, tuple[Any, Any]]

    def as_json(self) -> dict[str, object]:
        """The row as plain JSON values."""
        columns = {}
        for name, (expected, found) in self.columns.items():
            columns[name] = {"expected": plain(expected), "found": plain(found)}
        return {"row": plain(self.place), "columns": columns}


@dataclass(frozen=True)
class Difference:
    """Where a table is not what was expected."""

    table: str
    missing: tuple[Row, ...]
    unexpected: tuple[Row, ...]
    unequal: tuple[Unequal, ...]

    def as_json(self) -> dict[str, object]:
        """The difference as plain JSON values."""
        return {**plain_fields(self, "unequal"), "different": plain(self.unequal)}


def find_difference(
    table: str, expected: Sequence[Row], found: Sequence[Row], identity: Sequence[str]
) -> Difference | None:
    """How the rows `found` differ from those `expected`, in any order; None if they agree.

    A column that an expected row leaves out is not compared. `identity` are the columns that
    identify a row.
    """
    unmatched_expected, unmatched_found = _unmatched_rows(expected, found)
    if not unmatched_expected and not unmatched_found:
        return None
    pairs = _pair_rows(unmatched_expected, unmatched_found, identity)
    missing = []
    for row in unmatched_expected:
        if all(row is not other for other, _ in pairs):
            missing.append(row)
    unexpected = []
    for row in unmatched_found:
        if all(row is not other for _, other in pairs):
            unexpected.append(_shorten_row(row, expected, identity))
    unequal = [_to_unequal(*pair, identity) for pair in pairs]
    return Difference(table, tuple(missing), tuple(unexpected), tuple(unequal))


def lines(found: Difference) -> list[str]:
    """The difference as lines of text; rows are written as a transcript writes them."""
    table = found.table
    written = []
    for unequal in found.unequal:
        changes = _describe_changes(unequal.columns)
        if unequal.place:
            changes = f"{table}: {format_row(unequal.place)} differs in {changes}"
        written.append(changes)
    for missing in found.missing:
        written.append(f"{table}: {format_row(missing)} is missing")
    for unexpected in found.unexpected:
        written.append(f"{table}: {format_row(unexpected)} was not expected")
    return written


def format_row(values: Row) -> str:
    """A row on one line, as YAML.

    >>> format_row({"origin": "JFK", "flights": 2, "worst": None, "gate": "12"})
    "{origin: JFK, flights: 2, worst: null, gate: '12'}"
    """
    if not values:
        return ""
    fields = ", ".join(f"{name}: {spell_value(value)}" for name, value in values.items())
    return f"{{{fields}}}"


def spell_value(value: Any) -> str:
    """A value as a transcript writes it."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.10g}"
        case Decimal():
            return f"{value:f}"
        case datetime():
            return instant(value)
        case list() | tuple():
            return f"[{', '.join(map(spell_value, value))}]"
        case Mapping():
            return format_row(value) or "{}"
        case str():
            return value if _needs_no_quotes(value) else repr(value)
    return str(value)


def values_agree(expected: Any, found: Any, *, nested: bool = False) -> bool:
    """Whether a value is the one that a transcript expects.

    Times are compared as instants, whole numbers and decimals exactly, fractions nearly. Of a
    nested mapping only the expected fields are compared; nested times are texts.
    """
    match found:
        case bool() | None:
            return expected is found
        case datetime():
            return _to_moment(expected) == found
        case int() | float() | Decimal():
            return _same_number(expected, found)
        case list():
            return _lists_agree(expected, found)
        case dict():
            return _mappings_agree(expected, found)
    if not isinstance(expected, str):
        return False
    return expected == found or (nested and _same_moment(expected, found))


def _lists_agree(expected: Any, found: list[Any]) -> bool:
    if not isinstance(expected, list) or len(expected) != len(found):
        return False
    return all(values_agree(e, f, nested=True) for e, f in zip(expected, found, strict=True))


def _mappings_agree(expected: Any, found: dict[Any, Any]) -> bool:
    if not isinstance(expected, dict):
        return False
    return all(
        values_agree(value, found.get(name), nested=True) for name, value in expected.items()
    )


def _same_moment(expected: Any, found: Any) -> bool:
    moment = _to_moment(expected)
    return moment is not None and moment == _to_moment(found)


def _to_moment(value: Any) -> datetime | None:
    if isinstance(value, str):
        return read_instant(value)
    return value if isinstance(value, datetime) else None


def _same_number(expected: Any, found: float | Decimal) -> bool:
    if isinstance(found, Decimal):
        return _same_decimal(expected, found)
    if not isinstance(expected, (int, float)) or isinstance(expected, bool):
        return False
    if isinstance(found, int):
        return expected == found
    if isnan(found) and isnan(expected):
        return True
    return isclose(expected, found, rel_tol=CLOSE, abs_tol=CLOSE * CLOSE)


def _same_decimal(expected: Any, found: Decimal) -> bool:
    if not isinstance(expected, (int, float, str, Decimal)) or isinstance(expected, bool):
        return False
    try:
        return Decimal(str(expected)) == found
    except ArithmeticError:
        # A text that is no number.
        return False


def _rows_agree(expected: Row, found: Row) -> bool:
    return all(values_agree(value, found.get(name)) for name, value in expected.items())


def _unmatched_rows(expected: Sequence[Row], found: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The rows that are left once as many as possible are matched, each with one that agrees.

    An expected row can agree with several found ones, because it names only some columns. So this
    is a maximum matching, found by augmenting paths.
    """
    # For each expected row the indexes of the found rows that it agrees with.
    candidates: list[list[int]] = []
    for row in expected:
        candidates.append([j for j, other in enumerate(found) if _rows_agree(row, other)])
    # By the index of a found row that of the expected row that it is matched with.
    taken: dict[int, int] = {}

    def place_row(i: int, tried: set[int]) -> bool:
        """Matches expected row `i`, and moves the rows that stand in its way if they can be."""
        for j in candidates[i]:
            if j in tried:
                continue
            tried.add(j)
            if j not in taken or place_row(taken[j], tried):
                taken[j] = i
                return True
        return False

    unmatched_expected = [row for i, row in enumerate(expected) if not place_row(i, set())]
    unmatched_found = [row for j, row in enumerate(found) if j not in taken]
    return unmatched_expected, unmatched_found


def _pair_rows(
    expected: Sequence[Row], found: Sequence[Row], identity: Sequence[str]
) -> list[tuple[Row, Row]]:
    """Pairs of one row with other values than expected, those that differ least first.

    Each row is in one pair at most.
    """
    candidates: list[tuple[Row, Row]] = []
    for expected_row in expected:
        for found_row in found:
            if _same_identity(expected_row, found_row, identity):
                candidates.append((expected_row, found_row))
    candidates.sort(key=lambda pair: len(_differing_columns(*pair)))
    pairs: list[tuple[Row, Row]] = []
    for expected_row, found_row in candidates:
        # Equal rows are different rows, so they are compared by identity.
        is_free = all(expected_row is not e and found_row is not f for e, f in pairs)
        if is_free:
            pairs.append((expected_row, found_row))
    return pairs


def _same_identity(expected: Row, found: Row, identity: Sequence[str]) -> bool:
    named = [name for name in identity if name in expected]
    return all(values_agree(expected[name], found.get(name)) for name in named)


def _differing_columns(expected: Row, found: Row) -> list[str]:
    return [name for name, value in expected.items() if not values_agree(value, found.get(name))]


def _to_unequal(expected: Row, found: Row, identity: Sequence[str]) -> Unequal:
    columns = {}
    for name in _differing_columns(expected, found):
        columns[name] = (expected[name], found.get(name))
    place = {name: found[name] for name in identity if name in found and name not in columns}
    return Unequal(place, columns)


def _shorten_row(found: Row, expected: Sequence[Row], identity: Sequence[str]) -> Row:
    """The columns of a row that identify it or are compared in this table.

    Where none is compared, they are all columns that have a value.
    """
    compared: set[str] = set().union(*expected)
    shown = {}
    for name, value in found.items():
        if compared:
            is_shown = name in compared or name in identity
        else:
            is_shown = value not in (None, []) and name not in _ASIDE
        if is_shown:
            shown[name] = value
    return shown


def _describe_changes(columns: Mapping[str, tuple[Any, Any]]) -> str:
    changes = []
    for name, (expected, found) in columns.items():
        changes.append(f"{name}: expected {spell_value(expected)}, found {spell_value(found)}")
    return "; ".join(changes)


def _needs_no_quotes(text: str) -> bool:
    return bool(_PLAIN.fullmatch(text)) and text.lower() not in _WORDS
