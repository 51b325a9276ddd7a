"""Windows as written -> windows as values: sizes, grids, and which aggregates."""

import re

from windowing.errors import SpecError
from windowing.grid.rule import Grid
from windowing.spec.document import AnyWindow, GridDocument, SessionDocument, SlidingDocument, TumblingDocument
from windowing.spec.duration import DAY, Duration
from windowing.spec.pipeline import Aggregate, Session, Sliding, Tumbling, Window
from windowing.spec.times import duration, fixed_us, longest_us, origin_us, positive, positive_us, zone
from windowing.spec.words import listed, near, shown

MONDAY_US = 4 * DAY
"""1970-01-05, where weeks begin."""

_WEEKS = re.compile(r"\s*\+?\d+\s+weeks?\s*", re.IGNORECASE)


def window(name: str, written: AnyWindow, aggregates: tuple[Aggregate, ...]) -> Window:
    """The window called `name`; `aggregates` are the pipeline's. A sliding window whose slide is its size is tumbling."""
    field = f"windows.{name}"
    chosen = _chosen(f"{field}.aggregates", written.aggregates, aggregates)
    match written:
        case TumblingDocument():
            return Tumbling(name, _tumbling_grid(field, written), chosen, written.change_feed)
        case SlidingDocument():
            return _sliding(field, name, written, chosen)
        case SessionDocument():
            return Session(name, positive_us(f"{field}.gap", written.gap), chosen, written.change_feed)


def longest_window_us(window: Window) -> int:
    """How long state of `window` is needed after its first event: the size, or two gaps of a session (until it is final)."""
    match window:
        case Tumbling(grid=grid):
            return longest_us(Duration(grid.step_us, grid.months))
        case Sliding(size_us=size):
            return size
        case Session(gap_us=gap):
            return 2 * gap


def _chosen(field: str, names: list[str] | None, aggregates: tuple[Aggregate, ...]) -> tuple[Aggregate, ...]:
    known = {a.name: a for a in aggregates}
    for i, name in enumerate(names or []):
        if name not in known:
            raise SpecError(f"{field}[{i}]", f"{shown(name)} is not defined under aggregates{near(name, known)}; allowed: {listed(known)}")
    repeated = [name for i, name in enumerate(names or []) if name in (names or [])[:i]]
    if repeated:
        raise SpecError(field, f"{repeated[0]!r} is given twice; name each aggregate once")
    return aggregates if names is None else tuple(known[name] for name in names)


def _tumbling_grid(field: str, written: TumblingDocument) -> Grid:
    size = duration(f"{field}.size", written.size)
    positive(f"{field}.size", written.size, size.us or size.months)
    if written.offset is not None and written.origin is not None:
        raise SpecError(f"{field}.offset", f"{written.offset!r} and origin {written.origin!r} are both given; use one of them")
    if size.months and written.offset is not None:
        raise SpecError(
            f"{field}.offset", f"{written.offset!r} can't shift months, whose lengths differ; use origin, as in origin: 2024-01-15"
        )
    origin = _offset_us(field, written, written.size, size.us)
    if written.origin is not None:
        origin = origin_us(f"{field}.origin", written.origin)
    return Grid(size.us, size.months, origin, zone(f"{field}.zone", written.zone))


def _sliding(field: str, name: str, written: SlidingDocument, aggregates: tuple[Aggregate, ...]) -> Window:
    size, slide = positive_us(f"{field}.size", written.size), positive_us(f"{field}.slide", written.slide)
    if slide > size:
        raise SpecError(f"{field}.slide", f"{written.slide!r} is longer than size {written.size!r}; events between windows would be lost")
    origin = _offset_us(field, written, written.slide, slide)
    grid = Grid(slide, 0, origin, zone(f"{field}.zone", written.zone))
    if slide == size:
        return Tumbling(name, grid, aggregates, written.change_feed)
    return Sliding(name, grid, size, aggregates, written.change_feed)


def _offset_us(field: str, written: GridDocument, step: str, step_us: int) -> int:
    """Where boundary 0 lies: the offset, modulo the step, after 1970-01-01, or after a Monday if the step is written in weeks."""
    begin = MONDAY_US if _WEEKS.fullmatch(step) else 0
    return begin if written.offset is None else (begin + fixed_us(f"{field}.offset", written.offset)) % step_us
