"""Values as people read them and as JSON has them.

Every time is UTC, but the bounds of windows on the clock of a zone have its offset.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite
from typing import Any
from zoneinfo import ZoneInfo

from windowing.columns import END, START
from windowing.grid.zone import moment, within_calendar
from windowing.ledger.evolved import read_evolved
from windowing.ledger.nulls import WHERE
from windowing.ledger.period import read_period
from windowing.ledger.rule import LedgerExcerpt
from windowing.location import Location
from windowing.spec.kinds import Window, zone_of
from windowing.spec.words import count_things

NONE = "-"
"""How a table shows a value that isn't there."""


def instant(at: datetime | None) -> str:
    """`at` (aware) in UTC, without seconds where there are none; '-' for no time.

    >>> instant(datetime(2013, 1, 1, 5, tzinfo=UTC))
    '2013-01-01 05:00Z'
    >>> instant(datetime(2013, 1, 1, 5, 0, 1, 500_000, tzinfo=UTC))
    '2013-01-01 05:00:01.5Z'
    """
    return _format(_read_clock(at, None))


def instant_us(us: int | None) -> str:
    """`instant` of microseconds since 1970, also beyond the years a datetime has."""
    if us is None:
        return NONE
    known = moment_or_none(us)
    return f"{us} us since 1970" if known is None else instant(known)


def interval(start: datetime | None, end: datetime | None, zone: str | None = None) -> str:
    """The half-open window from `start` (inclusive) to `end` (exclusive), on the clock of a zone.

    The day of `end` is left out where it is that of `start`. Without a zone times are in UTC.

    >>> first, last = datetime(2013, 3, 10, 5, tzinfo=UTC), datetime(2013, 3, 11, 4, tzinfo=UTC)
    >>> interval(first, last)
    '[2013-03-10 05:00Z, 2013-03-11 04:00Z)'
    >>> interval(first, last, "America/New_York")
    '[2013-03-10 00:00-05:00, 2013-03-11 00:00-04:00)'
    >>> interval(datetime(2013, 1, 1, 5, tzinfo=UTC), datetime(2013, 1, 1, 6, tzinfo=UTC))
    '[2013-01-01 05:00Z, 06:00Z)'
    """
    begins, ends = (_read_clock(at, zone) for at in (start, end))
    shown_end = _format(ends)
    if begins is not None and ends is not None and begins.date() == ends.date():
        shown_end = _format_clock(ends)
    return f"[{_format(begins)}, {shown_end})"


def window_cell(row: Mapping[str, Any], window: Window) -> str:
    """The bounds of a row of an output, on the clock of its window."""
    start, end = row[START], row[END]
    if start is None and end is None:
        return "all time"
    if isinstance(start, datetime) and isinstance(end, datetime):
        return interval(start, end, zone_of(window))
    # A time beyond the calendar of Python is shown as its text.
    return f"[{start}, {end})"


def row_cells(
    row: Mapping[str, Any], keys: Sequence[str], window: Window, others: Sequence[str] = ()
) -> list[Any]:
    """The values of a row of an output by its keys, its bounds as one cell, and other values."""
    return [*(row[key] for key in keys), window_cell(row, window), *(row[name] for name in others)]


def list_others(columns: Iterable[str], keys: Sequence[str]) -> list[str]:
    """The columns of an output beside the keys and the bounds."""
    return [name for name in columns if name not in (*keys, START, END)]


def describe_range(note: str | None) -> str:
    """The range of event time in the ledger's note of a backfill's chunk.

    >>> describe_range('{"from_us": 0, "to_us": 3600000000, "version": 5}')
    '[1970-01-01 00:00Z, 01:00Z)'
    """
    fields = json.loads(note or "{}")
    if not {"from_us", "to_us"} <= fields.keys():
        return "a range that the ledger does not name"
    return interval(moment_or_none(fields["from_us"]), moment_or_none(fields["to_us"]))


@dataclass(frozen=True)
class OpenStep:
    """A step that was begun and not finished, and what finishes it."""

    what: str
    finished_by: str


def list_open_steps(past: LedgerExcerpt) -> tuple[OpenStep, ...]:
    """The steps that were begun and not finished.

    A maintenance is not among them, because no number changes while it runs.
    """
    found = []
    run, backfill = past.open_run, past.open_backfill
    if run is not None and run.run is not None:
        found.append(OpenStep(f"run {run.run}", "the next run finishes it"))
    by_either = "the next run or backfill finishes it"
    if backfill is not None:
        found.append(OpenStep(f"the backfill of {describe_range(backfill.note)}", by_either))
    if past.open_evolution is not None:
        is_of_spec = bool(read_evolved(past.open_evolution.note))
        what = "a change of the spec" if is_of_spec else "the rebuild of an erasure"
        found.append(OpenStep(what, by_either))
    if past.open_period is not None:
        is_closing = read_period(past.open_period.note) is not None
        what = "the close of a period" if is_closing else "the reopening of a period"
        found.append(OpenStep(what, by_either))
    if past.open_erasure is not None:
        found.append(OpenStep("an erasure", "rerun `tidemark erase`"))
    return tuple(found)


