"""Where windows begin: boundary k of a grid, and the k of an instant. Pure integers, right before 1970.

A grid lies on a local wall clock: boundary k is the local time origin + k * step (or k * months after the origin, clamped to
month ends). Each local time maps to one instant: in a fold the earlier one, in a gap the transition; instants that coincide
collapse, so the window of t is [greatest boundary <= t, next boundary). Source of the idea: TIMESTAMP_LTZ windows of Flink SQL.

    grid -> runs(low, high): a few affine pieces -> boundary(k), index(t), and the same two in Spark (frame.py)
"""

from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from windowing.grid.zone import EPOCH, FIRST_YEAR, HOUR_US, LAST_YEAR, micros, moment, transitions

MARGIN_US = 3 * 24 * HOUR_US
"""More than any clock jump: runs are computed this far beyond the range asked for."""


@dataclass(frozen=True)
class Grid:
    """Boundaries on a wall clock: every `step_us`, or every `months`; boundary 0 at the local time `origin_us`; zone None = UTC.

    With `inner_us` or `inner_months` each step is a period that has boundaries of its own, counted from its beginning and ended by the
    next period's: `per` of them, of which those that would lie beyond the period coincide with its end.
    """

    step_us: int = 0
    months: int = 0
    origin_us: int = 0
    zone: str | None = None
    inner_us: int = 0
    inner_months: int = 0

    def __post_init__(self) -> None:
        if (self.step_us > 0) == (self.months > 0):
            raise ValueError(
                f"a grid has a positive step or positive months, not step_us={self.step_us}, months={self.months}"
            )

    @property
    def per(self) -> int:
        """The most boundaries a period can have, its own first one included: one more where a month's end was clamped at its beginning."""
        if self.inner_months:
            return self.months // self.inner_months + 1
        longest = self.step_us or self.months * 31 * 24 * HOUR_US
        return -(-longest // self.inner_us) if self.inner_us else 1

    @property
    def periods(self) -> "Grid":
        """The grid without its inner boundaries."""
        return Grid(self.step_us, self.months, self.origin_us, self.zone)

    @property
    def plain(self) -> "Grid":
        """A grid without periods that has the same boundaries under the same numbers, if there is one; else this grid."""
        if self.inner_us and self.step_us and self.step_us % self.inner_us == 0:
            return Grid(self.inner_us, 0, self.origin_us, self.zone)
        return self.periods if self.per == 1 else self


@dataclass(frozen=True)
class Run:
    """Boundaries first..last that are `step_us` apart from the instant `at_us` on; step 0: all of them at `at_us`.

    `last` None: the run never ends, in both directions. With `per` > 1 it is periods that are `step_us` apart, each with `per`
    boundaries `inner_us` apart.
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
    """Local times [low, high) of which the first is the instant `at_us`; off the clock (a gap), all of them are that instant."""

    low_us: int
    high_us: int
    at_us: int
    on_clock: bool


def runs(grid: Grid, low_us: int, high_us: int) -> tuple[Run, ...]:
    """The runs that say every boundary from the last one <= `low_us` to the first one > `high_us`."""
    grid = grid.plain
    if grid.zone is None and grid.step_us:
        return (Run(0, None, grid.origin_us, grid.step_us, grid.per, grid.inner_us),)
    low, high = low_us - _reach(grid), high_us + _reach(grid)
    spans = local_spans(grid.zone, low, high)
    if grid.per > 1:
        return tuple(_nested(grid, spans))
    return tuple(
        run
        for span in spans
        for run in (_stepped(grid, span) if grid.step_us else _calendar(grid, span))
    )


def boundary(grid: Grid, k: int) -> int:
    """The instant of boundary `k`, in microseconds since 1970."""
    grid = grid.plain
    period, nth = divmod(k, grid.per)
    local = (
        min(_inner(grid, period)[nth], _local(grid, period + 1))
        if grid.per > 1
        else _local(grid, k)
    )
    found = [
        r
        for r in runs(grid, local - MARGIN_US, local + MARGIN_US)
        if r.last is None or r.first <= k <= r.last
    ]
    return found[0].instant(k)


def index(grid: Grid, t_us: int) -> int:
    """The greatest k whose boundary is at or before the instant `t_us`."""
    run = [r for r in runs(grid, t_us, t_us) if r.last is None or r.at_us <= t_us][-1]
    if run.last is not None and not run.step_us:
        return run.last
    periods, into = divmod(t_us - run.at_us, run.step_us)
    k = run.first + periods * run.per + (into // run.inner_us if run.per > 1 else 0)
    return k if run.last is None else min(run.last, k)


_EARLIEST = micros(datetime(FIRST_YEAR, 1, 1, tzinfo=UTC))
_LATEST = micros(datetime(LAST_YEAR, 12, 31, tzinfo=UTC))


def _reach(grid: Grid) -> int:
    return (
        grid.inner_us or grid.step_us or (grid.inner_months or grid.months) * 31 * 24 * HOUR_US
    ) + MARGIN_US


def local_spans(zone: str | None, low_us: int, high_us: int) -> tuple[Span, ...]:
    """Local time without holes or overlaps, at least around the instants [low, high]: in a fold the earlier instants count."""
    stretches = (
        transitions(zone, low_us - MARGIN_US, high_us + MARGIN_US) if zone else [(_EARLIEST, 0)]
    )
    ends = [begin for begin, _ in stretches[1:]] + [max(high_us, stretches[-1][0]) + MARGIN_US]
    out: list[Span] = []
    covered = max(stretches[0][0], low_us - MARGIN_US) + stretches[0][1]
    for (begin, offset), end in zip(stretches, ends, strict=True):
        if begin + offset > covered and out:
            out.append(Span(covered, begin + offset, begin, on_clock=False))
            covered = begin + offset
        if end + offset > covered:
            out.append(Span(covered, end + offset, covered - offset, on_clock=True))
            covered = end + offset
    return tuple(out)


def _stepped(grid: Grid, span: Span) -> list[Run]:
    first = -((grid.origin_us - span.low_us) // grid.step_us)
    last = -((grid.origin_us - span.high_us) // grid.step_us) - 1
    if last < first:
        return []
    into = grid.origin_us + first * grid.step_us - span.low_us
    return (
        [Run(first, last, span.at_us + into, grid.step_us)]
        if span.on_clock
        else [Run(first, last, span.at_us, 0)]
    )


def _calendar(grid: Grid, span: Span) -> list[Run]:
    k = _month_index(grid, max(span.low_us, _EARLIEST))
    out = []
    while (local := _local(grid, k)) < min(span.high_us, _LATEST):
        if local >= span.low_us:
            out.append(Run(k, k, span.at_us + (local - span.low_us if span.on_clock else 0), 0))
        k += 1
    return out


def _nested(grid: Grid, spans: tuple[Span, ...]) -> list[Run]:
    """The runs of every period that begins within `spans`, the boundaries that coincide with its end among them."""
    out: list[Run] = []
    k = _first_period(grid, max(spans[0].low_us, _EARLIEST))
    while _local(grid, k) < min(spans[-1].high_us, _LATEST):
        found, k = _periods(grid, k, spans)
        out += found
    return out


def _periods(grid: Grid, k: int, spans: tuple[Span, ...]) -> tuple[list[Run], int]:
    """The runs of period `k`, or one run of as many as are equal and lie in one span; and the period that comes next."""
    begin, step = _local(grid, k), grid.step_us
    span = next(
        (
            s
            for s in spans
            if step and s.on_clock and s.low_us <= begin and begin + step <= s.high_us
        ),
        None,
    )
    if span is None:
        return _period(grid, k, spans), k + 1
    after = (span.high_us - grid.origin_us) // step
    return [
        Run(k * grid.per, after * grid.per - 1, _at(span, begin), step, grid.per, grid.inner_us)
    ], after


def _period(grid: Grid, k: int, spans: tuple[Span, ...]) -> list[Run]:
    out: list[Run] = []
    end, inner = _local(grid, k + 1), _inner(grid, k)
    beyond = bisect_left(inner, end)
    for span in spans:
        i, j = bisect_left(inner, span.low_us), min(bisect_left(inner, span.high_us), beyond)
        out += [
            Run(k * grid.per + n, k * grid.per + m, at, step)
            for n, m, at, step in _even(grid, span, inner, i, j)
        ]
    if beyond < grid.per and (at_end := _first_instant(end, spans)) is not None:
        out.append(Run(k * grid.per + beyond, (k + 1) * grid.per - 1, at_end, 0))
    return out


def _inner(grid: Grid, k: int) -> Sequence[int]:
    """The local times of the boundaries of period `k`, those beyond its end included."""
    begin = _local(grid, k)
    if grid.inner_us:
        return range(begin, begin + grid.per * grid.inner_us, grid.inner_us)
    months = Grid(0, grid.inner_months, begin)
    return [_local(months, i) for i in range(grid.per)]


def _even(
    grid: Grid, span: Span, inner: Sequence[int], i: int, j: int
) -> Iterator[tuple[int, int, int, int]]:
    """(first, last, instant, step) of evenly spaced stretches of `inner[i:j]`, which lie in `span`."""
    if i < j and (grid.inner_us or not span.on_clock):
        yield i, j - 1, _at(span, inner[i]), grid.inner_us if span.on_clock and j - i > 1 else 0
        return
    while i < j:
        last, step = i, inner[i + 1] - inner[i] if i + 1 < j else 0
        while last + 1 < j and inner[last + 1] - inner[last] == step:
            last += 1
        yield i, last, _at(span, inner[i]), step
        i = last + 1


def _first_instant(local: int, spans: tuple[Span, ...]) -> int | None:
    span = next((s for s in spans if s.low_us <= local < s.high_us), None)
    return None if span is None else _at(span, local)


def _at(span: Span, local: int) -> int:
    """The instant of a local time in the span; all of those that the clock jumped over are one."""
    return span.at_us + (local - span.low_us if span.on_clock else 0)


def _first_period(grid: Grid, local_us: int) -> int:
    return (
        (local_us - grid.origin_us) // grid.step_us
        if grid.step_us
        else _month_index(grid, local_us)
    )


def _local(grid: Grid, k: int) -> int:
    """The local wall-clock time of boundary `k`."""
    if grid.step_us:
        return grid.origin_us + k * grid.step_us
    origin = moment(grid.origin_us)
    year, month0 = divmod(origin.year * 12 + origin.month - 1 + k * grid.months, 12)
    if not FIRST_YEAR <= year <= LAST_YEAR:
        return _EARLIEST if year < FIRST_YEAR else _LATEST
    day = min(origin.day, monthrange(year, month0 + 1)[1])
    return micros(origin.replace(year=year, month=month0 + 1, day=day))


def _month_index(grid: Grid, local_us: int) -> int:
    """A k at or before the last boundary <= `local_us`, at most two steps off."""
    at, origin = moment(local_us), EPOCH + (moment(grid.origin_us) - EPOCH)
    return (at.year * 12 + at.month - origin.year * 12 - origin.month) // grid.months - 1
