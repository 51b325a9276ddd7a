"""When a pipeline runs: five cron fields or a preset, checked so that a scheduler accepts it."""

import re
from dataclasses import dataclass, field

from windowing.errors import SpecError
from windowing.spec.words import join_names, quote_value, suggest_name

_FIELD = "schedule"
PRESETS = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True)
class _CronField:
    """One of the five fields: its numbers from `low` to `high`, and names for some of them."""

    name: str
    low: int
    high: int
    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int | None:
        """The number that digits or a name stand for; None if no name is known as `text`."""
        if text.isdigit():
            return int(text)
        return self.numbers.get(text)


_DAY_OF_MONTH = _CronField("day of month", 1, 31)
_MONTH = _CronField("month", 1, 12, {name: n for n, name in enumerate(_MONTH_NAMES, start=1)})
# Cron counts Sunday twice, as 0 and as 7.
_DAY_OF_WEEK = _CronField("day of week", 0, 7, {name: n for n, name in enumerate(_DAY_NAMES)})
_CRON_FIELDS = (
    _CronField("minute", 0, 59),
    _CronField("hour", 0, 23),
    _DAY_OF_MONTH,
    _MONTH,
    _DAY_OF_WEEK,
)
_MONTH_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_ITEM = re.compile(r"(?:\*|(\d{1,2}|[a-z]{3})(?:-(\d{1,2}|[a-z]{3}))?)(?:/(\d{1,2}))?", re.ASCII)
"""One item of a list: `*`, a value or a range, with a step or without one."""


def check_schedule(text: str | None) -> str | None:
    """`text` with single spaces if it is a schedule, None if it is None; SpecError otherwise.

    A schedule that never comes, such as one for 30 February, is refused as well.
    """
    if text is None:
        return None
    if text.strip().startswith("@"):
        return _check_preset(text.strip())
    parts = text.split()
    if len(parts) != len(_CRON_FIELDS):
        names = join_names(cron_field.name for cron_field in _CRON_FIELDS)
        raise SpecError(
            _FIELD,
            f"{quote_value(text)} has {len(parts)} fields, but cron has 5: {names}; "
            f"or a preset: {join_names(PRESETS)}",
        )
    for part, cron_field in zip(parts, _CRON_FIELDS, strict=True):
        _check_part(text, part, cron_field)
    _check_day_comes(text, parts)
    return " ".join(parts)


def _check_preset(text: str) -> str:
    if text not in PRESETS:
        hint = suggest_name(text, PRESETS)
        raise SpecError(
            _FIELD,
            f"{quote_value(text)} is not a preset{hint}; allowed: {join_names(PRESETS)}, "
            "or five cron fields",
        )
    return text


def _check_part(text: str, part: str, cron_field: _CronField) -> None:
    items = part.lower().split(",")
    if all(_fits_field(item, cron_field) for item in items):
        return
    allowed = f"{cron_field.low} to {cron_field.high}, *, a range, a list or a step such as */15"
    raise SpecError(
        _FIELD, f"{quote_value(text)} has {part!r} as its {cron_field.name}, which is {allowed}"
    )


def _check_day_comes(text: str, parts: list[str]) -> None:
    """Raises if none of the months is long enough for any of the days."""
    _, _, day_part, month_part, week_part = parts
    if week_part != "*":
        # With a day of week, cron runs when either of the two days fits.
        return
    days = _list_values(day_part.lower(), _DAY_OF_MONTH)
    months = _list_values(month_part.lower(), _MONTH)
    longest = max(_MONTH_LENGTHS[month - 1] for month in months)
    if min(days) > longest:
        raise SpecError(
            _FIELD,
            f"{quote_value(text)} never comes: "
            f"no month of {month_part!r} has a day of {day_part!r}",
        )


def _fits_field(item: str, cron_field: _CronField) -> bool:
    """Whether cron accepts the item: known values in the field's range, in order, and a step."""
    match = _ITEM.fullmatch(item)
    if match is None:
        return False
    first, last, step = match.groups()
    low, high = cron_field.low, cron_field.high
    bounds = [cron_field.number(bound) for bound in (first, last) if bound is not None]
    known = [n for n in bounds if n is not None and low <= n <= high]
    is_ordered = known == bounds and known == sorted(known)
    is_step = step is None or 0 < int(step) <= high - low + 1
    return is_ordered and is_step


def _list_values(part: str, cron_field: _CronField) -> set[int]:
    """The numbers that a checked part of a schedule stands for."""
    found: set[int] = set()
    for item in part.split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            continue
        first, last, step = match.groups()
        begin = cron_field.low if first is None else cron_field.number(first)
        if last is not None:
            end = cron_field.number(last)
        elif first is None or step is not None:
            # `*` and an open range such as 5/15 reach to the end of the field.
            end = cron_field.high
        else:
            end = begin
        if begin is not None and end is not None:
            found.update(range(begin, end + 1, int(step or 1)))
    return found
