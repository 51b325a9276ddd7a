"""Texts for lengths, zones and origins -> values, lengths as whole microseconds.

Every wrong text is a SpecError at its field.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from windowing.errors import SpecError
from windowing.grid.zone import micros
from windowing.spec.duration import DAY, FIXED_UNITS, FORM, UNITS, Duration
from windowing.spec.words import quote_value, suggest_name
from windowing.spec.zones import list_zones

ORIGIN_FORM = "a local date or time such as '2024-01-01' or '2024-01-01 06:00'"
ZONE_FORM = "a zone such as 'America/New_York' or 'UTC'"
INSTANT_FORM = "a time such as 2013-03-10 05:00, which is UTC, or 2013-03-10T00:00-05:00"
LONGEST_US = 9_999 * 366 * DAY
"""No length is longer than the calendar."""

_ORIGIN = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?", re.ASCII)
_OFFSET = re.compile(r"(UTC|GMT)?\s*[+-]\d{1,2}(:?\d\d)?", re.ASCII)
_ABBREVIATION = re.compile("[A-Z]{2,5}")
_LONGEST_TEXT = 100


def parse_duration(field: str, text: str, units: Sequence[str] = UNITS) -> Duration:
    """The duration `text` spells, at most 9,999 years either way; errors name these `units`."""
    if len(text) > _LONGEST_TEXT:
        raise SpecError(field, f"{quote_value(text)} is not {FORM}")
    try:
        found = Duration.parse(text, units)
    except ValueError as error:
        raise SpecError(field, str(error)) from None
    if abs(longest_us(found)) > LONGEST_US:
        raise SpecError(field, f"{text!r} is longer than 9,999 years")
    return found


def fixed_us(field: str, text: str) -> int:
    """Microseconds of a length that doesn't depend on the calendar; may be negative."""
    found = parse_duration(field, text, FIXED_UNITS)
    if found.months:
        raise SpecError(field, f"{text!r} has no fixed length; use weeks, days or shorter units")
    return found.us


def not_negative_us(field: str, text: str) -> int:
    """Microseconds >= 0."""
    us = fixed_us(field, text)
    if us < 0:
        raise SpecError(field, f"{text!r} is negative; it must be '0 seconds' or longer")
    return us


def positive_us(field: str, text: str) -> int:
    """Microseconds > 0."""
    return check_positive(field, text, fixed_us(field, text))


def check_positive(field: str, text: str, length: int) -> int:
    """`length`, spelled `text`, if it is > 0."""
    if length <= 0:
        raise SpecError(field, f"{text!r} is not longer than 0; it must be {FORM}")
    return length


def kept_us(field: str, text: str) -> int:
    """Microseconds > 0 of a length that may be calendar months, each as long as it can be."""
    length = parse_duration(field, text)
    return check_positive(field, text, longest_us(length))


def or_forever(field: str, text: str, read: Callable[[str, str], int]) -> int | None:
    """None for the word forever, else what `read` makes of the text."""
    if text.strip().lower() == "forever":
        return None
    try:
        return read(field, text)
    except SpecError as error:
        if any(digit in text for digit in "0123456789"):
            raise
        raise SpecError(field, f"{error.message}; or write forever, or 0 seconds") from None


def longest_us(length: Duration) -> int:
    """The most microseconds `length` can last: a month 31 days, a year 366.

    >>> longest_us(Duration(months=14)) // DAY
    428
    """
    if length.us:
        return length.us
    years, months = divmod(abs(length.months), 12)
    longest = (366 * years + 31 * months) * DAY
    return -longest if length.months < 0 else longest


def check_zone(field: str, name: str | None) -> str | None:
    """`name` if it is in the tz database, None if it is None."""
    if name is None or name in list_zones():
        return name
    raise SpecError(field, f"{quote_value(name)} is not {ZONE_FORM}{_advise_zone(name)}")


def _advise_zone(name: str) -> str:
    """What to write in place of a name that no zone has."""
    if _OFFSET.fullmatch(name):
        return "; an offset says nothing of daylight saving; write the zone of a city"
    if _ABBREVIATION.fullmatch(name):
        return "; an abbreviation can mean several zones; write the zone of a city"
    return suggest_name(name, list_zones())


def origin_us(field: str, text: str) -> int:
    """Local wall-clock microseconds since 1970-01-01T00:00 local."""
    try:
        if not _ORIGIN.fullmatch(text):
            raise ValueError(text)
        return micros(datetime.fromisoformat(text).replace(tzinfo=UTC))
    except ValueError:
        raise SpecError(
            field, f"{quote_value(text)} is not {ORIGIN_FORM}, without a zone of its own"
        ) from None


def instant(text: str) -> datetime | None:
    """The UTC instant that an ISO 8601 text names; None for any other text.

    A text without an offset is in UTC.

    >>> instant("2013-03-10T00:00-05:00") == instant("2013-03-10 05:00")
    True
    """
    try:
        at = datetime.fromisoformat(text.strip())
        if at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
        return at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
