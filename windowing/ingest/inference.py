"""Types of columns, guessed from some of their values, which are texts.

A guess never loses anything: digits with a leading zero stay text, and a date of which nobody can
tell whether day or month comes first does, too. A broken time or amount among many is left to
quarantine.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce

from windowing.spec.pipeline import CsvForm

SAMPLE = 5_000
"""How many records types are guessed from, of each group of files."""
TEXT = "string"
_BROKEN = 0.05
"""The share of values that may be none in a column of times or decimals."""


@dataclass(frozen=True)
class Guess:
    """The type of a column, and the pattern by which times are read; None for ISO 8601."""

    type: str
    format: str | None = None


_WHOLE = re.compile(r"[+-]?(0|[1-9]\d{0,17})")
_MONEY = re.compile(r"[+-]?(0|[1-9]\d{0,15})\.\d\d")
_NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)?(\.\d+)?([eE][+-]?\d{1,3})?")
_LONG = re.compile(r"[+-]?[1-9]\d{15,}(\.\d+)?")
"""A number of more whole digits than a double holds, whichever they are."""
_DIGITS = re.compile(r"[+-]?[.,'\s]*\d[\d.,'\s]*")
"""What a number of any form looks like, and a code of digits."""
_DAY = r"\d{4}-\d\d-\d\d"
_SECOND = r"\d\d(\.\d{1,6}0{0,3})?"
"""A time of Spark has no more than microseconds."""
_CLOCK = rf"\d\d:\d\d(:{_SECOND})?"
_ISO_DAY = re.compile(_DAY)
_ISO_LOCAL = re.compile(rf"{_DAY}[T ]{_CLOCK}")
_ISO_INSTANT = re.compile(rf"{_DAY}[T ]\d\d:\d\d:{_SECOND}(Z|[+-]\d\d(:\d\d)?)")
_SEPARATORS = "/.-"
_BOOLEANS = {"true", "false"}
_ENGLISH_CLOCK = re.compile(r"(0?[1-9]|1[0-2]):[0-5]\d [AP]M")
_DIGITAL_CLOCK = re.compile(r"([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d)?")


def guess_type(values: Iterable[str | None], csv: CsvForm) -> Guess:
    """The narrowest type that all values have; blanks and the nulls of the files say nothing.

    Whole numbers are bigint, those that all have two decimals decimal(18,2), because that is how
    money is written, and others double, unless one has more digits than a double holds. Times that
    name their zone are timestamp, others timestamp_ntz. A column is one of times or of decimals,
    too, if no more than one value in twenty is none. Among decimals that value has to have more
    than digits, because a number of another form, or a code, would be lost. Among whole numbers
    there is none, because codes look like them.
    """
    known = Counter(value.strip() for value in values if value)
    for nothing in ("", *csv.nulls):
        del known[nothing]
    if not known:
        return Guess(TEXT)
    guess = _guess_of_all(known, csv)
    times = set(filter(_is_time, known))
    if guess.type == TEXT and _are_nearly_all(times, known):
        guess = _guess_of_all(times, csv)
    if guess.type == TEXT:
        guess = _guess_decimals(known, csv)
    return guess


def _guess_decimals(known: Counter[str], csv: CsvForm) -> Guess:
    """The type of decimals where nearly all values are some and none is lost; else text."""
    numbers = {value for value in known if _is_held(_plain_number(value, csv))}
    has_decimals = any("." in _plain_number(value, csv) for value in numbers)
    is_lost = any(_DIGITS.fullmatch(value) for value in known if value not in numbers)
    if not has_decimals or is_lost or not _are_nearly_all(numbers, known):
        return Guess(TEXT)
    return _guess_of_all(numbers, csv)


def _are_nearly_all(some: Collection[str], known: Counter[str]) -> bool:
    """Whether no more than one value in twenty is none of these."""
    others = known.total() - sum(known[value] for value in some)
    return others <= known.total() * _BROKEN


def is_number_in(text: str, csv: CsvForm) -> bool:
    """Whether a text is a number of the form that the files have."""
    return _is_number(_plain_number(text.strip(), csv))


def _guess_of_all(values: Collection[str], csv: CsvForm) -> Guess:
    for kind, fits in _kinds(csv):
        if all(fits(value) for value in values):
            return Guess(kind)
    return _guess_format(values) or Guess(TEXT)


def _is_time(value: str) -> bool:
    """Whether a value is a date or a time, in whatever form."""
    iso = (_ISO_DAY, _ISO_INSTANT, _ISO_LOCAL)
    is_iso = any(form.fullmatch(value) for form in iso)
    return is_iso or any(any(_formats({value}, separator)) for separator in _SEPARATORS)


def _kinds(csv: CsvForm) -> Iterator[tuple[str, Callable[[str], object]]]:
    yield "boolean", lambda value: value.lower() in _BOOLEANS
    yield "bigint", lambda value: _WHOLE.fullmatch(_plain_number(value, csv))
    yield "decimal(18,2)", lambda value: _MONEY.fullmatch(_plain_number(value, csv))
    yield "double", lambda value: _is_held(_plain_number(value, csv))
    yield "date", _ISO_DAY.fullmatch
    yield "timestamp", _ISO_INSTANT.fullmatch
    yield "timestamp_ntz", _ISO_LOCAL.fullmatch


def _is_number(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text)) and any(character.isdigit() for character in text)


def _is_held(text: str) -> bool:
    """Whether a text is a number of which a double keeps all digits."""
    return _is_number(text) and not _LONG.fullmatch(text) and _keeps_digits(Decimal(text))


def _keeps_digits(number: Decimal) -> bool:
    """Whether the double that is next to a number is written as this number."""
    return Decimal(repr(float(number))) == number


def _plain_number(text: str, csv: CsvForm) -> str:
    """The number with a point before its decimals; as it is where it is none of this form."""
    if csv.thousands is not None and re.fullmatch(thousands_pattern(csv), text):
        text = text.replace(csv.thousands, "")
    if csv.decimal == ",":
        # A point would be one between thousands, or a mistake.
        return text.replace(".", "?").replace(",", ".")
    return text


def thousands_pattern(csv: CsvForm) -> str:
    """What a number with groups of three digits looks like."""
    between, before = re.escape(csv.thousands or ""), re.escape(csv.decimal)
    return rf"[+-]?\d{{1,3}}({between}\d{{3}})+({before}\d+)?"


def _guess_format(values: Collection[str]) -> Guess | None:
    """How dates or times that are not ISO 8601 are written; None where that can't be told."""
    found = [guess for separator in _SEPARATORS for guess in _formats(values, separator)]
    return found[0] if len(found) == 1 else None


