"""Which rows a closed period freezes, and where a change is written. No Spark.

A row is frozen that is in an output when the period is closed and whose window ends by then. What
would change it is stated in the table `_restated_{window}`. The rows of the output with the
restated ones in their place are those of a pipeline that was never closed.
"""

from dataclasses import dataclass
from itertools import product

from windowing.columns import DELETE, INSERT, UPDATE
from windowing.grid.placing import InOrder
from windowing.spec.description import describe_window
from windowing.spec.kinds import CHANGES, Window

CLOSED_UNTIL = "tidemark.closedUntil"
"""The property of an output that is closed, or was: until when, in microseconds, or `REOPENED`."""
REOPENED = "reopened"
DELETED = "__deleted"
"""Of a restated row: whether the frozen row would not be there, or be another one."""
LANES = 4
_LANE = 2**64


def restated_name(window: str) -> str:
    """The name of the table of restated rows of a window."""
    return f"_restated_{window}"


def can_be_frozen(window: Window) -> bool:
    """Whether rows of the output can be frozen.

    A global window never ends. Of windows in the order of events a late event moves the bounds of
    every later one, so that rows on both sides of a border would contradict one another. With
    `emit: changes` a row is left out where it equals the one before, so that a row behind the
    border goes by one that is frozen.
    """
    placing = describe_window(window).placing
    if placing is None or isinstance(placing, InOrder):
        return False
    return window.shown.emit != CHANGES


def read_until(setting: str | None) -> int | None:
    """Until when an output is closed, by its property; None where it is not.

    >>> read_until("1700000000000000"), read_until("reopened"), read_until(None)
    (1700000000000000, None, None)
    """
    return None if setting is None or setting == REOPENED else int(setting)


@dataclass(frozen=True)
class Row:
    """What is known of a row that a pipeline without a closed period would change.

    - `exists`: it would be there after the change.
    - `is_held`: it would end within the period, or overlap a frozen session.
    - `is_frozen`: the output has a frozen row of its identity.
    - `is_same`: that one is equal to it.
    - `in_output`, `in_restated`: which of both tables have a row of its identity.
    """

    exists: bool
    is_held: bool
    is_frozen: bool
    is_same: bool
    in_output: bool
    in_restated: bool


@dataclass(frozen=True)
class Placed:
    """What is done for a row in its output and in the table of restated rows; None is nothing."""

    output: str | None
    restated: str | None


def place_row(row: Row) -> Placed:
    """Where a change is written.

    It depends on the row and on what both tables have, and not on the change that led there, so it
    can be repeated where only one of two commits was made.
    """
    if row.is_frozen:
        is_stated = not (row.exists and row.is_same)
        return Placed(None, _operate(row.in_restated, is_stated))
    is_shown = row.exists and not row.is_held
    is_stated = row.exists and row.is_held
    return Placed(_operate(row.in_output, is_shown), _operate(row.in_restated, is_stated))


def _operate(is_there: bool, is_due: bool) -> str | None:  # noqa: FBT001
    """What makes a table have the row, or not have it."""
    if is_due:
        return UPDATE if is_there else INSERT
    return DELETE if is_there else None


def list_placed() -> tuple[Placed, ...]:
    """What `place_row` answers, by the number whose binary digits are the fields of a row.

    The first field is the lowest digit.
    """
    digits = product((False, True), repeat=len(Row.__dataclass_fields__))
    return tuple(place_row(Row(*reversed(each))) for each in digits)


def write_digest(sums: tuple[int, ...]) -> str:
    """A digest as text, from the sums of the parts of all digests of rows.

    It depends neither on the order of the rows nor on how they are spread over files.

    >>> write_digest((1, 2**64, 255))
    '0000000000000001000000000000000000000000000000ff'
    """
    return "".join(f"{each % _LANE:016x}" for each in sums)
