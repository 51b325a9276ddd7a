"""`quantile(delay, 0.95)` -> Aggregate: a function, then its columns and numbers, and nothing else."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from windowing.errors import SpecError
from windowing.spec.kinds import Aggregate, Expression
from windowing.spec.words import listed, near, shown

FORM = "a call such as count(), sum(delay) or quantile(delay, 0.95)"
ONE_COLUMN = ("sum", "min", "max", "avg", "count_distinct", "median", "first", "last", "variance", "stddev", "count_if")
TWO_COLUMNS = ("min_by", "max_by")
FUNCTIONS = ("count", *ONE_COLUMN, *TWO_COLUMNS, "quantile", "top_k", "collect")
MOST_VALUES, LONGEST_LIST, USUAL_LIST = 100, 10_000, 100
"""What top_k and collect show at most, and what collect shows if it isn't told."""

OUTPUT_COLUMNS = ("window_start", "window_end", "last_event", "window_index", "revision", "run", "closed_by", "is_closed", "is_final")
"""Columns that tables of windows have or that reading adds, so keys and aggregates can't be called that."""

STATE_COLUMNS = ("pane_start", "first_event", "rows", "event_time", "digest", "inputs", "missed", "generation", "batch", "judged_by")
"""Columns of state tables, which stand beside the keys there."""

_FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\(([^()]*)\)\s*", re.ASCII)
_COLUMN = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"\d{1,9}", re.ASCII)
_NO_DELTA_NAME = re.compile(r"[ ,;{}()\n\t=`.]")


@dataclass(frozen=True)
class _Call:
    """A call as it is written in `field`."""

    field: str
    text: str
    function: str
    arguments: tuple[str, ...]

    def refused(self, why: str) -> SpecError:
        return SpecError(self.field, f"{shown(self.text)} {why}")

    def column(self, at: int) -> str:
        text = self.arguments[at]
        if not _COLUMN.fullmatch(text):
            raise self._wrong(at, "a column; a name is letters, digits and _, and does not begin with a digit")
        return text

    def fraction(self, at: int) -> float:
        text = self.arguments[at]
        if not _NUMBER.fullmatch(text) or not 0 <= float(text) <= 1:
            raise self._wrong(at, "a number from 0 to 1")
        return float(text)

    def whole(self, at: int, most: int) -> int:
        text = self.arguments[at]
        if not _WHOLE.fullmatch(text) or not 1 <= int(text) <= most:
            raise self._wrong(at, f"a whole number from 1 to {most}")
        return int(text)

    def _wrong(self, at: int, what: str) -> SpecError:
        return SpecError(self.field, f"{shown(self.arguments[at])} in {shown(self.text)} is not {what}")


def aggregate(field: str, name: str, call: str, where: Expression | None = None) -> Aggregate:
    """The output column `name` that `call` spells, of the events with `where`; median is quantile 0.5.

    >>> aggregate("aggregates.p95", "p95", "quantile(delay, 0.95)")
    Aggregate(name='p95', function='quantile', column='delay', argument=0.95, by=None, where=None)
    """
    written = _call(field, call)
    return replace(_READERS.get(written.function, _of_column)(name, written), where=where)


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


def check_computed_columns(names: Iterable[str]) -> None:
    """Raises unless every name can be a column beside those of the source."""
    taken: dict[str, str] = {}
    for name in names:
        field = f"source.columns.{name}"
        if name.startswith("__"):
            raise SpecError(field, f"{name!r} is reserved; not allowed are names that begin with '__'")
        _check_spelling(field, name, "a column")
        other = taken.setdefault(name.lower(), name)
        if other != name:
            raise SpecError(field, f"{name!r} differs from {other!r} by case alone; give it another name")


def _check_name(field: str, name: str, more: tuple[str, ...]) -> None:
    reserved = OUTPUT_COLUMNS + more + _FEED_COLUMNS
    if name.lower() in reserved or name.startswith("__"):
        raise SpecError(field, f"{name!r} is reserved; not allowed are {listed(reserved)} and names that begin with '__'")
    _check_spelling(field, name, "an output column")


def _check_spelling(field: str, name: str, what: str) -> None:
    if not name or _NO_DELTA_NAME.search(name):
        raise SpecError(field, f"{shown(name)} can't be {what}; its name is not empty and has no space and none of , . ; {{ }} ( ) = `")


def _call(field: str, call: str) -> _Call:
    match = _CALL.fullmatch(call)
    if not match:
        raise SpecError(field, f"{shown(call)} is not {FORM}")
    function, inside = match.groups()
    if function not in FUNCTIONS:
        raise SpecError(
            field, f"{shown(call)} has the unknown function {function!r}{near(function, FUNCTIONS)}; allowed: {listed(FUNCTIONS)}"
        )
    return _Call(field, call, function, tuple(part.strip() for part in inside.split(",")) if inside.strip() else ())


def _count(name: str, call: _Call) -> Aggregate:
    if call.arguments:
        raise call.refused("has an argument, but count() counts rows and takes no column")
    return Aggregate(name, "count")


def _of_column(name: str, call: _Call) -> Aggregate:
    if len(call.arguments) != 1:
        raise call.refused(f"needs exactly one column, as in {call.function}(delay)")
    column = call.column(0)
    return Aggregate(name, "quantile", column, 0.5) if call.function == "median" else Aggregate(name, call.function, column)


def _by_column(name: str, call: _Call) -> Aggregate:
    if len(call.arguments) != 2:
        raise call.refused(f"needs two columns, what is shown and what is compared, as in {call.function}(gate, delay)")
    return Aggregate(name, call.function, call.column(0), by=call.column(1))


def _quantile(name: str, call: _Call) -> Aggregate:
    if len(call.arguments) != 2:
        raise call.refused("needs a column and a number from 0 to 1, as in quantile(delay, 0.95)")
    return Aggregate(name, "quantile", call.column(0), call.fraction(1))


def _top_k(name: str, call: _Call) -> Aggregate:
    if len(call.arguments) != 2:
        raise call.refused(f"needs a column and a whole number from 1 to {MOST_VALUES}, as in top_k(gate, 3)")
    return Aggregate(name, "top_k", call.column(0), call.whole(1, MOST_VALUES))


def _collect(name: str, call: _Call) -> Aggregate:
    if len(call.arguments) not in (1, 2):
        raise call.refused(f"needs a column and, if not {USUAL_LIST}, a whole number from 1 to {LONGEST_LIST}, as in collect(gate, 10)")
    most = call.whole(1, LONGEST_LIST) if len(call.arguments) == 2 else USUAL_LIST
    return Aggregate(name, "collect", call.column(0), most)


_READERS: Mapping[str, Callable[[str, _Call], Aggregate]] = {
    "count": _count,
    "quantile": _quantile,
    "top_k": _top_k,
    "collect": _collect,
    **dict.fromkeys(TWO_COLUMNS, _by_column),
}