def left_open(past: LedgerExcerpt) -> tuple[str, ...]:
    """What was begun and not finished, and what finishes it."""
    return tuple(f"{step.what}: {step.finished_by}" for step in list_open_steps(past))


def moment_or_none(us: int) -> datetime | None:
    """The instant `us` microseconds after 1970, None beyond the years 1 to 9999."""
    return moment(us) if within_calendar(us) else None


def cell(value: Any) -> str:
    """A count, a time or a text in a table: on one line, without control characters.

    >>> cell(1234), cell(True), cell(None)
    ('1,234', 'yes', '-')
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return datum(value)


def datum(value: Any) -> str:
    """A value of a row in a table: `cell`, but numbers as they are.

    >>> datum(2013), datum(0.1 + 0.2), datum(Decimal("1E-8"))
    ('2013', '0.3', '0.00000001')
    """
    match value:
        case None:
            return NONE
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.10g}"
        case Decimal():
            return f"{value:f}"
        case datetime():
            return instant(value) if value.tzinfo else value.isoformat(" ")
    # Control characters would move the cursor or break the line of the table.
    shown = []
    for character in str(value):
        shown.append(character if character.isprintable() else repr(character)[1:-1])
    return "".join(shown)


def plain(value: Any) -> Any:
    """A value as JSON has it.

    Times are ISO 8601 (+00:00), decimals and numbers that aren't finite are text, and bytes are
    hexadecimal. A decimal has all of its digits and no exponent. A dataclass is what its `as_json`
    says, or else all of its fields.
    """
    if hasattr(value, "as_json"):
        return value.as_json()
    match value:
        case datetime():
            at = value.astimezone(UTC) if value.tzinfo else value
            return at.isoformat()
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
        case float():
            return value if isfinite(value) else str(value)
        case bytes() | bytearray():
            return value.hex()
        case Mapping():
            return {str(k): plain(v) for k, v in value.items()}
        case list() | tuple():
            return [plain(v) for v in value]
        case Location():
            return value.text
    return plain_fields(value) if is_dataclass(value) else value


def plain_fields(value: object, *left_out: str) -> dict[str, object]:
    """The fields of a dataclass as JSON has them, without some."""
    return {name: plain(each) for name, each in vars(value).items() if name not in left_out}


def size(n: int) -> str:
    """A number of bytes.

    >>> size(900), size(1_234_567)
    ('900 B', '1.2 MB')
    """
    amount = float(n)
    units = ["B", "kB", "MB", "GB", "TB"]
    while amount >= 1000 and len(units) > 1:
        amount = amount / 1000
        units = units[1:]
    unit = units[0]
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"


def count(n: int | None, one: str, many: str | None = None) -> str:
    """`n` with its noun, `many` where its plural has more than an s.

    >>> count(1, "row"), count(2, "row"), count(0, "entry", "entries")
    ('1 row', '2 rows', '0 entries')
    """
    if n is None:
        return f"an unknown number of {many or f'{one}s'}"
    return count_things(n, one, many)


def describe_nulls(rows_by_column: Mapping[str, int]) -> list[str]:
    """A sentence for each expression that was NULL although its input had a value.

    >>> describe_nulls({"delay": 3})
    ['delay: 3 rows gave no value (NULL) although their input had one']
    >>> describe_nulls({"source.where": 1})
    ['source.where: 1 row gave no answer (NULL) although its input had a value, and was left out']
    """
    return [_describe_null(column, n) for column, n in rows_by_column.items()]


def _describe_null(column: str, n: int) -> str:
    rows = count(n, "row")
    whose = "its" if n == 1 else "their"
    if column == WHERE:
        were = "was" if n == 1 else "were"
        gave = f"{rows} gave no answer (NULL) although {whose} input had a value"
        return f"{column}: {gave}, and {were} left out"
    return f"{column}: {rows} gave no value (NULL) although {whose} input had one"


def _read_clock(at: datetime | None, zone: str | None) -> datetime | None:
    """An instant on the clock of a zone, or of UTC."""
    if at is None:
        return None
    if zone is not None:
        # The calendar of Python begins and ends at midnight of each clock.
        with suppress(OverflowError):
            return at.astimezone(ZoneInfo(zone))
    return at.astimezone(UTC)


def _format(at: datetime | None) -> str:
    return NONE if at is None else f"{at.date().isoformat()} {_format_clock(at)}"


def _format_clock(at: datetime) -> str:
    """The time of day with its offset, without seconds and fractions that are 0."""
    shown = at.strftime("%H:%M:%S" if at.second or at.microsecond else "%H:%M")
    if at.microsecond:
        shown += f".{at.microsecond:06d}".rstrip("0")
    offset = at.isoformat().removeprefix(at.replace(tzinfo=None).isoformat())
    return shown + ("Z" if offset == "+00:00" else offset)
