"""Rows of an output, as Arrow has them -> what they say of corrections. Nothing is read here.

rows[keys, window_start, window_end, identity, revision, run] -> `Revisions`
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowing.columns import END, INDEX, REVISION, RUN, START
from windowing.report.ages import count_ages
from windowing.report.arrow_values import plain_rows
from windowing.report.facts import Revised, Revisions, Shape, Was
from windowing.report.text import interval, moment_or_none
from windowing.spec.duration import DAY, HOUR, MINUTE
from windowing.storage.file_rows import to_micros
from windowing.values import is_same

MOST_REVISED = 5
"""So many windows of each output are shown with their history."""
_MOST_STRETCHES = 100
_WIDTHS = (
    MINUTE,
    5 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    28 * DAY,
    91 * DAY,
    364 * DAY,
)
"""How long a stretch of a shape may be, in microseconds; more time takes multiples of the last."""


@dataclass(frozen=True)
class Picked:
    """Which rows are followed through the versions of an output, most revised ones first.

    `identity` are the columns that name a row, and `rows` have them, its bounds, revision and run.
    Their times are whole microseconds; `told` are the same rows as people read them.
    """

    identity: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    told: tuple[Mapping[str, Any], ...]

    @property
    def names(self) -> tuple[tuple[Any, ...], ...]:
        """The identity of each row."""
        return tuple(name_row(row, self.identity) for row in self.rows)


def measure_revisions(rows: pa.Table, watermarks: Mapping[int, int | None]) -> Revisions:
    """How far back corrections went, from the newest rows of an output.

    `watermarks` has W before each run. The rows have window_end, revision and run.
    """
    revised = rows.filter(pc.greater(rows[REVISION], 0))
    back, open_rows, unknown = [], 0, 0
    for end, run in zip(revised[END].to_pylist(), revised[RUN].to_pylist(), strict=True):
        if end is None or run not in watermarks:
            unknown += 1
            continue
        before = watermarks[run]
        if before is None or end > before:
            open_rows += 1
        else:
            back.append(before - end)
    return Revisions(count_ages(back), open_rows, unknown)


def pick_most_revised(rows: pa.Table, identity: Sequence[str]) -> Picked:
    """The rows of highest revision, newest runs first; none that never changed."""
    revised = rows.filter(pc.greater(rows[REVISION], 0))
    order = [(REVISION, "descending"), (RUN, "descending"), (START, "descending")]
    first = revised.take(pc.select_k_unstable(revised, MOST_REVISED, order))
    return Picked(tuple(identity), tuple(to_micros(first).to_pylist()), tuple(plain_rows(first)))


def find_picked(picked: Picked, rows: pa.Table) -> Mapping[tuple[Any, ...], Mapping[str, Any]]:
    """Those rows of another version that have the identity of a picked one, by that identity.

    They are told as people read them.
    """
    times = to_micros(rows)
    for column in picked.identity:
        wanted = pa.array({row[column] for row in picked.rows}, times.schema.field(column).type)
        is_wanted = pc.is_in(times[column], wanted)
        rows, times = rows.filter(is_wanted), times.filter(is_wanted)
    names = {*picked.names}
    found = {}
    identities = times.select(list(picked.identity)).to_pylist()
    for row, told in zip(identities, plain_rows(rows), strict=True):
        name = name_row(row, picked.identity)
        if name in names:
            found[name] = told
    return found


def tell_history(
    picked: Picked,
    versions: Iterable[Mapping[tuple[Any, ...], Mapping[str, Any]]],
    keys: Sequence[str],
    aggregates: Sequence[str],
    zone: str | None,
) -> tuple[Revised, ...]:
    """Each picked row with what it was in `versions`, oldest first; one that stayed is told once.

    The columns `keys` and `aggregates` are told, and no other ones; what a version lacks is None.
    Windows are named on the clock of the `zone`.
    """
    kept = tuple(versions)
    found = []
    for row, name, told in zip(picked.rows, picked.names, picked.told, strict=True):
        history: list[Was] = []
        for version in kept:
            if name not in version:
                continue
            then = version[name]
            was = Was(
                then[RUN], then[REVISION], {column: then.get(column) for column in aggregates}
            )
            if not history or not _is_as_before(history[-1], was):
                history.append(was)
        key = {column: told[column] for column in keys}
        revised = Revised(_name_window(row, zone), key, row[REVISION], row[RUN], tuple(history))
        found.append(revised)
    return tuple(found)


def draw_shape(newest: pa.Table, published: pa.Table | None) -> Shape | None:
    """How many rows of both versions begin in each stretch; None where no window has a start."""
    times = [pc.min_max(rows[START]).as_py() for rows in (newest, published) if rows is not None]
    lows = [time["min"] for time in times if time["min"] is not None]
    highs = [time["max"] for time in times if time["max"] is not None]
    if not lows:
        return None
    width = choose_width(max(highs) - min(lows))
    before, after = _count_starts(published, width), _count_starts(newest, width)
    starts = sorted({*before, *after})
    return Shape(
        width_us=width,
        starts_us=tuple(starts),
        newest=tuple(after.get(start, 0) for start in starts),
        published=None if published is None else tuple(before.get(at, 0) for at in starts),
    )


def choose_width(span_us: int) -> int:
    """The least length of stretches of which about a hundred make the span.

    >>> choose_width(30 * HOUR) // MINUTE, choose_width(40_000 * DAY) // DAY
    (30, 728)
    """
    for width in _WIDTHS:
        if span_us <= width * _MOST_STRETCHES:
            return width
    longest = _WIDTHS[-1]
    return longest * -(-span_us // (longest * _MOST_STRETCHES))


def name_row(row: Mapping[str, Any], identity: Sequence[str]) -> tuple[Any, ...]:
    """The values by which a row is found in another version."""
    return tuple(row[column] for column in identity)


def _is_as_before(before: Was, now: Was) -> bool:
    same = (before.run, before.revision) == (now.run, now.revision)
    return same and is_same(dict(before.values), dict(now.values))


def _count_starts(rows: pa.Table | None, width_us: int) -> Mapping[int, int]:
    """The rows by the start of the stretch in which their window begins."""
    if rows is None:
        return {}
    counts: dict[int, int] = {}
    for group in pc.value_counts(rows[START].combine_chunks()).to_pylist():
        if group["values"] is not None:
            # Arrow divides towards zero, and Python downwards, also before 1970.
            start = group["values"] // width_us * width_us
            counts[start] = counts.get(start, 0) + group["counts"]
    return counts


def _name_window(row: Mapping[str, Any], zone: str | None) -> str:
    start, end = (None if row[at] is None else moment_or_none(row[at]) for at in (START, END))
    if start is None and end is None:
        return "all time" if row.get(INDEX) is None else f"number {row[INDEX]}"
    place = interval(start, end, zone)
    return place if row.get(INDEX) is None else f"{place}, number {row[INDEX]}"
