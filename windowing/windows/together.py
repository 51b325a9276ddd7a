"""Windows that are computed in one pass: a row says which of them it is about.

    panes[key, pane_start]  ->  [key, pane_start, __window]    for each window a row

What differs between the windows is a constant array with an element for each: the runs of its grid,
its size and its slide. So queries of many windows are as short as those of two, and Spark compiles
them once. The rules are those of `GridKind`, which a window alone asks: it needs neither the column
nor the copies of rows, and its numbers become code.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windowing.columns import END, FROM, HIGH, JUDGED, LOW, PANE, START, WINDOW, Names
from windowing.grid.range import Range
from windowing.grid.rule import Grid, Run, grid_runs
from windowing.panes.rule import grid_shape, longest_span
from windowing.spec.kinds import Aligned, AlignedWindows, Cumulate

_FAR = 2**62
"""Longer than any time, and a larger number than that of any boundary."""
BLOCK = "__block"
_GRID, _STEP, _CLOSED = "__grid", "__step", "__closed"
_SIZE, _SLIDE, _PER = "__grid.size", "__grid.slide", "__grid.per"


def identify(keys: Names, windows: AlignedWindows) -> tuple[str, ...]:
    """The columns within which rows belong together: the keys, and the window if it is not alone.

    >>> identify(["key"], [])
    ('key', '__window')
    """
    return tuple(keys) if len(windows) == 1 else (*keys, WINDOW)


def spread(rows: DataFrame, windows: AlignedWindows, places: Sequence[int]) -> DataFrame:
    """A copy of each row for each of the windows at `places`; the rows alone for a single window.

    rows -> rows + [__window]
    """
    if len(windows) == 1:
        return rows
    numbers = ", ".join(map(str, places))
    return rows.withColumn(WINDOW, F.expr(f"explode(array({numbers}))"))


def place_in_each(
    panes: DataFrame, windows: AlignedWindows, lateness_us: int | None, within: Range
) -> DataFrame:
    """Adds the first and the last window number that each pane counts in, `__low` and `__high`."""
    step = _write_index("ends", f"unix_micros({PANE})")
    closed = "cast(null as bigint)"
    if lateness_us is not None:
        closed_us = f"least(unix_micros({JUDGED}) - {lateness_us}L, {within.high_us}L)"
        closed_index = _write_index("ends", f"greatest({closed_us}, {within.low_us}L)")
        # Where no watermark judged the events, only the other end would be left.
        is_known = f"{JUDGED} is not null and {closed_us} >= {within.low_us}L"
        closed = f"if({is_known}, {closed_index}, null)"
    counted = _compute_once(_add_grids(panes, windows, within), {_STEP: step, _CLOSED: closed})
    first_slide = _divide(f"({_STEP} + {_SLIDE} - {_SIZE})", _SLIDE)
    last_closed = _divide(f"({_CLOSED} - {_SIZE})", _SLIDE)
    period = _divide(_STEP, _PER)
    contains = _choose(first_slide, f"{_STEP} + 1")
    is_open = f"{_choose(last_closed, _CLOSED)} + 1"
    low = F.expr(f"greatest({contains}, {is_open})")
    high = F.expr(_choose(_divide(_STEP, _SLIDE), f"({period} + 1) * {_PER}"))
    placed = counted.withColumns({LOW: low, HIGH: high})
    return placed.drop(_GRID, _STEP, _CLOSED)


def add_bounds_of_each(numbered: DataFrame, windows: AlignedWindows, within: Range) -> DataFrame:
    """Adds start and end of the windows with the numbers `__from`."""
    start_us, end_us = _write_bounds(FROM)
    times = {
        START: f"timestamp_micros({start_us})",
        END: f"timestamp_micros({end_us})",
    }
    with_grids = _add_grids(numbered, windows, _widen(windows, within))
    return _compute_once(with_grids, times).drop(_GRID)


def drop_repeated_of_each(numbered: DataFrame, windows: AlignedWindows, within: Range) -> DataFrame:
    """The rows without those of windows with the number `__from` whose bounds the next one repeats.

    Of cumulating windows the ends alone are compared, within a period.
    """
    start_us, end_us = _write_bounds(FROM)
    next_start_us, next_end_us = _write_bounds(f"({FROM} + 1)")
    is_inside_period = f"pmod({FROM}, {_PER}) <> 0"
    stays = _choose(f"{start_us} = {next_start_us}", is_inside_period)
    is_repeated = F.expr(f"{end_us} = {next_end_us} and {stays}")
    with_grids = _add_grids(numbered, windows, _widen(windows, within))
    return with_grids.where(~is_repeated).drop(_GRID)


def add_block_of_each(
    rows: DataFrame, windows: AlignedWindows, within: Range, time: str
) -> DataFrame:
    """Adds the number of the block that contains the instant in the column `time`: + [__block]."""
    number = _write_index("starts", f"unix_micros({time})")
    with_grids = _add_grids(rows, windows, within)
    counted = _compute_once(with_grids, {_STEP: number})
    number_of_block = F.expr(_divide(_STEP, _SIZE))
    found = counted.withColumn(BLOCK, number_of_block)
    return found.drop(_GRID, _STEP)


def _widen(windows: AlignedWindows, within: Range) -> Range:
    return within.widen(max(map(longest_span, windows)))


def _add_grids(rows: DataFrame, windows: AlignedWindows, within: Range) -> DataFrame:
    """Adds what is particular to the window of a row, `__grid`; it is right for times `within`."""
    each = ", ".join(_write_grid(window, within) for window in windows)
    return _compute_once(rows, {_GRID: f"array({each})[{WINDOW}]"})


def _compute_once(rows: DataFrame, columns: dict[str, str]) -> DataFrame:
    """`rows` and columns that Spark does not compute again wherever they are used.

    It would do so with plain expressions, but not with what a generator gives.
    """
    return rows.select("*", F.expr(f"inline(array({_write_struct(columns)}))"))


def _write_bounds(number: str) -> tuple[str, str]:
    """Spark's text for start and end of a window, in microseconds."""
    period = _divide(f"({number} - 1)", _PER)
    first_of_slide = f"{number} * {_SLIDE}"
    first = _choose(first_of_slide, period)
    after = _choose(f"{first_of_slide} + {_SIZE}", number)
    return _write_boundary("starts", first), _write_boundary("ends", after)


