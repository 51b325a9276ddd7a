"""Cumulating windows as numbers: window n runs from the beginning of its period to boundary n.

Boundaries are counted across periods. In periods of 3 steps:

    boundaries  0   1   2   3   4   5   6
    window 1    |-->|
    window 2    |------>|
    window 3    |---------->|
    window 4                |-->|

So step 1, which begins at boundary 1, is in the windows 2 and 3.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Parts
from windowing.columns import FROM, HIGH, LOW, TO, TOUCHED, Names
from windowing.grid.frame import boundary, div, index
from windowing.grid.range import Range
from windowing.grid.rule import Grid
from windowing.panes.rule import longest_span
from windowing.spec.kinds import Cumulate
from windowing.windows.keyed_rows import Ends, order_rows, up_to_row
from windowing.windows.merging import Merge, merge_groups


@dataclass(frozen=True)
class CumulateKind:
    """How cumulating windows lie on a grid; the methods are those of GridKind."""

    window: Cumulate

    @property
    def steps(self) -> Grid:
        """The window's own grid."""
        return self.window.grid

    def find_windows(self, step: Column) -> Ends:
        """The first and the last window that contain a step."""
        last_of_period = (div(step, self.steps.per) + 1) * self.steps.per
        return step + 1, last_of_period

    def find_first_open(self, boundary: Column) -> Column:
        """The first window that ends after a boundary."""
        return boundary + 1

    def find_bounds(self, number: Column, within: Range) -> Ends:
        """Start and end of a window."""
        wide = within.widen(longest_span(self.window))
        period = div(number - 1, self.steps.per)
        start = boundary(self.steps.periods, period, wide)
        end = boundary(self.steps, number, wide)
        return start, end

    def is_repeated(self, number: Column, within: Range) -> Column | None:
        """True for a window whose end the next one repeats; None where that can't be.

        Boundaries repeat where a zone's clock jumps over them, or where they lie beyond a short
        month.
        """
        if self.steps.zone is None and self.steps.step_us:
            return None
        _, end = self.find_bounds(number, within)
        _, next_end = self.find_bounds(number + 1, within)
        ends_period = F.pmod(number, F.lit(self.steps.per)) == 0
        return (end == next_end) & ~ends_period

    def find_next_start(self, time: Column, within: Range) -> None:
        """None, because no window of the next period changes with this one."""
        return

    def find_block(self, time: Column, within: Range) -> Column:
        """The number of the period that contains an instant; its windows reach no further."""
        return index(self.steps.periods, time, within)

    def choose_merge(self, kept: Parts) -> Merge:
        """How placed panes with these parts are merged for the least cost."""
        return merge_by_period


def merge_by_period(placed: DataFrame, keys: Names, kept: Parts) -> DataFrame:
    """Stretches of windows of periods whose panes are merged from the first one on.

    There is one merge for each pane, however many windows contain it.

    placed[keys, __low, __high, parts, touched] -> [keys, from, to, parts, touched].
    """
    merged = merge_groups(placed, [*keys, HIGH, LOW], kept)
    # All windows of one period have the same `__high`: its last boundary.
    period = [*keys, HIGH]
    up_to_here = up_to_row(period, LOW)
    before_next = F.lead(LOW).over(order_rows(period, LOW)) - 1
    first = F.col(LOW).alias(FROM)
    last = F.coalesce(before_next, HIGH).alias(TO)
    parts = [part.running(up_to_here) for part in kept]
    touched = F.max(TOUCHED).over(up_to_here).alias(TOUCHED)
    return merged.select(*keys, first, last, *parts, touched)
