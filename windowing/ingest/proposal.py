"""What a first spec may say, proposed from some rows of a source table by simple rules.

Each part has the reason why it is proposed, which stands in the spec as a comment. Nobody else
reads a proposal: a person corrects it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

from windowing.columns import FILE, RESCUED
from windowing.grid.zone import micros
from windowing.ingest.names import slug
from windowing.spec.duration import DAY, HOUR, MINUTE, SECOND, Duration
from windowing.spec.times import instant
from windowing.spec.words import is_number

_STEPS = (
    *(0, SECOND, 10 * SECOND, MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE),
    *(HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 30 * DAY, 365 * DAY),
)
"""Lengths that people would write."""
_SIZES = ((60 * DAY, "daily", DAY), (6 * HOUR, "hourly", HOUR), (0, "minutes", 10 * MINUTE))
"""From which span of event times on windows are so long, and what they are called."""
_UNITS = {"s": SECOND, "ms": 1_000, "us": 1}
_AGES = (datetime(1990, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
"""Numbers that would be times outside of these are none."""
_EVENT = re.compile(r"event|occur|happen|_at$|time|date|when|^ts$|^at$", re.IGNORECASE)
_OTHER_TIME = re.compile(r"creat|updat|modif|ingest|load|insert|process", re.IGNORECASE)
_ID = re.compile(r"(^|_)(id|uuid|guid|number|nr|no)$|[a-z]Id$", re.IGNORECASE)
_GROUP = re.compile(
    r"shop|store|site|sensor|device|user|customer|client|station|place|city|region|country|zone|"
    r"origin|host|server|machine|plant|team|product|category|type|channel",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"price|amount|total|revenue|cost|qty|quantity|count|bytes|size|paid|fee|tax", re.IGNORECASE
)
_MOST_GROUPS = 0.5
_FEW_TWICE = 0.8
_MOST_NUMBERS = 3


@dataclass(frozen=True)
class Proposed:
    """One part of a spec as it is written in YAML, and why."""

    value: str
    why: str


@dataclass(frozen=True)
class Proposal:
    """The parts of a spec; what is None is left out. Aggregates and windows are by name."""

    event_time: Proposed
    zone: Proposed | None
    key: Proposed
    event_id: Proposed | None
    delay: Proposed
    allowed_lateness: Proposed
    aggregates: Mapping[str, Proposed]
    windows: Mapping[str, Proposed]


Rows = Sequence[Mapping[str, Any]]


def propose(rows: Rows) -> Proposal | None:
    """A proposal from rows of the source table in the order of their files.

    Fields of structs are proposed where no column itself has times, as in GeoJSON. None where none
    of them has, either.
    """
    names = [name for name in (rows[0] if rows else {}) if name not in (FILE, RESCUED)]
    columns = {name: [row[name] for row in rows if row[name] is not None] for name in names}
    times = _find_times(columns)
    if not times:
        columns |= _fields_of(columns)
        times = _find_times(columns)
    if not times:
        return None
    names = list(columns)
    chosen = min(times, key=lambda name: _rank_time(name, times[name], names))
    event_time = times[chosen]
    left = {name: values for name, values in columns.items() if name != chosen}
    event_id = _find_id(left)
    left = {name: values for name, values in left.items() if name != event_id and name not in times}
    key = _find_key(left)
    numbers = [name for name in left if name != key and _is_numeric(left[name])]
    return Proposal(
        event_time=Proposed(event_time.written, event_time.why),
        zone=_propose_zone(event_time),
        key=_propose_key(key, left),
        event_id=None if event_id is None else _propose_id(event_id, columns[event_id]),
        delay=_propose_delay(event_time.us),
        allowed_lateness=_propose_lateness(event_time.us),
        aggregates=_propose_aggregates(numbers[:_MOST_NUMBERS], key),
        windows=_propose_windows(event_time.us),
    )


def _find_times(columns: Mapping[str, Sequence[Any]]) -> "dict[str, Times]":
    return {name: found for name, values in columns.items() if (found := read_times(name, values))}


@dataclass(frozen=True)
class Times:
    """A column as times: microseconds since 1970, without what is none, and how a spec says it.

    `rank` is lower for what is more surely a time. `is_local`: the times name no zone.
    """

    us: Sequence[int]
    written: str
    why: str
    rank: int
    is_local: bool = False


def read_times(name: str, values: Sequence[Any]) -> Times | None:
    """The values of a column as times; None where most are none."""
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
        case int() if _EVENT.search(name):
            for unit, us in _UNITS.items():
                written = f"{{column: {name}, unit: {unit}}}"
                why = f"a number, {unit} since 1970"
                found = _times(values, _us_of_number(us), written, why, 3)
                if found is not None:
                    return found
    return None


def _times(
    values: Sequence[Any],
    read: Callable[[Any], int | None],
    written: str,
    why: str,
    rank: int,
    *,
    is_local: bool = False,
) -> Times | None:
    us = [at for value in values if (at := read(value)) is not None]
    right, given = len(us), len(values)
    if right < _FEW_TWICE * given:
        return None
    some = "all of them" if right == given else f"{right:,} of {given:,}"
    return Times(us, written, f"{why} in {some}", rank, is_local)


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


def _rank_time(name: str, times: Times, names: Sequence[str]) -> tuple[object, ...]:
    return (
        bool(_OTHER_TIME.search(name)),
        times.rank >= 3,
        not _EVENT.search(name),
        times.rank,
        names.index(name),
    )


def _propose_zone(times: Times) -> Proposed | None:
    if not times.is_local:
        return None
    return Proposed("UTC", "times that name no zone are local there; set the zone of your clocks")


def _find_id(columns: Mapping[str, Sequence[Any]]) -> str | None:
    named = [name for name in columns if _ID.search(name) and _is_label(columns[name])]
    found = [name for name in named if _share_of_distinct(columns[name]) >= _FEW_TWICE]
    return found[0] if found else None


def _propose_id(name: str, values: Sequence[Any]) -> Proposed:
    twice = len(values) - len(set(values))
    found = "no two rows have the same" if not twice else f"{twice:,} rows repeat one"
    return Proposed(name, f"{found}; rows with one id are one event")


def _find_key(columns: Mapping[str, Sequence[Any]]) -> str | None:
    """A column that groups events: by its name, else the text with the fewest values."""
    groups = [
        name
        for name, values in columns.items()
        if _is_label(values) and _share_of_distinct(values) <= _MOST_GROUPS
    ]
    # What is always the same groups nothing.
    groups = [name for name in groups if len(set(columns[name])) > 1] or groups
    texts = [name for name in groups if not _is_numeric(columns[name])]
    named = [name for name in groups if _GROUP.search(name)]
    chosen = [name for name in named if name in texts] or named or texts
    return min(chosen, key=lambda name: len(set(columns[name])), default=None)


def _propose_key(name: str | None, columns: Mapping[str, Sequence[Any]]) -> Proposed:
    if name is None:
        first = next((name for name, values in columns.items() if _is_label(values)), FILE)
        nested = _find_key(_fields_of(columns))
        advice = "" if nested is None else f", such as {nested}"
        why = f"no column groups events; choose what windows are about{advice}"
        return Proposed(f"[{first}]", why)
    different = len(set(columns[name]))
    return Proposed(f"[{name}]", f"{different:,} different values; windows are made for each")


def _fields_of(columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """The fields of columns that are structs, as a spec names them.

    Those whose names would need backticks are left out.
    """
    found: dict[str, list[Any]] = {}
    for name, values in columns.items():
        for value in values:
            for field, part in value.items() if isinstance(value, dict) else ():
                if part is not None and f"{name}{field}".isidentifier():
                    found.setdefault(f"{name}.{field}", []).append(part)
    return found


def _propose_delay(times: Sequence[int]) -> Proposed:
    lags = sorted(_lags(times))
    usual = lags[int(0.99 * (len(lags) - 1))] if lags else 0
    delay = round_up(usual)
    why = "99 of 100 events come no further behind the latest one"
    return Proposed(write_length(delay), why if usual else "events come in order of time")


def _propose_lateness(times: Sequence[int]) -> Proposed:
    latest = max(_lags(times), default=0)
    _, size = _window_of(times)
    lateness = round_up(max(10 * latest, size))
    told = write_length(latest - latest % (MINUTE if latest > HOUR else SECOND))
    why = f"the latest event came {told} behind" if latest else "no event was late"
    return Proposed(write_length(lateness), f"{why}; forever is allowed, too")


def _lags(times: Sequence[int]) -> list[int]:
    """How far each event is behind the latest one before it."""
    lags, latest = [], None
    for at in times:
        latest = at if latest is None else max(latest, at)
        lags.append(latest - at)
    return lags


def round_up(us: int) -> int:
    """The shortest length that people would write and that is at least so long."""
    return next((step for step in _STEPS if step >= us), -(-us // DAY) * DAY)


def write_length(us: int) -> str:
    """A length as a spec has it."""
    return "0 seconds" if us == 0 else str(Duration(us))


def _window_of(times: Sequence[int]) -> tuple[str, int]:
    span = max(times) - min(times) if times else 0
    return next((name, size) for least, name, size in _SIZES if span >= least)


def _propose_windows(times: Sequence[int]) -> dict[str, Proposed]:
    name, size = _window_of(times)
    span = round_up(max(times) - min(times)) if times else 0
    text = f"{{kind: tumbling, size: {write_length(size)}}}"
    return {name: Proposed(text, f"the sample spans about {write_length(span)}")}


def _propose_aggregates(numbers: Sequence[str], taken: str | None) -> dict[str, Proposed]:
    """A count, and sums or means of numbers; the column `taken` is the key."""
    counted = "events" if taken != "events" else "event_count"
    found = {counted: Proposed("count()", "rows of each window")}
    for name in numbers:
        call = "sum" if _AMOUNT.search(name) else "avg"
        made = f"{call}_{slug(name) or 'value'}"
        why = "an amount, which adds up" if call == "sum" else "a number, whose mean is of use"
        found[made] = Proposed(f"{call}({name})", why)
    return found


def _is_label(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(value, (str, int)) for value in values)


def _is_numeric(values: Sequence[Any]) -> bool:
    return bool(values) and all(map(is_number, values))


def _share_of_distinct(values: Sequence[Any]) -> float:
    return len(set(values)) / len(values) if values else 1.0