def _choose(sliding: str, cumulate: str) -> str:
    """Spark's text for one of two values, by the kind of the window of a row."""
    return f"if({_PER} is null, {sliding}, {cumulate})"


def _write_index(runs: str, time: str) -> str:
    """Spark's text for the number of the last boundary at or before a time."""
    since = f"({time} - r.begin_us)"
    whole = f"{_divide(since, 'r.wide_us')} * r.per"
    inside = _divide(f"pmod({since}, r.wide_us)", "r.narrow_us")
    number = f"least(r.base_k + {whole} + {inside}, r.last_k)"
    return _write_last_run(runs, f"r.from_us <= {time}", number)


def _write_boundary(runs: str, number: str) -> str:
    """Spark's text for the instant of a boundary."""
    nth = f"({number} - r.first_k)"
    whole = f"{_divide(nth, 'r.per')} * r.step_us"
    inside = f"pmod({nth}, r.per) * r.inner_us"
    instant = f"r.begin_us + {whole} + {inside}"
    return _write_last_run(runs, f"r.from_k <= {number}", instant)


def _write_last_run(runs: str, has_begun: str, value: str) -> str:
    """Spark's text for the value of the last run that has begun."""
    begun = f"filter({_GRID}.{runs}, r -> {has_begun})"
    return f"try_element_at(transform({begun}, r -> {value}), -1)"


def _divide(a: str, b: str) -> str:
    """Spark's text for `a / b` rounded down, exact for every BIGINT, also below zero."""
    return f"(({a} - pmod({a}, {b})) div {b})"


def _write_grid(window: Aligned, within: Range) -> str:
    if isinstance(window, Cumulate):
        starts, ends = window.grid.periods, window.grid
        numbers = {"size": "1L", "slide": "1L", "per": f"{window.grid.per}L"}
    else:
        shape = grid_shape(window)
        starts = ends = shape.grid
        no_period = "cast(null as bigint)"
        numbers = {"size": f"{shape.size}L", "slide": f"{shape.slide}L", "per": no_period}
    runs = {
        "starts": _write_runs(starts, within),
        "ends": _write_runs(ends, within),
    }
    return _write_struct({**runs, **numbers})


def _write_runs(grid: Grid, within: Range) -> str:
    first, *others = grid_runs(grid, within.low_us, within.high_us)
    # The first one is that of all times before it, too.
    written = [_write_run(first, -_FAR, -_FAR)]
    for run in others:
        written.append(_write_run(run, run.at_us, run.first))
    return f"array({', '.join(written)})"


def _write_run(run: Run, from_us: int, from_k: int) -> str:
    """The numbers of a run, which is that of times and boundaries from these on."""
    last_k = _FAR if run.last is None else run.last
    numbers = {
        "begin_us": run.at_us,
        "step_us": run.step_us,
        "wide_us": run.step_us or _FAR,
        "per": run.per,
        "inner_us": run.inner_us,
        "narrow_us": run.inner_us if run.per > 1 else _FAR,
        "first_k": run.first,
        # Without a step all boundaries are one instant, of which the last one counts.
        "base_k": run.first if run.step_us else last_k,
        "last_k": last_k,
        "from_us": from_us,
        "from_k": from_k,
    }
    return _write_struct({name: f"{number}L" for name, number in numbers.items()})


def _write_struct(fields: dict[str, str]) -> str:
    named = [f"'{name}', {text}" for name, text in fields.items()]
    return f"named_struct({', '.join(named)})"
