"""Which columns of a sample have times, and how a spec says so."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

from windowing.grid.zone import micros
from windowing.ingest.candidates import last_part
from windowing.spec.duration import SECOND
from windowing.spec.times import instant

_UNITS = {"s": SECOND, "ms": 1_000, "us": 1}
_AGES = (datetime(1990, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
"""Numbers that would be times outside of these are none."""
_EVENT = re.compile(r"event|occur|happen|_at$|time|date|when|^ts$|^at$", re.IGNORECASE)
_OTHER_TIME = re.compile(r"creat|updat|modif|ingest|load|insert|process", re.IGNORECASE)
_NEARLY_ALL = 0.8


@dataclass(frozen=True)
class Times:
    """A column as times: microseconds since 1970, without what is none, and how a spec says it.

    `rank` is lower for what is more surely a time. `is_local`: the times name no zone.
    """

    us: Sequence[int]
    written: str
    what: str
    rank: int
    is_local: bool = False


def read_times(name: str, path: str, values: Sequence[Any]) -> Times | None:
    """The values of a column as times; None where most are none.

    A spec has it under `name`. `path` is where it lies, and its last part is what tells of times.
    """
    match next(iter(values), None):
        case bool():
            return None
        case datetime() as first:
            is_local = first.tzinfo is None
            return _times(values, _us_of, name, "a time", 1 if is_local else 0, is_local=is_local)
        case date():
            return _times(values, _us_of, name, "a date", 4, is_local=True)
        case str():
            return _times(values, _us_of_text, name, "text that is a time", 2, is_local=True)
        case int() if _says_event(path):
            for unit, us in _UNITS.items():
                written = f"{{column: {name}, unit: {unit}}}"
                what = f"a number, {unit} since 1970,"
                found = _times(values, _us_of_number(us), written, what, 3)
                if found is not None:
                    return found
    return None


def rank_time(path: str, times: Times, place: int) -> tuple[object, ...]:
    """What is lower for a column whose times are more surely those of events."""
    return (
        bool(_OTHER_TIME.search(path)),
        times.rank >= 3,
        not _says_event(path),
        times.rank,
        place,
    )


def _says_event(path: str) -> bool:
    return bool(_EVENT.search(last_part(path)))


def _times(
    values: Sequence[Any],
    read: Callable[[Any], int | None],
    written: str,
    what: str,
    rank: int,
    *,
    is_local: bool = False,
) -> Times | None:
    us = [at for value in values if (at := read(value)) is not None]
    if len(us) < _NEARLY_ALL * len(values):
        return None
    return Times(us, written, what, rank, is_local)


def _us_of(value: Any) -> int:
    if not isinstance(value, datetime):
        value = datetime.combine(value, time())
    return micros(value if value.tzinfo else value.replace(tzinfo=UTC))


def _us_of_text(value: str) -> int | None:
    at = instant(value) if "-" in value else None
    return None if at is None else micros(at)


def _us_of_number(unit_us: int) -> Callable[[Any], int | None]:
    low, high = map(micros, _AGES)

    def read(value: Any) -> int | None:
        us = int(value) * unit_us
        return us if low <= us <= high else None

    return read
