"""Durations as people write them, as whole microseconds or whole months."""

import re
from dataclasses import dataclass

from windowing.spec.dialects import native_length

SECOND = 1_000_000
MINUTE, HOUR, DAY, WEEK = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND, 604_800 * SECOND
_FIXED = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": SECOND,
    "minute": MINUTE,
    "hour": HOUR,
    "day": DAY,
    "week": WEEK,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_UNITS = (*_FIXED, *_MONTHS)
_PART = re.compile(r"([+-]?\d+)\s+([a-z]+?)s?(?=\s|$)")
FORM = "a duration such as '15 minutes', '1 hour 30 minutes' or '2 days'"


@dataclass(frozen=True)
class Duration:
    """A length of time: `us` microseconds, or `months` calendar months; exactly one is not zero, or both are zero.

    >>> Duration.parse("1 hour 30 minutes").us
    5400000000
    >>> Duration.parse("1 quarter").months
    3
    """

    us: int = 0
    months: int = 0

    @staticmethod
    def parse(text: str) -> "Duration":
        """The duration that `text` spells; ValueError with the grammar when it spells none."""
        parts = _PART.findall(text.strip().lower())
        unknown = [unit for _, unit in parts if unit not in _FIXED and unit not in _MONTHS]
        strange = not parts or _PART.sub("", text.strip().lower()).strip()
        if strange or unknown:
            wrong = f"is not {FORM}" if strange else f"has the unit {unknown[0]!r}"
            meant = _meant(text)
            advice = f"; write {meant!r}" if meant else ""
            raise ValueError(f"{text!r} {wrong}{advice}; units are {', '.join(_UNITS)}")
        us = sum(int(n) * _FIXED[u] for n, u in parts if u in _FIXED)
        months = sum(int(n) * _MONTHS[u] for n, u in parts if u in _MONTHS)
        if us and months:
            raise ValueError(f"{text!r} mixes months with fixed lengths; use one of them")
        return Duration(us, months)

    def __str__(self) -> str:
        if self.months:
            return _plural(self.months, "month")
        return " ".join(_plural(n, unit) for n, unit in _split(self.us)) or "0 seconds"


def _meant(text: str) -> str | None:
    """How the length is written that `text` spells as other systems do."""
    said = native_length(text)
    try:
        return said if said and Duration.parse(said) else None
    except ValueError:
        return None


def _plural(n: int, unit: str) -> str:
    return f"{n} {unit}" if abs(n) == 1 else f"{n} {unit}s"


def _split(us: int) -> list[tuple[int, str]]:
    sign, rest, out = (-1 if us < 0 else 1), abs(us), []
    for unit in ("day", "hour", "minute", "second", "millisecond", "microsecond"):
        n, rest = divmod(rest, _FIXED[unit])
        if n:
            out.append((sign * n, unit))
    return out
