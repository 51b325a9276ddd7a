"""Strategies for the properties of window arithmetic: instants, grids and windows.

Each window is drawn together with the oracle's window.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from hypothesis import strategies as st

from tests import oracle
from windowing.grid.rule import Grid
from windowing.grid.zone import micros
from windowing.location import Location
from windowing.spec.kinds import Aggregate, Aligned, Cumulate, Sliding, Tumbling, Window
from windowing.spec.pipeline import EventTime, Pipeline, Source, Watermark

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
COUNT = (Aggregate("n", "count"),)
# They have half hours, a jump over a whole day, a half-hour summer time, two jumps a year around
# Ramadan, negative summer time, and offsets of seconds before 1972.
ZONES = (
    None,
    "America/New_York",
    "Europe/Berlin",
    "Europe/Dublin",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Casablanca",
    "Africa/Monrovia",
    "America/St_Johns",
    "Antarctica/Troll",
)


def year(n: int) -> int:
    """The instant the year `n` begins in UTC."""
    return micros(datetime(n, 1, 1, tzinfo=UTC))


instants = st.one_of(
    st.integers(year(1970), year(2031)),
    st.integers(year(1850), year(1970)),
    st.integers(-3 * HOUR, 3 * HOUR),
)
zones = st.sampled_from(ZONES)
steps = st.one_of(
    st.sampled_from([MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 90 * MINUTE, 7 * HOUR, DAY, 7 * DAY]),
    st.integers(1, 50).map(lambda n: n * 100 * SECOND),
    st.integers(SECOND, 3 * DAY),
)


@dataclass(frozen=True)
class Case:
    """One window, as the pipeline says it and as the oracle says it."""

    ours: Aligned
    theirs: oracle.Grid


def tumbling(grid: Grid, name: str = "w") -> Case:
    """The tumbling window on `grid`."""
    return Case(
        Tumbling(name, grid, COUNT),
        oracle.Tumbling(name, grid.step_us, grid.months, grid.origin_us, grid.zone),
    )


def sliding(grid: Grid, size_us: int, name: str = "w") -> Case:
    """The sliding window of `size_us` whose slide is the step of `grid`."""
    return Case(
        Sliding(name, grid, size_us, COUNT),
        oracle.Sliding(name, size_us, grid.step_us, grid.origin_us, grid.zone),
    )


def cumulate(grid: Grid, name: str = "w") -> Case:
    """The cumulating window of the periods of `grid`, by its inner steps."""
    theirs = oracle.Cumulate(
        name, grid.step_us, grid.months, grid.inner_us, grid.inner_months, grid.origin_us, grid.zone
    )
    return Case(Cumulate(name, grid, COUNT), theirs)


@st.composite
def stepped(draw: st.DrawFn) -> Grid:
    """A grid with a fixed step."""
    step = draw(steps)
    return Grid(
        step, 0, draw(st.sampled_from([0, 0, step // 3, 4 * DAY % step, -step // 2])), draw(zones)
    )


@st.composite
def monthly(draw: st.DrawFn) -> Grid:
    """A calendar grid whose origin may be the last day of a month, at any time of day.

    It may lie long before or after 1970.
    """
    day = draw(st.integers(year(1900), year(2100))) // DAY * DAY
    end_of_month = draw(
        st.sampled_from(
            [0, 0, year(2024) + 30 * DAY, year(2024) + 59 * DAY, year(1969) + 364 * DAY]
        )
    )
    time_of_day = draw(st.sampled_from([0, 6 * HOUR, DAY - 1]))
    return Grid(
        0,
        draw(st.sampled_from([1, 1, 2, 3, 5, 12, 48])),
        (end_of_month or day) + time_of_day,
        draw(zones),
    )


@st.composite
def nested(draw: st.DrawFn) -> Grid:
    """A grid whose periods have steps of their own, which divide them or not.

    In a zone, a period that they do not divide lasts a day.
    """
    kind = draw(st.sampled_from(["fixed", "fixed", "months of steps", "months of months"]))
    if kind == "fixed":
        grid = draw(stepped())
        inner = draw(
            st.sampled_from(
                [grid.step_us, -(-grid.step_us // 2), -(-grid.step_us // 3), -(-grid.step_us // 7)]
            )
        )
        if grid.zone is not None and grid.step_us < DAY and grid.step_us % inner:
            inner = grid.step_us
        return Grid(grid.step_us, 0, grid.origin_us, grid.zone, inner)
    grid = draw(monthly())
    if kind == "months of steps":
        return Grid(
            0,
            grid.months,
            grid.origin_us,
            grid.zone,
            draw(st.sampled_from([DAY, 2 * DAY, 7 * DAY, 40 * DAY])),
        )
    return Grid(0, grid.months, grid.origin_us, grid.zone, 0, draw(st.integers(1, grid.months)))


@st.composite
def aligned(draw: st.DrawFn, name: str = "w") -> Case:
    """A tumbling, sliding or cumulate window.

    The size of a sliding one need not be a multiple of its slide.
    """
    kind = draw(st.sampled_from(["tumbling", "sliding", "sliding", "monthly", "cumulate"]))
    if kind == "cumulate":
        return cumulate(draw(nested()), name)
    if kind == "monthly":
        return tumbling(draw(monthly()), name)
    grid = draw(stepped())
    if kind == "tumbling":
        return tumbling(grid, name)
    size = grid.step_us * draw(st.integers(1, 5)) + draw(
        st.sampled_from([0, 0, 1, grid.step_us // 2, grid.step_us // 3])
    )
    return sliding(grid, size + (size == grid.step_us), name)


def pipeline(*windows: Window, lateness_us: int | None = 0) -> Pipeline:
    """A pipeline with these windows."""
    source = Source(Location("/source"), EventTime("ts"), ("key",))
    return Pipeline("p", Location("/lake"), source, Watermark(0, lateness_us, HOUR), windows)
