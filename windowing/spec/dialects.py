"""What other systems write, and how it is written here: functions, kinds of windows, lengths."""

import re
from collections.abc import Mapping, Sequence

from windowing.spec.aggregate_description import DESCRIPTIONS, Call, describe_aggregate

FUNCTIONS: Mapping[str, str] = {
    other: ours for ours, described in DESCRIPTIONS.items() for other in described.elsewhere
}
"""An aggregate function of Spark, SQL or pandas -> the one that means it here."""

KINDS: Mapping[str, str] = {
    "fixed": "tumbling",
    "hop": "sliding",
    "hopping": "sliding",
    "rolling": "sliding",
    "tumble": "tumbling",
}
"""A kind of window as Flink, Kafka, Beam or pandas calls it -> its name here."""

FIELDS: Mapping[str, str] = {
    **dict.fromkeys(("timeout", "inactivity", "inactivity_gap", "session_gap"), "gap"),
    **dict.fromkeys(("duration", "length", "width", "window_size"), "size"),
    **dict.fromkeys(("hop", "step", "every", "advance"), "slide"),
    **dict.fromkeys(("timestamp", "rowtime", "time_column", "ts"), "event_time"),
    **dict.fromkeys(("partition_by", "group_by", "keys"), "key"),
    **dict.fromkeys(("tz", "timezone", "time_zone"), "zone"),
    **dict.fromkeys(("id", "primary_key", "unique_id"), "event_id"),
    **dict.fromkeys(("filter", "if", "condition"), "where"),
    **dict.fromkeys(("lag", "max_out_of_orderness"), "delay"),
    **dict.fromkeys(("metrics", "measures", "aggregations"), "aggregates"),
    **dict.fromkeys(("cron", "interval"), "schedule"),
    **dict.fromkeys(("sep", "separator"), "delimiter"),
}
"""A field of a spec as other systems or people call it -> its name here."""

_ONE_ARGUMENT = (Call.COLUMN, Call.LIST)
"""Calls whose other arguments elsewhere, such as an error bound, have no counterpart."""
_DISTINCT = re.compile(r"distinct\b\s*\(?\s*([^()]+?)\s*\)?", re.IGNORECASE)
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)%?", re.ASCII)

_SHORT_UNITS: Mapping[str, tuple[str, ...]] = {
    "microsecond": ("us", "µs", "usec", "usecs", "micros"),
    "millisecond": ("ms", "msec", "msecs", "millis"),
    "second": ("s", "sec", "secs"),
    "minute": ("m", "min", "mins"),
    "hour": ("h", "hr", "hrs"),
    "day": ("d",),
    "week": ("w", "wk", "wks"),
    "month": ("mo", "mon", "mons"),
    "quarter": ("q",),
    "year": ("y", "yr", "yrs"),
}
"""Every unit, and how it is abbreviated elsewhere."""
_PART = re.compile(r"([+-]?\d{1,12})\s*([a-zµ]+)\s*")
_MONTH_OR_MINUTE = re.compile(r"\d\s*M(?![A-Za-z])")
"""pandas' month, Java's minute: which is meant can't be known."""
_ISO = re.compile(
    r"(?P<sign>[+-]?)P"
    r"(?:(?P<year>\d{1,12})Y)?(?:(?P<month>\d{1,12})M)?"
    r"(?:(?P<week>\d{1,12})W)?(?:(?P<day>\d{1,12})D)?"
    r"(?:T(?:(?P<hour>\d{1,12})H)?(?:(?P<minute>\d{1,12})M)?(?:(?P<second>\d{1,12})S)?)?",
    re.IGNORECASE | re.ASCII,
)


def native_call(function: str, arguments: Sequence[str]) -> str | None:
    """The call here that means `function(arguments)` elsewhere; None where none is known.

    >>> native_call("percentile_approx", ["price", "0.95", "100"])
    'quantile(price, 0.95)'
    >>> native_call("COUNT", ["DISTINCT price"])
    'count_distinct(price)'
    """
    name = function.lower()
    if name == "count":
        return _native_count(arguments)
    ours = FUNCTIONS.get(name)
    if ours is None:
        return None
    call = describe_aggregate(ours).call
    if call is Call.FRACTION:
        kept = [*arguments[:1], _parse_fraction(arguments[1:2])]
    elif call in _ONE_ARGUMENT:
        kept = [*arguments[:1]]
    else:
        kept = [*arguments]
    return f"{ours}({', '.join(kept)})"


def _native_count(arguments: Sequence[str]) -> str | None:
    """The call here that means count(DISTINCT column); None for any other count."""
    if len(arguments) != 1:
        return None
    distinct = _DISTINCT.fullmatch(arguments[0])
    if distinct is None:
        return None
    return f"count_distinct({distinct[1]})"


def native_length(text: str) -> str | None:
    """The length that `text` spells in short units or as ISO 8601, in whole words; None for others.

    >>> native_length("1h30m"), native_length("PT15M"), native_length("soon")
    ('1 hour 30 minutes', '15 minutes', None)
    """
    written = text.strip()
    iso = _ISO.fullmatch(written)
    if iso:
        parts = _parse_iso(iso)
    elif _MONTH_OR_MINUTE.search(written):
        return None
    else:
        parts = _parse_short(written.lower())
    if not parts:
        return None
    return " ".join(count_units(int(number), unit) for number, unit in parts)


def _parse_fraction(given: Sequence[str]) -> str:
    """A rank from 0 to 1 for what may be one in percent; `p` where it is no number."""
    if not given or not _NUMBER.fullmatch(given[0]):
        return "p"
    text = given[0]
    number = float(text.removesuffix("%"))
    if number > 100:
        return "p"
    if number > 1 or text.endswith("%"):
        return f"{number / 100:g}"
    return text


def _parse_iso(length: re.Match[str]) -> list[tuple[str, str]]:
    """(number, unit) of each part of a length in ISO 8601, which has one sign for all of them."""
    sign = length["sign"].removeprefix("+")
    parts = []
    for unit, number in length.groupdict().items():
        if unit != "sign" and number:
            parts.append((f"{sign}{number}", unit))
    return parts


def _parse_short(text: str) -> list[tuple[str, str]]:
    """(number, unit) of each part of `text`; none if something of it is anything else.

    A sign at the beginning is also that of the parts that have none.
    """
    if _PART.sub("", text):
        return []
    leading = "-" if text.startswith("-") else ""
    parts = []
    for number, written in _PART.findall(text):
        unit = _find_unit(written)
        if unit is None:
            return []
        parts.append((number if number[0] in "+-" else leading + number, unit))
    return parts


def _find_unit(written: str) -> str | None:
    """The unit that is abbreviated so, or that is written out, in the singular or the plural."""
    for unit, short in _SHORT_UNITS.items():
        if written in short or written.removesuffix("s") == unit:
            return unit
    return None


def count_units(number: int, unit: str) -> str:
    """A number of units in words, as in 1 day or -2 days."""
    if abs(number) == 1:
        return f"{number} {unit}"
    return f"{number} {unit}s"
