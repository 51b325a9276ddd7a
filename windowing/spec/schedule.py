"""When a pipeline runs: five cron fields or a preset, checked so that a scheduler takes it."""

import re

from windowing.errors import SpecError
from windowing.spec.words import listed, near, shown

PRESETS = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, {name: i + 1 for i, name in enumerate(_MONTHS)}),
    ("day of week", 0, 7, {name: i for i, name in enumerate(_DAYS)}),
)
_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_ITEM = re.compile(r"(?:\*|(\d{1,2}|[a-z]{3})(?:-(\d{1,2}|[a-z]{3}))?)(?:/(\d{1,2}))?", re.ASCII)


def schedule(field: str, text: str | None) -> str | None:
    """`text` with single spaces if it is a schedule, None if it is None."""
    if text is None:
        return None
    if text.strip().startswith("@"):
        return _preset(field, text.strip())
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise SpecError(
            field,
            f"{shown(text)} has {len(parts)} fields, but cron has 5: {listed(f[0] for f in _FIELDS)}; or a preset: {listed(PRESETS)}",
        )
    for part, (name, low, high, names) in zip(parts, _FIELDS, strict=True):
        if not all(_fits(item, low, high, names) for item in part.lower().split(",")):
            raise SpecError(
                field,
                f"{shown(text)} has {part!r} as its {name}, which is {low} to {high}, *, a range, a list or a step such as */15",
            )
    days, months = (
        _values(part.lower(), *bounds[1:])
        for part, bounds in zip(parts[2:4], _FIELDS[2:4], strict=True)
    )
    if parts[4] == "*" and min(days) > max(_LENGTHS[month - 1] for month in months):
        raise SpecError(
            field, f"{shown(text)} never comes: no month of {parts[3]!r} has a day of {parts[2]!r}"
        )
    return " ".join(parts)


def _values(part: str, low: int, high: int, names: dict[str, int]) -> set[int]:
    """The numbers that a field of cron stands for."""
    found: set[int] = set()
    for item in part.split(","):
        first, last, step = _ITEM.fullmatch(item).groups()  # type: ignore[union-attr]  # every item has been checked
        begin = low if first is None else names.get(first, int(first) if first.isdigit() else low)
        end = high if first is None or (last is None and step) else begin
        end = end if last is None else names.get(last, int(last) if last.isdigit() else high)
        found.update(range(begin, end + 1, int(step or 1)))
    return found


def _preset(field: str, text: str) -> str:
    if text not in PRESETS:
        raise SpecError(
            field,
            f"{shown(text)} is not a preset{near(text, PRESETS)}; allowed: {listed(PRESETS)}, or five cron fields",
        )
    return text


def _fits(item: str, low: int, high: int, names: dict[str, int]) -> bool:
    match = _ITEM.fullmatch(item)
    if not match:
        return False
    bounds = [
        names.get(text, int(text) if text.isdigit() else -1) for text in match.group(1, 2) if text
    ]
    step = int(match[3]) if match[3] else 1
    return (
        all(low <= n <= high for n in bounds)
        and bounds == sorted(bounds)
        and 0 < step <= high - low + 1
    )
