"""How windows lie in time, apart from what they are called: on a grid, in chains or in order.

A kind of window is placed in one of these ways, and everything that follows from it follows from
the way. No Spark.
"""

from dataclasses import dataclass
from math import gcd

from windowing.grid.rule import Grid, boundary, index
from windowing.grid.zone import HOUR_US

_MONTH_US = 31 * 24 * HOUR_US


@dataclass(frozen=True)
class Shape:
    """A window in steps of one grid: window j covers steps [j * slide, j * slide + size)."""

    grid: Grid
    size: int
    slide: int


@dataclass(frozen=True)
class OnSteps:
    """A window begins at every boundary of a grid without periods, `begins`.

    It lasts `length_us` on the same clock, or else until the next boundary.
    """

    begins: Grid
    length_us: int | None = None

    @property
    def shape(self) -> Shape:
        """The windows on the coarsest grid that has all their boundaries."""
        begins, length_us = self.begins, self.length_us
        if length_us is None:
            return Shape(begins, 1, 1)
        step_us = gcd(length_us, begins.step_us)
        steps = Grid(step_us, 0, begins.origin_us, begins.zone)
        return Shape(steps, size=length_us // step_us, slide=begins.step_us // step_us)

    @property
    def cuts(self) -> tuple[Grid, ...]:
        """The grids at whose boundaries windows begin or end."""
        begins = self.begins
        end_us = 0 if self.length_us is None else self.length_us % begins.step_us
        if end_us == 0:
            return (begins,)
        return begins, Grid(begins.step_us, 0, begins.origin_us + end_us, begins.zone)

    @property
    def longest_us(self) -> int:
        """How long a window lasts without clock jumps, months at their longest."""
        return self.length_us or _longest_step_us(self.begins)

    @property
    def most_windows(self) -> int:
        """In how many windows an instant is at most."""
        shape = self.shape
        return -(-shape.size // shape.slide)  # rounded up

    def surround(self, low_us: int, high_us: int) -> tuple[int, int]:
        """From the start of the first to the end of the last window that contains a time."""
        shape = self.shape
        first = (index(shape.grid, low_us) + shape.slide - shape.size) // shape.slide
        last = index(shape.grid, high_us) // shape.slide
        start_us = boundary(shape.grid, first * shape.slide)
        end_us = boundary(shape.grid, last * shape.slide + shape.size)
        return start_us, end_us

    def late_before(self, closed_us: int) -> tuple[int, int]:
        """Before which time all windows of an event have ended by `closed_us`, and some have."""
        shape = self.shape
        closed = (index(shape.grid, closed_us) - shape.size) // shape.slide
        next_start_us = boundary(shape.grid, (closed + 1) * shape.slide)
        last_end_us = boundary(shape.grid, closed * shape.slide + shape.size)
        return next_start_us, last_end_us


@dataclass(frozen=True)
class OnPeriods:
    """Windows begin with each period of a grid, and one ends at each inner boundary."""

    begins: Grid
    length_us: None = None

    @property
    def cuts(self) -> tuple[Grid, ...]:
        """The grids at whose boundaries windows begin or end."""
        return (self.begins.plain,)

    @property
    def longest_us(self) -> int:
        """How long a window lasts without clock jumps, months at their longest."""
        return _longest_step_us(self.begins)

    @property
    def most_windows(self) -> int:
        """In how many windows an instant is at most."""
        return self.begins.per

    def surround(self, low_us: int, high_us: int) -> tuple[int, int]:
        """From the start of the first to the end of the last window that contains a time."""
        periods = self.begins.periods
        start_us = boundary(periods, index(periods, low_us))
        end_us = boundary(periods, index(periods, high_us) + 1)
        return start_us, end_us

    def late_before(self, closed_us: int) -> tuple[int, int]:
        """Before which time all windows of an event have ended by `closed_us`, and some have."""
        # All windows of a period begin with it, so its last one ends with the period.
        grid, periods = self.begins, self.begins.periods
        all_us = boundary(periods, index(periods, closed_us))
        return all_us, boundary(grid, index(grid, closed_us))


@dataclass(frozen=True)
class OnTicks:
    """Windows of one length, which begin at some boundaries of a grid in UTC: where events are."""

    difference_us: int
    tick_us: int

    @property
    def begins(self) -> Grid:
        """The grid at whose boundaries windows begin."""
        return Grid(self.tick_us)

    @property
    def length_us(self) -> int:
        """How long a window lasts; both of its ends are ticks, and inside."""
        return self.difference_us + self.tick_us

    def late_before(self, closed_us: int) -> tuple[int, int]:
        """Before which time all windows of an event have ended by `closed_us`, and some have."""
        last_us = closed_us - self.tick_us
        return self._after(last_us - self.difference_us), self._after(last_us)

    def _after(self, last_us: int) -> int:
        """The first instant whose tick is after `last_us`."""
        return (last_us // self.tick_us + 1) * self.tick_us


@dataclass(frozen=True)
class InChains:
    """Windows of events at most `gap_us` apart, cut after `longest_us` where that is given."""

    gap_us: int
    longest_us: int | None = None


@dataclass(frozen=True)
class InOrder:
    """Windows of events in order; no event is in two of them where they lie `apart`."""

    apart: bool


OnGrid = OnSteps | OnPeriods
"""Windows whose bounds are the same for every key."""
Placing = OnGrid | OnTicks | InChains | InOrder


def _longest_step_us(grid: Grid) -> int:
    return grid.step_us or grid.months * _MONTH_US
