"""Names that keys, aggregates, computed columns and windows can't have: tables use them.

All names that begin with two underscores are the helpers'. Others are taken where a table has a
column of that name beside those of the user, and nowhere else. Delta tells no names apart that
differ by case alone, so neither does anything here. What state calls the parts of an aggregate
depends on types; windowing/source/names.py looks at these once the source is there.
"""

import re
from collections.abc import Collection, Iterable

from windowing.errors import SpecError
from windowing.spec.words import listed, shown

HELPER = "__"
"""What names of helpers begin with."""

OUTPUT_COLUMNS = (
    *("window_start", "window_end", "last_event", "window_index", "revision", "run"),
    *("closed_by", "is_closed", "is_final"),
)
"""Columns that tables of windows have or that reading adds: not for keys and aggregates."""

STATE_COLUMNS = (
    *("pane_start", "first_event", "rows", "event_time", "digest", "inputs", "missed"),
    *("generation", "batch", "judged_by"),
)
"""Columns of state tables, which stand beside the keys there."""

FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
"""Columns that a change feed adds, to those of an output as to those of the source."""

SOURCE_COLUMNS = ("judged_by",)
"""Columns that stand beside those of the source, computed ones among them, while it is read."""

COUNTS = ("inserted", "updated", "deleted", "overflow", "empty")
"""What the ledger counts of each window, as {window}.{count}."""
MISSED = "partial"
"""What the ledger counts events by that a window missed, as partial.{window}."""

_NO_DELTA_NAME = re.compile(r"[ ,;{}()\n\t=`.]")


def check_output_columns(key: tuple[str, ...], aggregates: tuple[str, ...]) -> None:
    """Raises if columns of an output would collide; names differ by more than case, as in Spark."""
    taken: dict[str, str] = {}
    keys = [(f"source.key[{i}]", name) for i, name in enumerate(key)]
    for field, name in (*keys, *((f"aggregates.{name}", name) for name in aggregates)):
        _check_name(field, name, STATE_COLUMNS if field.startswith("source.key") else ())
        if name.lower() in taken:
            wrong = f"{name!r} is already an output column ({taken[name.lower()]})"
            advice = "give each column its own name, different by more than case"
            raise SpecError(field, f"{wrong}; {advice}")
        taken[name.lower()] = field


def check_computed_columns(names: Iterable[str], changes: str) -> None:
    """Raises unless every name can be a column beside those of a source with these `changes`."""
    reserved = SOURCE_COLUMNS + (FEED_COLUMNS if changes == "feed" else ())
    taken: dict[str, str] = {}
    for name in names:
        field = f"source.columns.{name}"
        if name.startswith(HELPER):
            said = f"not allowed are names that begin with '{HELPER}'"
            raise SpecError(field, f"{name!r} is reserved; {said}")
        _check_taken(field, name, reserved)
        _check_spelling(field, name, "a column")
        other = taken.setdefault(name.lower(), name)
        if other != name:
            wrong = f"{name!r} differs from {other!r} by case alone"
            raise SpecError(field, f"{wrong}; give it another name")


def check_windows(names: Collection[str]) -> None:
    """Raises if the ledger would count two things of different windows under one name."""
    other = next((name for name in names if name in COUNTS), None)
    if MISSED in names and other is not None:
        both = f"the ledger counts rows of both as '{MISSED}.{other}'"
        wrong = f"'{MISSED}' can't stand beside the window {other!r}"
        raise SpecError(f"windows.{MISSED}", f"{wrong}: {both}; give one of them another name")


def _check_name(field: str, name: str, more: tuple[str, ...]) -> None:
    _check_taken(field, name, OUTPUT_COLUMNS + more + FEED_COLUMNS)
    _check_spelling(field, name, "an output column")


def _check_taken(field: str, name: str, reserved: tuple[str, ...]) -> None:
    if name.lower() in reserved or name.startswith(HELPER):
        said = f"not allowed are {listed(reserved)} and names that begin with '{HELPER}'"
        raise SpecError(field, f"{name!r} is reserved; {said}; give it another name")


def _check_spelling(field: str, name: str, what: str) -> None:
    if not name or _NO_DELTA_NAME.search(name):
        allowed = "its name is not empty and has no space and none of , . ; { } ( ) = `"
        raise SpecError(field, f"{shown(name)} can't be {what}; {allowed}")
