"""`quantile(delay, 0.95)` -> Aggregate: a function, then its columns and numbers, and nothing else."""

import re

from windowing.errors import SpecError
from windowing.spec.pipeline import Aggregate
from windowing.spec.words import listed, near, shown

FORM = "a call such as count(), sum(delay) or quantile(delay, 0.95)"
ONE_COLUMN = ("sum", "min", "max", "avg", "count_distinct", "median", "first", "last")
FUNCTIONS = ("count", *ONE_COLUMN, "quantile")
LATER_FUNCTIONS = ("variance", "stddev", "min_by", "max_by", "top_k", "collect", "count_if")
OUTPUT_COLUMNS = ("window_start", "window_end", "last_event", "window_index", "revision", "run")
"""Columns every output has or may have, so keys and aggregates can't be called that."""

STATE_COLUMNS = ("pane_start", "first_event", "rows", "generation", "batch", "judged_by")
"""Columns of state tables, which stand beside the keys there."""

_FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\(([^()]*)\)\s*", re.ASCII)
_COLUMN = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_NO_DELTA_NAME = re.compile(r"[ ,;{}()\n\t=`]")


def aggregate(field: str, name: str, call: str) -> Aggregate:
    """The output column `name` that `call` spells; median is quantile 0.5.

    >>> aggregate("aggregates.p95", "p95", "quantile(delay, 0.95)")
    Aggregate(name='p95', function='quantile', column='delay', argument=0.95)
    """
    function, arguments = _parts(field, call)
    if function == "count":
        return _count(field, name, call, arguments)
    if function == "quantile":
        return _quantile(field, name, call, arguments)
    if len(arguments) != 1:
        raise SpecError(field, f"{shown(call)} needs exactly one column, as in {function}(delay)")
    column = _column(field, call, arguments[0])
    return Aggregate(name, "quantile", column, 0.5) if function == "median" else Aggregate(name, function, column)


def check_output_columns(key: tuple[str, ...], aggregates: tuple[str, ...]) -> None:
    """Raises if the columns of an output would collide; names differ by more than case, as in Spark."""
    taken: dict[str, str] = {}
    fields = [(f"source.key[{i}]", name) for i, name in enumerate(key)] + [(f"aggregates.{name}", name) for name in aggregates]
    for field, name in fields:
        _check_name(field, name, STATE_COLUMNS if field.startswith("source.key") else ())
        if name.lower() in taken:
            raise SpecError(
                field,
                f"{name!r} is already an output column ({taken[name.lower()]}); give each column its own name, different by more than case",
            )
        taken[name.lower()] = field


def _check_name(field: str, name: str, more: tuple[str, ...]) -> None:
    reserved = OUTPUT_COLUMNS + more + _FEED_COLUMNS
    if name.lower() in reserved or name.startswith("__"):
        raise SpecError(field, f"{name!r} is reserved; not allowed are {listed(reserved)} and names that begin with '__'")
    if not name or _NO_DELTA_NAME.search(name):
        raise SpecError(
            field, f"{shown(name)} can't be an output column; its name is not empty and has no space and none of , ; {{ }} ( ) = `"
        )


def _parts(field: str, call: str) -> tuple[str, list[str]]:
    """The function and its arguments as texts."""
    match = _CALL.fullmatch(call)
    if not match:
        raise SpecError(field, f"{shown(call)} is not {FORM}")
    function, inside = match.groups()
    if function in LATER_FUNCTIONS:
        raise SpecError(field, f"{function} in {shown(call)} is not supported yet; use {listed(FUNCTIONS)}")
    if function not in FUNCTIONS:
        raise SpecError(
            field, f"{shown(call)} has the unknown function {function!r}{near(function, FUNCTIONS)}; allowed: {listed(FUNCTIONS)}"
        )
    return function, [part.strip() for part in inside.split(",")] if inside.strip() else []


def _count(field: str, name: str, call: str, arguments: list[str]) -> Aggregate:
    if arguments:
        raise SpecError(field, f"{shown(call)} has an argument, but count() counts rows and takes no column")
    return Aggregate(name, "count")


def _quantile(field: str, name: str, call: str, arguments: list[str]) -> Aggregate:
    if len(arguments) != 2:
        raise SpecError(field, f"{shown(call)} needs a column and a number from 0 to 1, as in quantile(delay, 0.95)")
    column, number = _column(field, call, arguments[0]), arguments[1]
    if not _NUMBER.fullmatch(number) or not 0 <= float(number) <= 1:
        raise SpecError(field, f"{shown(number)} in {shown(call)} is not a number from 0 to 1")
    return Aggregate(name, "quantile", column, float(number))


def _column(field: str, call: str, text: str) -> str:
    if not _COLUMN.fullmatch(text):
        raise SpecError(
            field, f"{shown(text)} in {shown(call)} is not a column; a name is letters, digits and _, and does not begin with a digit"
        )
    return text
