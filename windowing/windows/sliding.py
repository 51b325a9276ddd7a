"""Tumbling and sliding windows as numbers: window n covers steps [n * slide, n * slide + size).

A size of 3 steps and a slide of 1:

    steps       | 0 | 1 | 2 | 3 | 4 |
    window 0    |<--------->|
    window 1        |<--------->|
    window 2            |<--------->|

So step 2 is in the windows 0, 1 and 2.
"""

from dataclasses import dataclass

from pyspark.sql import Column

from windowing.aggregates.algebra import Parts
from windowing.grid.frame import boundary, div, index
from windowing.grid.placing import Shape
from windowing.grid.range import Range
from windowing.grid.rule import Grid
from windowing.grid.zone import longest_jump_us
from windowing.panes.rule import grid_shape, longest_span, windows_of_pane
from windowing.spec.duration import DAY
from windowing.spec.kinds import CHANGES, Aligned
from windowing.windows.keyed_rows import Ends
from windowing.windows.merge_by_block import merge_by_block
from windowing.windows.merge_by_change import merge_by_change
from windowing.windows.merge_by_point import merge_by_point
from windowing.windows.merge_by_window import merge_by_window
from windowing.windows.merging import Merge, WideMerge

MANY = 16
"""From so many windows for each pane on, blocks take less time than a merge for each window."""

_SHORTEST_MONTH_US = 28 * DAY


@dataclass(frozen=True)
class SlidingKind:
    """How windows of one length lie on a grid; the methods are those of GridKind."""

    window: Aligned

    @property
    def shape(self) -> Shape:
        """The window in steps."""
        return grid_shape(self.window)

    @property
    def steps(self) -> Grid:
        """The coarsest grid that has all boundaries of the windows."""
        return self.shape.grid

    def find_windows(self, step: Column) -> Ends:
        """The first and the last window that contain a step."""
        size, slide = self.shape.size, self.shape.slide
        first = div(step + (slide - size), slide)
        last = div(step, slide)
        return first, last

    def find_first_open(self, boundary: Column) -> Column:
        """The first window that ends after a boundary."""
        return div(boundary - self.shape.size, self.shape.slide) + 1

    def find_bounds(self, number: Column, within: Range) -> Ends:
        """Start and end of a window."""
        first_step = number * self.shape.slide
        end_step = first_step + self.shape.size
        wide = within.widen(longest_span(self.window))
        start = boundary(self.steps, first_step, wide)
        end = boundary(self.steps, end_step, wide)
        return start, end

    def is_repeated(self, number: Column, within: Range) -> Column | None:
        """True for a window whose bounds the next one repeats; None where that can't be.

        Both bounds collapse where a zone's clock jumps over a whole slide, which is seldom.
        """
        grid, wide = self.window.grid, within.widen(longest_span(self.window))
        slide_us = grid.step_us or _SHORTEST_MONTH_US
        if longest_jump_us(grid.zone, wide.low_us, wide.high_us) < slide_us:
            return None
        start, end = self.find_bounds(number, within)
        next_start, next_end = self.find_bounds(number + 1, within)
        return (start == next_start) & (end == next_end)

    def find_next_start(self, time: Column, within: Range) -> Column:
        """The start of the first window that begins after an instant."""
        wide = within.widen(longest_span(self.window))
        last_begun = div(index(self.steps, time, wide), self.shape.slide)
        return boundary(self.steps, (last_begun + 1) * self.shape.slide, wide)

    def find_block(self, time: Column, within: Range) -> Column:
        """The number of the block of `size` steps that contains an instant."""
        return div(index(self.steps, time, within), self.shape.size)

    def choose_merge(self, kept: Parts) -> Merge:
        """How placed panes with these parts are merged for the least cost."""
        overlapping = self.shape.size > self.shape.slide
        if overlapping and all(part.invertible for part in kept):
            return merge_by_change
        windows_per_pane = windows_of_pane(self.window)
        if windows_per_pane >= MANY and all(part.join is not None for part in kept):
            return WideMerge(merge_by_block, windows_per_pane)
        if self.window.shown.emit == CHANGES:
            return WideMerge(merge_by_point, windows_per_pane)
        return merge_by_window
