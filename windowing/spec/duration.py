"""Durations as people write them, as whole microseconds or whole months."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from windowing.spec.dialects import count_units, native_length

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY
_FIXED_US = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": SECOND,
    "minute": MINUTE,
    "hour": HOUR,
    "day": DAY,
    "week": WEEK,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
FIXED_UNITS = tuple(_FIXED_US)
UNITS = (*FIXED_UNITS, *_MONTHS)
_PART = re.compile(r"([+-]?\d+)\s+([a-z]+?)s?(?=\s|$)")
FORM = "a duration such as '15 minutes', '1 hour 30 minutes' or '2 days'"


@dataclass(frozen=True)
class Duration:
    """A length of time: `us` microseconds or `months` calendar months.

    At most one of the two is not zero, because a month has no fixed length.

    >>> Duration.parse("1 hour 30 minutes").us
    5400000000
    >>> Duration.parse("1 quarter").months
    3
    """

    us: int = 0
    months: int = 0

    @staticmethod
    def parse(text: str, units: Sequence[str] = UNITS) -> "Duration":
        """The duration that `text` spells; ValueError with the grammar if it spells none.

        The grammar names these `units`. Units that are not among them are read all the same.
        """
        written = text.strip().lower()
        parts = _PART.findall(written)
        rest = _PART.sub("", written).strip()
        if not parts or rest:
            raise _not_a_duration(text, f"is not {FORM}", units)
        us = 0
        months = 0
        for number, unit in parts:
            if unit in _FIXED_US:
                us += int(number) * _FIXED_US[unit]
            elif unit in _MONTHS:
                months += int(number) * _MONTHS[unit]
            else:
                raise _not_a_duration(text, f"has the unit {unit!r}", units)
        if us and months:
            raise ValueError(f"{text!r} mixes months with fixed lengths; use one of them")
        return Duration(us, months)

    def __str__(self) -> str:
        if self.months:
            return count_units(self.months, "month")
        parts = [count_units(number, unit) for number, unit in _split_by_unit(self.us)]
        if not parts:
            return "0 seconds"
        return " ".join(parts)


def _not_a_duration(text: str, wrong: str, units: Sequence[str]) -> ValueError:
    meant = _meant_length(text, units)
    advice = f"; write {meant!r}" if meant else ""
    return ValueError(f"{text!r} {wrong}{advice}; units are {', '.join(units)}")


def _meant_length(text: str, units: Sequence[str]) -> str | None:
    """How to write the length that `text` spells in the way of another system, if it does."""
    length = native_length(text)
    if length is None:
        return None
    try:
        Duration.parse(length)
    except ValueError:
        return None
    named = [unit for _, unit in _PART.findall(length.lower())]
    return length if set(named) <= set(units) else None


def _split_by_unit(us: int) -> list[tuple[int, str]]:
    sign = -1 if us < 0 else 1
    rest = abs(us)
    parts = []
    for unit in ("day", "hour", "minute", "second", "millisecond", "microsecond"):
        number, rest = divmod(rest, _FIXED_US[unit])
        if number:
            parts.append((sign * number, unit))
    return parts
