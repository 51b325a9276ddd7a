"""Literals of functions that are read before any row: units, zones, paths, patterns.

text -> what is wrong with it, as the rest of a sentence, or nothing
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from windowing.spec.expressions.regex import find_problem_of_regex
from windowing.spec.words import join_names, quote_value, suggest_name
from windowing.spec.zones import list_zones

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
"""What a time can be truncated to; weeks begin on Monday."""

_JSON_PATH = re.compile(r"\$(\.[^\W\d]\w*|\['[^'\]\[?*]+'\]|\[\d{1,9}\])+")
_QUOTED = re.compile(r"'(?:[^']|'')*'")
_LETTERS = re.compile(r"([A-Za-z])\1*")
_OFFSETS = tuple("X" * letters for letters in (1, 2, 3))
TIME_LETTERS: Mapping[str, str] = {
    "yyyy": "year",
    "MM": "month",
    "M": "month",
    "MMM": "month",
    "MMMM": "month",
    "dd": "day",
    "d": "day",
    "HH": "hour",
    "H": "hour",
    "hh": "half",
    "h": "half",
    "a": "noon",
    "mm": "minute",
    "m": "minute",
    "ss": "second",
    "s": "second",
    **dict.fromkeys(("S" * places for places in range(1, 7)), "fraction"),
    **dict.fromkeys(_OFFSETS, "offset"),
}
"""Letters of a pattern of times, and the part of the time that they read."""
_OTHER_MARKS = re.compile(r"[-/.,:; ]*")


@dataclass(frozen=True)
class Form:
    """The literal of a function: at which place it stands, what it is, how it is written."""

    place: int
    what: str
    example: str
    find_problem: Callable[[str], str | None]


def has_offset(pattern: str) -> bool:
    """Whether a pattern reads an offset, so that its times are instants.

    >>> has_offset("yyyy-MM-dd HH:mm XX"), has_offset("dd/MM/yyyy 'X'")
    (True, False)
    """
    return any(letters in _OFFSETS for letters in list_letters(pattern))


def list_letters(pattern: str) -> list[str]:
    """What reads a part of a time each, in the order of the pattern.

    >>> list_letters("yyyy-MM-dd'T'HH")
    ['yyyy', 'MM', 'dd', 'HH']
    """
    return [match[0] for match in _LETTERS.finditer(leave_quoted(pattern))]


def leave_quoted(pattern: str) -> str:
    """A pattern without what stands in quotes and reads no part of a time."""
    return _QUOTED.sub(" ", pattern)


def _find_problem_of_unit(text: str) -> str | None:
    if text in UNITS:
        return None
    return f"which is none{suggest_name(text, UNITS)}; allowed: {join_names(UNITS)}"


def _find_problem_of_path(text: str) -> str | None:
    if _JSON_PATH.fullmatch(text):
        return None
    return "which is no path; write one such as '$.user.country', \"$['odd name']\" or '$.tags[0]'"


def find_problem_of_time_pattern(text: str, known: Mapping[str, str] = TIME_LETTERS) -> str | None:
    """What is wrong with a pattern of times; `known` are letters, and the part that they read.

    >>> find_problem_of_time_pattern("dd/mm/yyyy")
    'which reads no month; a time has year, month and day, as in dd/MM/yyyy'
    """
    other = _OTHER_MARKS.sub("", _LETTERS.sub("", leave_quoted(text)))
    if other:
        return f"in which {quote_value(other[0])} is not allowed; write other marks in quotes"
    read: dict[str, str] = {}
    for letters in list_letters(text):
        part = known.get(letters)
        if part is None:
            allowed = join_names(known)
            return f"in which {letters!r} reads nothing; allowed: {allowed}"
        if part in read:
            return f"which reads the {part} twice, by {read[part]!r} and {letters!r}"
        read[part] = letters
    return _find_problem_of_parts(read)


def _find_problem_of_parts(read: dict[str, str]) -> str | None:
    """What is wrong with the parts of a time that a pattern reads, each by its letters."""
    missing = [part for part in ("year", "month", "day") if part not in read]
    if missing:
        return f"which reads no {missing[0]}; a time has year, month and day, as in dd/MM/yyyy"
    if ("half" in read) != ("noon" in read):
        return "which has one of hh and a; they belong together, as in hh:mm a"
    if "half" in read and "hour" in read:
        return "which reads the hour twice; use either HH, or hh with a"
    finer = ("fraction", "second", "minute", "hour")
    hours = {**read, "hour": read.get("hour", read.get("half", ""))}
    for part, coarser in zip(finer, finer[1:], strict=False):
        if part in read and not hours.get(coarser):
            return f"which reads the {part} without the {coarser}"
    return None


def _find_problem_of_zone(text: str) -> str | None:
    if text in list_zones():
        return None
    known = suggest_name(text, list_zones())
    return f"which is no name of the tz database, such as America/New_York{known}"


FORMS = {
    "date_trunc": Form(0, "the unit", "date_trunc('hour', at)", _find_problem_of_unit),
    "convert_timezone": Form(
        0, "the zone", "convert_timezone('Europe/Berlin', at)", _find_problem_of_zone
    ),
    "get_json_object": Form(
        1, "the path", "get_json_object(payload, '$.user.country')", _find_problem_of_path
    ),
    **{
        name: Form(1, "the pattern", f"{name}({example})", find_problem_of_regex)
        for name, example in (
            ("regexp_like", "url, '^/orders/'"),
            ("regexp_extract", "url, 'id=([0-9]+)'"),
            ("regexp_replace", "amount, '[^0-9.]', ''"),
        )
    },
    "to_timestamp": Form(
        1, "the pattern", "to_timestamp(text, 'dd/MM/yyyy HH:mm')", find_problem_of_time_pattern
    ),
}
"""By function the form of its literal."""
