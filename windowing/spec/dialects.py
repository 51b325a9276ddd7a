"""What other systems write, and how it is written here: functions, kinds of windows, lengths."""

import re
from collections.abc import Mapping, Sequence

FUNCTIONS: Mapping[str, str] = {
    "approx_count_distinct": "count_distinct",
    "approx_distinct": "count_distinct",
    "approx_percentile": "quantile",
    "approx_quantile": "quantile",
    "approx_top_k": "top_k",
    "arg_max": "max_by",
    "arg_min": "min_by",
    "argmax": "max_by",
    "argmin": "min_by",
    "array_agg": "collect",
    "average": "avg",
    "collect_list": "collect",
    "first_value": "first",
    "last_value": "last",
    "mean": "avg",
    "nunique": "count_distinct",
    "percentile": "quantile",
    "percentile_approx": "quantile",
    "std": "stddev",
    "stddev_samp": "stddev",
    "uniq": "count_distinct",
    "var": "variance",
    "var_samp": "variance",
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

_ONE_ARGUMENT = ("count_distinct", "collect")
"""Functions whose other arguments, such as an error bound, have no counterpart."""
_DISTINCT = re.compile(r"distinct\b\s*\(?\s*([^()]+?)\s*\)?", re.IGNORECASE)
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)%?", re.ASCII)

_UNITS: Mapping[str, str] = {
    **dict.fromkeys(("us", "µs", "usec", "usecs", "micros"), "microsecond"),
    **dict.fromkeys(("ms", "msec", "msecs", "millis"), "millisecond"),
    **dict.fromkeys(("s", "sec", "secs"), "second"),
    **dict.fromkeys(("m", "min", "mins"), "minute"),
    **dict.fromkeys(("h", "hr", "hrs"), "hour"),
    **dict.fromkeys(("w", "wk", "wks"), "week"),
    **dict.fromkeys(("mo", "mon", "mons"), "month"),
    **dict.fromkeys(("y", "yr", "yrs"), "year"),
    "d": "day",
    "q": "quarter",
}
_WHOLE_UNITS = (
    *("microsecond", "millisecond", "second", "minute", "hour", "day", "week"),
    *("month", "quarter", "year"),
)
_PART = re.compile(r"([+-]?\d{1,12})\s*([a-zµ]+)\s*")
_MONTH_OR_MINUTE = re.compile(r"\d\s*M(?![A-Za-z])")
"""pandas' month, Java's minute."""
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
        distinct = _DISTINCT.fullmatch(arguments[0]) if len(arguments) == 1 else None
        return f"count_distinct({distinct[1]})" if distinct else None
    ours = FUNCTIONS.get(name)
    if ours is None:
        return None
    if ours == "quantile":
        return f"quantile({', '.join([*arguments[:1], _fraction(arguments[1:2])])})"
    return f"{ours}({', '.join(arguments[:1] if ours in _ONE_ARGUMENT else arguments)})"


def native_length(text: str) -> str | None:
    """The length that `text` spells in short units or as ISO 8601, in whole words; None for others.

    >>> native_length("1h30m"), native_length("PT15M"), native_length("soon")
    ('1 hour 30 minutes', '15 minutes', None)
    """
    written = text.strip()
    iso = _ISO.fullmatch(written)
    if iso:
        sign = iso["sign"].removeprefix("+")
        given = ((unit, n) for unit, n in iso.groupdict().items() if unit != "sign" and n)
        parts = [(f"{sign}{n}", unit) for unit, n in given]
    elif _MONTH_OR_MINUTE.search(written):
        return None
    else:
        parts = _short_parts(written.lower())
    return " ".join(_counted(int(n), unit) for n, unit in parts) or None


def _fraction(given: Sequence[str]) -> str:
    """A rank from 0 to 1 for what may be one in percent; `p` where it is no number."""
    if not given or not _NUMBER.fullmatch(given[0]):
        return "p"
    number = float(given[0].removesuffix("%"))
    percent = given[0].endswith("%") or number > 1
    return f"{number / 100:g}" if percent and number <= 100 else given[0] if number <= 1 else "p"


def _short_parts(text: str) -> list[tuple[str, str]]:
    """(number, unit) of each part of `text`; none if something of it is anything else."""
    found = _PART.findall(text)
    known = [(n, _UNITS.get(unit) or unit.removesuffix("s")) for n, unit in found]
    whole = not _PART.sub("", text) and all(unit in _WHOLE_UNITS for _, unit in known)
    return known if whole else []


def _counted(n: int, unit: str) -> str:
    return f"{n} {unit}" if abs(n) == 1 else f"{n} {unit}s"
