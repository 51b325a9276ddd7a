"""Where windows begin: boundary k of a grid, and the k of an instant.

Everything is computed in whole microseconds, so it is right before 1970, too.

A grid lies on a local wall clock: boundary k is the local time origin + k * step (or k * months
after the origin, clamped to month ends). Each local time maps to one instant: in a fold the earlier
one, in a gap the transition. Instants that coincide collapse, so the window of t is
[greatest boundary <= t, next boundary). The idea is that of TIMESTAMP_LTZ windows in Flink SQL.

    grid -> runs(low, high): a few affine pieces -> boundary(k), index(t), also in Spark (frame.py)
"""

from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from windowing.grid.zone import FIRST_YEAR, HOUR_US, LAST_YEAR, micros, moment, transitions

MARGIN_US = 3 * 24 * HOUR_US
"""More than any clock jump: runs are computed this far beyond the range asked for."""
_LONGEST_MONTH_US = 31 * 24 * HOUR_US


@dataclass(frozen=True)
class Grid:
    """Boundaries on a wall clock: one every `step_us`, or one every `months`.

    Boundary 0 lies at the local time `origin_us`; zone None means UTC.

    With `inner_us` or `inner_months` each step is a period that has boundaries of its own. They are
    counted from its beginning and ended by the next period's: there are `per` of them, and those
    that would lie beyond the period coincide with its end.
    """

    step_us: int = 0
    months: int = 0
    origin_us: int = 0
    zone: str | None = None
    inner_us: int = 0
    inner_months: int = 0

    def __post_init__(self) -> None:
        if (self.step_us > 0) == (self.months > 0):
            given = f"step_us={self.step_us}, months={self.months}"
            raise ValueError(f"a grid has a positive step or positive months, not {given}")

    @property
    def per(self) -> int:
        """The most boundaries a period can have, its own first one included."""
        if self.inner_months:
            # One more than fit, because a month's end may have been clamped at the beginning.
            return self.months // self.inner_months + 1
        if not self.inner_us:
            return 1
        longest = self.step_us or self.months * _LONGEST_MONTH_US
        return -(-longest // self.inner_us)  # rounded up

    @property
    def periods(self) -> "Grid":
        """The grid without its inner boundaries."""
        return Grid(self.step_us, self.months, self.origin_us, self.zone)

    @property
    def plain(self) -> "Grid":
        """A grid without periods that has the same boundaries under the same numbers.

        If there is none, it is this grid.
        """
        if self.inner_us and self.step_us and self.step_us % self.inner_us == 0:
            return Grid(self.inner_us, 0, self.origin_us, self.zone)
        if self.per == 1:
            return self.periods
        return self


@dataclass(frozen=True)
class Run:
    """Boundaries first..last that are `step_us` apart from the instant `at_us` on.

    With step 0 all of them are at `at_us`. With `last` None the run never ends, in both directions.
    With `per` > 1 it is periods that are `step_us` apart, each with `per` boundaries `inner_us`
    apart.
    """

    first: int
    last: int | None
    at_us: int
    step_us: int
    per: int = 1
    inner_us: int = 0

    def instant(self, k: int) -> int:
        """Boundary `k`, in microseconds since 1970."""
        periods, inner = divmod(k - self.first, self.per)
        return self.at_us + periods * self.step_us + inner * self.inner_us


@dataclass(frozen=True)
class Span:
    """Local times [low, high) of which the first is the instant `at_us`.

    Off the clock (a gap), all of them are that instant.
    """

    low_us: int
    high_us: int
    at_us: int
    on_clock: bool


def grid_runs(grid: Grid, low_us: int, high_us: int) -> tuple[Run, ...]:
    """The runs with every boundary from the last one <= `low_us` to the first one > `high_us`."""
    grid = grid.plain
    if grid.zone is None and grid.step_us:
        return (Run(0, None, grid.origin_us, grid.step_us, grid.per, grid.inner_us),)
    reach_us = _measure_reach(grid)
    spans = local_spans(grid.zone, low_us - reach_us, high_us + reach_us)
    if grid.per > 1:
        return tuple(_nested_runs(grid, spans))
    found: list[Run] = []
    for span in spans:
        if grid.step_us:
            found += _stepped_runs(grid, span)
        else:
            found += _calendar_runs(grid, span)
    return tuple(found)


def boundary(grid: Grid, k: int) -> int:
    """The instant of boundary `k`, in microseconds since 1970.

    Raises OverflowError where it lies beyond the calendar.
    """
    grid = grid.plain
    if grid.per > 1:
        period, nth = divmod(k, grid.per)
        end = _local_time(grid, period + 1)
        local = min(_inner_boundaries(grid, period)[nth], end)
    else:
        local = _local_time(grid, k)
    near = grid_runs(grid, local - MARGIN_US, local + MARGIN_US)
    for run in near:
        if run.last is None or run.first <= k <= run.last:
            return run.instant(k)
    raise OverflowError(f"boundary {k} lies beyond the calendar")


def index(grid: Grid, t_us: int) -> int:
    """The greatest k whose boundary is at or before the instant `t_us`."""
    near = grid_runs(grid, t_us, t_us)
    begun = [run for run in near if run.last is None or run.at_us <= t_us]
    run = begun[-1]
    if run.last is not None and not run.step_us:
        return run.last
    periods, since_period = divmod(t_us - run.at_us, run.step_us)
    k = run.first + periods * run.per
    if run.per > 1:
        k += since_period // run.inner_us
    return k if run.last is None else min(run.last, k)


_EARLIEST = micros(datetime(FIRST_YEAR, 1, 1, tzinfo=UTC))
_LATEST = micros(datetime(LAST_YEAR, 12, 31, tzinfo=UTC))


def _measure_reach(grid: Grid) -> int:
    """How far from an instant the boundaries around it can lie, in microseconds."""
    step_us = grid.inner_us or grid.step_us
    if not step_us:
        step_us = (grid.inner_months or grid.months) * _LONGEST_MONTH_US
    return step_us + MARGIN_US


def local_spans(zone: str | None, low_us: int, high_us: int) -> tuple[Span, ...]:
    """Local time without holes or overlaps, at least around the instants [low, high].

    In a fold the earlier instants count.
    """
    low_us -= MARGIN_US
    # Without a zone the clock is UTC, which never jumps.
    stretches = [(_EARLIEST, 0)]
    if zone:
        stretches = transitions(zone, low_us, high_us + MARGIN_US)
    first_begin, first_offset = stretches[0]
    last_begin, _ = stretches[-1]
    ends = [begin for begin, _ in stretches[1:]]
    ends.append(max(high_us, last_begin) + MARGIN_US)
    spans: list[Span] = []
    covered = max(first_begin, low_us) + first_offset
    for (begin, offset), end in zip(stretches, ends, strict=True):
        local_begin = begin + offset
        if local_begin > covered and spans:
            spans.append(Span(covered, local_begin, begin, on_clock=False))
            covered = local_begin
        local_end = end + offset
        if local_end > covered:
            spans.append(Span(covered, local_end, covered - offset, on_clock=True))
            covered = local_end
    return tuple(spans)


def _stepped_runs(grid: Grid, span: Span) -> list[Run]:
    # Both are rounded up: the first boundary in the span, and the first one beyond it.
    first = -((grid.origin_us - span.low_us) // grid.step_us)
    after = -((grid.origin_us - span.high_us) // grid.step_us)
    if after <= first:
        return []
    last = after - 1
    if not span.on_clock:
        return [Run(first, last, span.at_us, 0)]
    since_begin = grid.origin_us + first * grid.step_us - span.low_us
    return [Run(first, last, span.at_us + since_begin, grid.step_us)]


def _calendar_runs(grid: Grid, span: Span) -> list[Run]:
    k = _month_index(grid, max(span.low_us, _EARLIEST))
    end = min(span.high_us, _LATEST)
    found = []
    local = _local_time(grid, k)
    while local < end:
        if local >= span.low_us:
            found.append(Run(k, k, _instant_in(span, local), 0))
        k += 1
        local = _local_time(grid, k)
    return found


def _nested_runs(grid: Grid, spans: tuple[Span, ...]) -> list[Run]:
    """The runs of every period that begins within `spans`.

    The boundaries that coincide with a period's end are among them.
    """
    found: list[Run] = []
    k = _first_period(grid, max(spans[0].low_us, _EARLIEST))
    end = min(spans[-1].high_us, _LATEST)
    while _local_time(grid, k) < end:
        period_runs, k = _period_runs(grid, k, spans)
        found += period_runs
    return found


def _period_runs(grid: Grid, k: int, spans: tuple[Span, ...]) -> tuple[list[Run], int]:
    """The runs of period `k`, and the number of the next period.

    Periods that are equal and lie in one span share one run.
    """
    begin = _local_time(grid, k)
    step = grid.step_us
    span = _span_around(spans, begin, begin + step) if step else None
    if span is None:
        return _runs_of_period(grid, k, spans), k + 1
    next_period = (span.high_us - grid.origin_us) // step
    first = k * grid.per
    last = next_period * grid.per - 1
    run = Run(first, last, _instant_in(span, begin), step, grid.per, grid.inner_us)
    return [run], next_period


def _span_around(spans: tuple[Span, ...], low: int, high: int) -> Span | None:
    """The span on the clock that contains the local times [low, high)."""
    for span in spans:
        if span.on_clock and span.low_us <= low and high <= span.high_us:
            return span
    return None


def _runs_of_period(grid: Grid, k: int, spans: tuple[Span, ...]) -> list[Run]:
    found: list[Run] = []
    end = _local_time(grid, k + 1)
    inner = _inner_boundaries(grid, k)
    first = k * grid.per
    beyond = bisect_left(inner, end)
    for span in spans:
        i = bisect_left(inner, span.low_us)
        j = min(bisect_left(inner, span.high_us), beyond)
        for piece_first, piece_last, at_us, step_us in _even_pieces(grid, span, inner, i, j):
            found.append(Run(first + piece_first, first + piece_last, at_us, step_us))
    if beyond < grid.per:
        at_end = _first_instant(end, spans)
        if at_end is not None:
            found.append(Run(first + beyond, first + grid.per - 1, at_end, 0))
    return found


def _inner_boundaries(grid: Grid, k: int) -> Sequence[int]:
    """The local times of the boundaries of period `k`, those beyond its end included."""
    begin = _local_time(grid, k)
    if grid.inner_us:
        return range(begin, begin + grid.per * grid.inner_us, grid.inner_us)
    months = Grid(0, grid.inner_months, begin)
    return [_local_time(months, i) for i in range(grid.per)]


def _even_pieces(
    grid: Grid, span: Span, inner: Sequence[int], i: int, j: int
) -> Iterator[tuple[int, int, int, int]]:
    """(first, last, instant, step) of evenly spaced pieces of `inner[i:j]`, which lie in `span`."""
    if i < j and (grid.inner_us or not span.on_clock):
        step = grid.inner_us if span.on_clock and j - i > 1 else 0
        yield i, j - 1, _instant_in(span, inner[i]), step
        return
    while i < j:
        last = i
        step = inner[i + 1] - inner[i] if i + 1 < j else 0
        while last + 1 < j and inner[last + 1] - inner[last] == step:
            last += 1
        yield i, last, _instant_in(span, inner[i]), step
        i = last + 1


def _first_instant(local: int, spans: tuple[Span, ...]) -> int | None:
    for span in spans:
        if span.low_us <= local < span.high_us:
            return _instant_in(span, local)
    return None


def _instant_in(span: Span, local: int) -> int:
    """The instant of a local time in the span; all of those that the clock jumped over are one."""
    if not span.on_clock:
        return span.at_us
    return span.at_us + local - span.low_us


def _first_period(grid: Grid, local_us: int) -> int:
    if grid.step_us:
        return (local_us - grid.origin_us) // grid.step_us
    return _month_index(grid, local_us)


def _local_time(grid: Grid, k: int) -> int:
    """The local wall-clock time of boundary `k`, clamped to the years the zone rules cover."""
    if grid.step_us:
        return grid.origin_us + k * grid.step_us
    origin = moment(grid.origin_us)
    months = origin.year * 12 + origin.month - 1 + k * grid.months
    year, month0 = divmod(months, 12)
    if year < FIRST_YEAR:
        return _EARLIEST
    if year > LAST_YEAR:
        return _LATEST
    _, days = monthrange(year, month0 + 1)
    return micros(origin.replace(year=year, month=month0 + 1, day=min(origin.day, days)))


def _month_index(grid: Grid, local_us: int) -> int:
    """A k at or before the last boundary <= `local_us`, at most two steps off."""
    at = moment(local_us)
    origin = moment(grid.origin_us)
    months = (at.year - origin.year) * 12 + at.month - origin.month
    # One step less, because the boundary in the month of `at` may lie after it.
    return months // grid.months - 1
