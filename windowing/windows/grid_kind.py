"""What differs between the kinds of windows on a grid, whose windows have numbers."""

from typing import Protocol, assert_never

from pyspark.sql import Column

from windowing.aggregates.algebra import Parts
from windowing.grid.range import Range
from windowing.grid.rule import Grid
from windowing.spec.kinds import Aligned, Cumulate, Sliding, Tumbling
from windowing.windows.cumulate import CumulateKind
from windowing.windows.keyed_rows import Ends
from windowing.windows.merging import Merge
from windowing.windows.sliding import SlidingKind


class GridKind(Protocol):
    """How the windows of one kind lie on a grid.

    Numbers of windows and of steps are BIGINT columns, times are microseconds. Each window that is
    asked about contains an instant of the range `within`.
    """

    @property
    def steps(self) -> Grid:
        """The grid at whose boundaries windows begin and end; step n begins at boundary n."""

    def find_windows(self, step: Column) -> Ends:
        """The first and the last window that contain a step."""

    def find_first_open(self, boundary: Column) -> Column:
        """The first window that ends after a boundary."""

    def find_bounds(self, number: Column, within: Range) -> Ends:
        """Start and end of a window."""

    def is_repeated(self, number: Column, within: Range) -> Column | None:
        """True for a window whose bounds the next one repeats; None where that can't be."""

    def find_next_start(self, time: Column, within: Range) -> Column | None:
        """The start of the first window that begins after an instant.

        None for a kind none of whose windows is compared with one that begins earlier.
        """

    def find_block(self, time: Column, within: Range) -> Column:
        """The number of the block that contains an instant.

        The windows that contain an instant reach no further than the blocks next to its own.
        """

    def choose_merge(self, kept: Parts) -> Merge:
        """How placed panes with these parts are merged for the least cost."""


def kind_of(window: Aligned) -> GridKind:
    """What is particular to the kind of `window`."""
    match window:
        case Tumbling() | Sliding():
            return SlidingKind(window)
        case Cumulate():
            return CumulateKind(window)
        case _:
            assert_never(window)
