"""What a first spec may say, proposed from some rows of a source table by simple rules.

Each part has the reason why it is proposed, which stands in the spec as a comment. Nobody else
reads a proposal: a person corrects it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from windowing.columns import FILE
from windowing.ingest.candidates import Candidates, Rows, find_candidates, last_part
from windowing.ingest.disorder import Proposed, propose_delay, propose_lateness, propose_windows
from windowing.ingest.inference import is_number_in
from windowing.ingest.names import slug
from windowing.ingest.times import Times, rank_time, read_times
from windowing.spec.pipeline import CsvForm
from windowing.spec.words import count_things, is_number

_ID = re.compile(r"(?i:(^|_)(id|uuid|guid|number|nr|no)$)|[a-z]I[dD]$")
_WHICH_ONE = re.compile(r"^(id|uuid|guid|name|code|key|number|nr|no)$", re.IGNORECASE)
"""Fields that say which one their struct is about."""
_GROUP = re.compile(
    r"shop|store|site|sensor|device|user|customer|client|station|place|city|region|country|zone|"
    r"origin|host|server|machine|plant|team|product|category|type|channel",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"price|amount|total|revenue|cost|qty|quantity|count|bytes|size|paid|fee|tax|"
    r"betrag|bedrag|preis|umsatz|kosten|summe|menge|anzahl|montant|prix|import[eo]|pre[cz]+io|"
    r"prezzo",
    re.IGNORECASE,
)
_MEASURE = re.compile(
    r"temp|humid|pressure|speed|rate|ratio|percent|pct|share|score|level|angle|volt|degree|"
    r"^lat(itude)?$|^lon(gitude)?$|^lng$",
    re.IGNORECASE,
)
_MOST_GROUPS = 0.5
_FEW_TWICE = 0.8
_MOST_NUMBERS = 3
_TAKEN = "a name of its own, because that of the field is taken"


@dataclass(frozen=True)
class Proposal:
    """The parts of a spec; what is None is left out. Aggregates, windows and columns are by name.

    `columns` are names for fields of structs that can't have those of their last parts. `remarks`
    are sentences about columns of which nothing is proposed. `example` has a value of the sample
    for each column that an event needs besides its time.
    """

    event_time: Proposed
    zone: Proposed | None
    key: Proposed
    event_id: Proposed | None
    delay: Proposed
    allowed_lateness: Proposed
    aggregates: Mapping[str, Proposed]
    windows: Mapping[str, Proposed]
    columns: Mapping[str, Proposed] = field(default_factory=dict)
    remarks: Sequence[str] = ()
    example: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Refused:
    """Of records that an ingest refused, how many by the column of which they had no value.

    `csv` is how the values of its files are written.
    """

    by_column: Mapping[str, int] = field(default_factory=dict)
    csv: CsvForm = field(default_factory=CsvForm)


NONE_REFUSED = Refused()


def propose(rows: Rows, refused: Refused = NONE_REFUSED) -> Proposal | None:
    """A proposal from rows of the source table in the order of their files.

    Fields of structs are columns, too. None where no column has times.
    """
    found = find_candidates(rows)
    values, names = found.values, list(found.values)
    paths = {name: found.paths.get(name, name) for name in names}
    times = {n: read for n in names if (read := read_times(n, paths[n], values[n])) is not None}
    if not times:
        return None
    chosen = min(times, key=lambda n: rank_time(paths[n], times[n], names.index(n)))
    event_time = times[chosen]
    left = {name: each for name, each in values.items() if name != chosen}
    event_id = _find_id(left, paths)
    left = {name: each for name, each in left.items() if name != event_id and name not in times}
    key = _find_key(left, paths)
    named = _propose_key(key, left)
    by = named.value.strip("[]")
    numbers = [n for n in left if n != by and _is_numeric(left[n]) and not _says_id(paths[n])]
    measured = {name: left[name] for name in numbers[:_MOST_NUMBERS]}
    broken = refused.by_column
    used = {chosen, by, event_id, *measured}
    return Proposal(
        event_time=_propose_time(event_time, len(rows), broken.get(chosen, 0)),
        zone=_propose_zone(event_time),
        key=named,
        event_id=None if event_id is None else _propose_id(event_id, values[event_id]),
        delay=propose_delay(event_time.us),
        allowed_lateness=propose_lateness(event_time.us),
        aggregates=_propose_aggregates(measured, paths, last_part(by), broken),
        windows=propose_windows(event_time.us),
        columns={
            name: Proposed(path, _TAKEN) for name, path in found.paths.items() if name in used
        },
        remarks=list(_remark({n: left[n] for n in left if n != by}, paths, refused.csv)),
        example=_find_example(rows, found, (by, event_id)),
    )


def _propose_time(times: Times, rows: int, refused: int) -> Proposed:
    given, right = rows + refused, len(times.us)
    of_all = count_things(given, "record")
    some = f"all {of_all}" if right == given > 1 else f"{right:,} of {of_all}"
    return Proposed(times.written, f"{times.what} in {some}")


def _propose_zone(times: Times) -> Proposed | None:
    if not times.is_local:
        return None
    return Proposed("UTC", "times that name no zone are local there; set the zone of your clocks")


def _says_id(path: str) -> bool:
    return bool(_ID.search(path.replace(".", "_")))


def _find_id(columns: Mapping[str, Sequence[Any]], paths: Mapping[str, str]) -> str | None:
    named = [name for name in columns if _says_id(paths[name]) and _is_label(columns[name])]
    found = [name for name in named if _share_of_distinct(columns[name]) >= _FEW_TWICE]
    return found[0] if found else None


def _propose_id(name: str, values: Sequence[Any]) -> Proposed:
    twice = len(values) - len(set(values))
    repeat = "has one that came before" if twice == 1 else "have one that came before"
    found = f"{count_things(twice, 'record')} {repeat}" if twice else "no two records have the same"
    return Proposed(name, f"{found}; records with one id are one event")


def _find_key(columns: Mapping[str, Sequence[Any]], paths: Mapping[str, str]) -> str | None:
    """A column that groups events: by its name, else the text with the fewest values."""
    groups = [
        name
        for name, values in columns.items()
        if _is_label(values) and _share_of_distinct(values) <= _MOST_GROUPS
    ]
    # What is always the same groups nothing.
    groups = [name for name in groups if len(set(columns[name])) > 1] or groups
    texts = [name for name in groups if not _is_numeric(columns[name])]
    named = [name for name in groups if _GROUP.search(_say_what(paths[name]))]
    chosen = [name for name in named if name in texts] or named or texts
    return min(chosen, key=lambda name: len(set(columns[name])), default=None)


def _say_what(path: str) -> str:
    """What of a path says what a column is about: its last part, or which one its struct is."""
    last = last_part(path)
    return path if _WHICH_ONE.search(last) else last


def _propose_key(name: str | None, columns: Mapping[str, Sequence[Any]]) -> Proposed:
    if name is None:
        labels = (name for name, values in columns.items() if _is_label(values))
        switches = (name for name, values in columns.items() if _is_switch(values))
        chosen = next(labels, None) or next(switches, FILE)
        return Proposed(f"[{chosen}]", "no column groups events; choose what windows are about")
    different = len(set(columns[name]))
    made = f"{different:,} different values; windows are made for each"
    return Proposed(f"[{name}]", made if different > 1 else "the sample has one value of it")


def _propose_aggregates(
    numbers: Mapping[str, Sequence[Any]],
    paths: Mapping[str, str],
    key: str,
    refused: Mapping[str, int],
) -> dict[str, Proposed]:
    """A count, and sums or means of numbers; `key` is how outputs call the key."""
    counted = "events" if key != "events" else "event_count"
    found = {counted: Proposed("count()", "rows of each window")}
    for name, values in numbers.items():
        broken = refused.get(name, 0)
        given = len(values) + broken
        but = f"; in {len(values):,} of {given:,} records it is a number" if broken else ""
        for call, why in _choose_calls(last_part(paths[name]), values).items():
            made = f"{call}_{slug(last_part(name)) or 'value'}"
            found[made] = Proposed(f"{call}({name})", f"{why}{but}")
    return found


def _choose_calls(name: str, values: Sequence[Any]) -> dict[str, str]:
    """The calls that are of use for a number, each with the reason."""
    if _AMOUNT.search(name):
        return {"sum": "its name is that of an amount, which adds up"}
    if _MEASURE.search(name) or not all(isinstance(value, Decimal) for value in values):
        return {"avg": "a number, whose mean is of use"}
    return {
        "sum": "exact decimals are mostly amounts, which add up; remove it if these do not",
        "avg": "the mean of the same numbers",
    }


def _remark(
    columns: Mapping[str, Sequence[Any]], paths: Mapping[str, str], csv: CsvForm
) -> Iterator[str]:
    """What is said of columns of text whose values are nearly all numbers."""
    for name, values in columns.items():
        if _says_id(paths[name]) or not all(isinstance(value, str) for value in values):
            continue
        numbers = sum(is_number_in(value, csv) for value in values)
        others = len(values) - numbers
        if others and numbers >= _FEW_TWICE * len(values):
            are = "is no number" if others == 1 else "are no numbers"
            some = f"{others:,} of {len(values):,} values {are}"
            yield f"{name} is text, because {some}; no aggregate of it is proposed"


def _find_example(rows: Rows, found: Candidates, names: Sequence[str | None]) -> dict[str, Any]:
    """By name the first value that the sample has."""
    example: dict[str, Any] = {}
    for name in names:
        if name is not None:
            values = found.values.get(name) or [row.get(name) for row in rows]
            example[name] = next(iter(values), None)
    return example


def _is_label(values: Sequence[Any]) -> bool:
    """Whether values are texts or whole numbers, which true and false are not."""
    return bool(values) and all(
        isinstance(value, (str, int)) and not isinstance(value, bool) for value in values
    )


def _is_switch(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(value, bool) for value in values)


def _is_numeric(values: Sequence[Any]) -> bool:
    return bool(values) and all(map(is_number, values))


def _share_of_distinct(values: Sequence[Any]) -> float:
    return len(set(values)) / len(values) if values else 1.0