def _formats(values: Collection[str], separator: str) -> Iterator[Guess]:
    """The forms with this separator that all values have, with day or month first."""
    day = re.compile(rf"(\d\d?){re.escape(separator)}(\d\d?){re.escape(separator)}\d{{4}}")
    heads, clocks = [], set()
    for value in values:
        date, _, clock = value.partition(" ")
        matched = day.fullmatch(date)
        if matched is None:
            return
        heads.append((int(matched[1]), int(matched[2])))
        clocks.add(clock.strip())
    suffix = _clock_format(clocks)
    if suffix is None:
        return
    kind = "timestamp_ntz" if suffix else "date"
    if all(1 <= first <= 31 and 1 <= second <= 12 for first, second in heads):
        yield Guess(kind, f"d{separator}M{separator}yyyy{suffix}")
    # Nobody writes the month first before points.
    if separator != "." and all(1 <= a <= 12 and 1 <= b <= 31 for a, b in heads):
        yield Guess(kind, f"M{separator}d{separator}yyyy{suffix}")


def _clock_format(clocks: set[str]) -> str | None:
    """The pattern of the time of day; empty without one, None for forms that are not known."""
    if clocks == {""}:
        return ""
    if all(_DIGITAL_CLOCK.fullmatch(clock) for clock in clocks):
        return " H:mm[:ss]"
    if all(_ENGLISH_CLOCK.fullmatch(clock) for clock in clocks):
        return " h:mm a"
    return None


Kind = str | tuple["Kind"] | dict[str, "Kind"] | None
"""The type of a value of JSON: its name, a list of one kind, an object; None for null."""
_NUMBERS = ("bigint", "long", "decimal", "double")
"""Spark calls bigint long, too; here it is one with numbers that no double holds."""
_HELD = 2**53
_MOST_DIGITS = 38


def infer_objects(objects: Iterable[Mapping[str, object]]) -> dict[str, str]:
    """By name the narrowest type that the values of these objects have, in order of appearance.

    What is sometimes an object, a list, a number or a text is text, and so is what is always null,
    and what has numbers that no type holds together. Numbers with a fraction are of Decimal.
    """
    found: Kind = {}
    for each in objects:
        found = _join(found, _kind_of(each))
    return {name: _write(kind) for name, kind in found.items()} if isinstance(found, dict) else {}


def _kind_of(value: object) -> Kind:
    match value:
        case None:
            return None
        case bool():
            return "boolean"
        case int():
            digits = len(str(abs(value)))
            if -(2**63) <= value < 2**63:
                return "bigint" if abs(value) <= _HELD else "long"
            return f"decimal({digits},0)" if digits <= _MOST_DIGITS else TEXT
        case Decimal():
            return "double" if _keeps_digits(value) else TEXT
        case float():
            return "double"
        case dict():
            return {name: _kind_of(each) for name, each in value.items()}
        case list():
            return (reduce(_join, map(_kind_of, value), None),)
        case _:
            return TEXT


def _join(one: Kind, other: Kind) -> Kind:
    """The kind of a place that has values of both."""
    if one is None or one == other:
        return other
    if other is None:
        return one
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: _join(one.get(name), other.get(name)) for name in {**one, **other}}
    if isinstance(one, tuple) and isinstance(other, tuple):
        return (_join(one[0], other[0]),)
    if isinstance(one, str) and isinstance(other, str) and _are_numbers(one, other):
        if "double" in (one, other):
            return "double" if "bigint" in (one, other) else TEXT
        # Of two decimals the name of the longer one is the greater text, because both have 19 or
        # more digits.
        return max(one, other, key=lambda kind: (kind.startswith("decimal"), kind))
    return TEXT


def _are_numbers(*kinds: str) -> bool:
    return all(kind.startswith(_NUMBERS) for kind in kinds)


def _write(kind: Kind) -> str:
    """The kind as Spark's text for a type."""
    match kind:
        case str():
            return kind
        case tuple():
            return f"array<{_write(kind[0])}>"
        case dict() if kind:
            fields = (f"`{n.replace('`', '``')}`: {_write(each)}" for n, each in kind.items())
            return f"struct<{', '.join(fields)}>"
        case _:
            return TEXT
