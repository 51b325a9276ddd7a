"""What the tables of a window consist of. No Spark.

A window has its output and, where that does not show every window, a table that does.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from windowing.columns import CLOSED_BY, REVISION, RUN, WINDOW
from windowing.grid.placing import InChains
from windowing.location import Location
from windowing.spec.description import State, describe_window
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline
from windowing.spec.reserved import PUBLISHED


def published_name(window: str) -> str:
    """The name of the published table of a window, in the directory of its pipeline."""
    return f"{PUBLISHED}/{window}"


class Shape(Protocol):
    """Rows of windows: what a comparison has to know of their columns."""

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that distinguish the rows."""

    @property
    def shown(self) -> tuple[str, ...]:
        """All columns that are compared and shown."""


REVISIONS = "_revisions"
"""The table of values that rows of outputs had before their change feeds were deleted."""


@dataclass(frozen=True)
class Target:
    """A table of windows; `path` is where it lies, the other columns are those of `Shape`.

    `chain` says how the sessions of an output are made; None for other windows.
    """

    path: Location
    identity: tuple[str, ...]
    shown: tuple[str, ...]
    change_feed: bool
    chain: InChains | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, in order."""
        return (*self.shown, REVISION, RUN)


@dataclass(frozen=True)
class Together:
    """Rows of several tables of the same `Shape`, which the column `__window` tells apart."""

    target: Target

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that distinguish the rows of all tables."""
        return (*self.target.identity, WINDOW)

    @property
    def shown(self) -> tuple[str, ...]:
        """All columns that are compared and shown."""
        return (*self.target.shown, WINDOW)


def output_table(pipeline: Pipeline, window: Window) -> Target:
    """The output of `window`, which users read."""
    keys = pipeline.source.key
    shown = (*window_columns(window, keys), *(a.name for a in window.aggregates))
    placing = describe_window(window).placing
    return Target(
        pipeline.table(window.name),
        identity(window, keys),
        shown,
        window.shown.change_feed,
        placing if isinstance(placing, InChains) else None,
    )


def list_lacking(pipeline: Pipeline, window: Window, stored: Iterable[str]) -> tuple[str, ...]:
    """The columns that rows of `window` are told apart and final by, and that are not `stored`.

    There are some where the output was made by another spec.
    """
    described = describe_window(window)
    needed = [*identity(window, pipeline.source.key)]
    if described.finality is not None and not described.closed_by_event:
        needed.append(described.finality.column)
    has = {*stored}
    return tuple(name for name in dict.fromkeys(needed) if name not in has)


def is_internal(table: str) -> bool:
    """Whether a table is none that a window is called as, so that no reader depends on it."""
    return table.startswith("_")


def name_complete(window: str) -> str:
    """The name of the table that contains every window, where that is not the output."""
    return f"_windows_{window}"


def complete_table(pipeline: Pipeline, window: Window) -> Target:
    """The table that contains every window.

    It is the output, unless that shows fewer windows or can't record which of them are complete.
    """
    users = output_table(pipeline, window)
    if in_output(window):
        return users
    closing = (CLOSED_BY,) if describe_window(window).closed_by_event else ()
    return Target(
        pipeline.table(name_complete(window.name)),
        users.identity,
        (*users.shown, *closing),
        change_feed=False,
    )


def in_output(window: Window) -> bool:
    """Whether the output itself is the complete table.

    Windows that are computed from panes need no other table. Those that an event closes need one,
    because the output does not record that event.
    """
    described = describe_window(window)
    if described.state is State.PANES:
        return True
    return window.shown.whole and not described.closed_by_event


def identity(window: Window, keys: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that distinguish the rows of an output."""
    return (*keys, *describe_window(window).identity)


def window_columns(window: Window, keys: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a row of an output before its values: keys, and what bounds the window."""
    return (*keys, *describe_window(window).bounds)
