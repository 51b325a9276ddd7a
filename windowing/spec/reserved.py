"""Names that keys, aggregates, computed columns and windows can't have, because tables use them.

All names that begin with two underscores belong to helper columns. Other names are reserved only
where a table has a column of that name next to those of the user. Delta doesn't distinguish names
that differ by case alone, so neither does this module. The names of partial aggregates in state
depend on types; windowing/source/names.py checks those once it has read the source's schema.
"""

import re
from collections.abc import Collection, Iterable

from windowing.errors import SpecError
from windowing.spec.words import join_names, quote_value

HELPER = "__"
"""The prefix of the names of helper columns."""

OUTPUT_COLUMNS = (
    "window_start",
    "window_end",
    "last_event",
    "window_index",
    "revision",
    "run",
    "closed_by",
    "is_closed",
    "is_final",
)
"""Columns that tables of windows have or that reading adds; no key or aggregate can have them."""

STATE_COLUMNS = (
    "pane_start",
    "first_event",
    "rows",
    "event_time",
    "digest",
    "inputs",
    "missed",
    "generation",
    "batch",
    "judged_by",
)
"""Columns of state tables; no key can have them."""

FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
"""Columns that a change feed adds to those of an output, and to those of the source."""

SOURCE_COLUMNS = ("judged_by",)
"""Columns that are added to those of the source, including computed ones, while it is read."""

FIRST_START, LAST_START = "first_start", "last_start"
"""The counts that name the first and the last start of the rows of an output that changed."""
COUNTS = ("inserted", "updated", "deleted", "restated", "overflow", "empty")
"""What else the ledger counts for each window, under the name {window}.{count}."""
PUBLISHED = "published"
"""The directory of a pipeline that has its published tables."""
MISSED = "partial"
"""The ledger counts events that are late for a window under the name partial.{window}."""

NO_DELTA_NAME = re.compile(r"[ ,;{}()\n\t=`.]")
"""What the name of no column of a table has."""


def check_output_columns(key: tuple[str, ...], aggregates: tuple[str, ...]) -> None:
    """Raises SpecError if columns of an output would collide, or differ by case alone."""
    taken: dict[str, str] = {}
    for i, name in enumerate(key):
        _check_output_column(f"source.key[{i}]", name, STATE_COLUMNS, taken)
    for name in aggregates:
        _check_output_column(f"aggregates.{name}", name, (), taken)


def check_computed_columns(names: Iterable[str], changes: str) -> None:
    """Raises SpecError unless every name can be a computed column of a source with `changes`."""
    taken: dict[str, str] = {}
    for name in names:
        field = f"source.columns.{name}"
        _check_computed_column(field, name, changes)
        other = taken.setdefault(name.lower(), name)
        if other != name:
            wrong = f"{name!r} differs from {other!r} by case alone"
            raise SpecError(field, f"{wrong}; give it another name")


def check_named_columns(needed_by: Iterable[tuple[str, str]], changes: str) -> None:
    """The same for the names that parts of columns get; each has the field that needs it."""
    for name, field in needed_by:
        try:
            _check_computed_column(field, name, changes)
        except SpecError as error:
            raise SpecError(field, f"{error.message}, by source.columns") from None


def _check_computed_column(field: str, name: str, changes: str) -> None:
    if name.startswith(HELPER):
        said = f"not allowed are names that begin with '{HELPER}'"
        raise SpecError(field, f"{name!r} is reserved; {said}")
    reserved = SOURCE_COLUMNS + FEED_COLUMNS if changes == "feed" else SOURCE_COLUMNS
    _check_not_reserved(field, name, reserved)
    _check_spelling(field, name, "a column")


def check_windows(names: Collection[str]) -> None:
    """Raises SpecError if a window has the name of the directory of published tables.

    It does, too, if the ledger would count two windows' rows under one name, or would take events
    that missed a window for starts.
    """
    if PUBLISHED in names:
        wrong = f"'{PUBLISHED}' is the directory of the published tables"
        raise SpecError(f"windows.{PUBLISHED}", f"{wrong}; give the window another name")
    for name in (FIRST_START, LAST_START):
        if name in names:
            wrong = f"{name!r} is the end of the names under which the ledger records starts"
            raise SpecError(f"windows.{name}", f"{wrong}; give the window another name")
    if MISSED not in names:
        return
    for other in names:
        if other in COUNTS:
            both = f"the ledger counts rows of both as '{MISSED}.{other}'"
            wrong = f"'{MISSED}' can't stand beside the window {other!r}"
            raise SpecError(f"windows.{MISSED}", f"{wrong}: {both}; give one of them another name")


def _check_output_column(
    field: str, name: str, more: tuple[str, ...], taken: dict[str, str]
) -> None:
    """Checks one name, then adds it to `taken`: lower-case name -> field that took it."""
    _check_not_reserved(field, name, OUTPUT_COLUMNS + more + FEED_COLUMNS)
    _check_spelling(field, name, "an output column")
    other = taken.get(name.lower())
    if other is not None:
        wrong = f"{name!r} is already an output column ({other})"
        advice = "give each column its own name, different by more than case"
        raise SpecError(field, f"{wrong}; {advice}")
    taken[name.lower()] = field


def _check_not_reserved(field: str, name: str, reserved: tuple[str, ...]) -> None:
    if name.lower() in reserved or name.startswith(HELPER):
        said = f"not allowed are {join_names(reserved)} and names that begin with '{HELPER}'"
        raise SpecError(field, f"{name!r} is reserved; {said}; give it another name")


def _check_spelling(field: str, name: str, what: str) -> None:
    if not name or NO_DELTA_NAME.search(name):
        allowed = "its name is not empty and has no space and none of , . ; { } ( ) = `"
        raise SpecError(field, f"{quote_value(name)} can't be {what}; {allowed}")
