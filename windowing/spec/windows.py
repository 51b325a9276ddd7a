"""Windows as written -> windows as values: sizes, grids, and which aggregates."""

import re
from decimal import Decimal
from math import isfinite

from windowing.errors import SpecError
from windowing.grid.rule import Grid
from windowing.spec.duration import DAY
from windowing.spec.kinds import (
    CHANGES,
    Aggregate,
    CappedSession,
    Count,
    Cumulate,
    Delta,
    Global,
    Punctuation,
    RecordSliding,
    Session,
    Sliding,
    Tumbling,
    Window,
)
from windowing.spec.references import Reference, read_column
from windowing.spec.shown import output_policy
from windowing.spec.times import (
    check_positive,
    check_zone,
    fixed_us,
    not_negative_us,
    origin_us,
    parse_duration,
    positive_us,
)
from windowing.spec.words import join_names, quote_value, suggest_name
from windowing.spec.yaml.fields import STEP
from windowing.spec.yaml.window_document import (
    AnyWindow,
    CountDocument,
    CumulateDocument,
    DeltaDocument,
    GlobalDocument,
    GridDocument,
    PunctuationDocument,
    RecordSlidingDocument,
    SessionDocument,
    SlidingDocument,
    TumblingDocument,
)

MONDAY_US = 4 * DAY
"""1970-01-05, where weeks begin."""

_WEEKS = re.compile(r"\s*\+?\d+\s+weeks?\s*", re.IGNORECASE)
_QUOTED_NUMBER = re.compile(r"\s*[+-]?\d+(\.\d+)?\s*", re.ASCII)
_MOST_EVENTS = 1_000_000_000
_MOST_WINDOWS = 1_000_000
_MOST_CALENDAR_STEPS = 100_000
"""How many steps a period may have if its boundaries follow months or the clock of a zone."""
_DELTA_LIMIT = 10**18
_DELTA_PLACES = 9


def build_window(name: str, written: AnyWindow, aggregates: tuple[Aggregate, ...]) -> Window:
    """The window called `name`; `aggregates` are those of the pipeline.

    A sliding window whose slide is its size is tumbling.
    """
    field = f"windows.{name}"
    chosen = _choose_aggregates(f"{field}.aggregates", written.aggregates, aggregates)
    output = output_policy(field, written, chosen)
    match written:
        case TumblingDocument():
            grid = _parse_grid(field, "size", written.size, written)
            return Tumbling(name, grid, chosen, output)
        case SlidingDocument():
            grid, size_us = _parse_sliding(field, written)
            # Tumbling windows have no `emit: changes`, so with it the window stays a sliding one.
            if size_us == grid.step_us and output.emit != CHANGES:
                return Tumbling(name, grid, chosen, output)
            return Sliding(name, grid, size_us, chosen, output)
        case CumulateDocument():
            return Cumulate(name, _parse_cumulate_grid(field, written), chosen, output)
        case SessionDocument():
            gap_us, longest_us = _parse_session(field, written)
            if longest_us is None:
                return Session(name, gap_us, chosen, output)
            return CappedSession(name, gap_us, longest_us, chosen, output)
        case RecordSlidingDocument():
            difference_us, tick_us = _parse_record_sliding(field, written)
            return RecordSliding(name, difference_us, tick_us, chosen, output)
        case CountDocument():
            return Count(name, written.count, _parse_every(field, written), chosen, output)
        case DeltaDocument():
            delta, delta_us = _parse_delta(f"{field}.delta", written.delta)
            attribute = read_column(f"{field}.attribute", written.attribute).name
            return Delta(name, attribute, delta, delta_us, chosen, output)
        case PunctuationDocument():
            marker = read_column(f"{field}.marker", written.marker).name
            return Punctuation(name, marker, chosen, output)
        case GlobalDocument():
            return Global(name, chosen, output)


def read_window_columns(name: str, written: AnyWindow) -> tuple[Reference, ...]:
    """The columns that end the windows called `name`, and the parts of columns."""
    match written:
        case DeltaDocument():
            return (read_column(f"windows.{name}.attribute", written.attribute),)
        case PunctuationDocument():
            return (read_column(f"windows.{name}.marker", written.marker),)
    return ()


def _choose_aggregates(
    field: str, names: list[str] | None, aggregates: tuple[Aggregate, ...]
) -> tuple[Aggregate, ...]:
    """The aggregates that `names` names, in its order; all of them if a window names none."""
    if names is None:
        return aggregates
    known = {aggregate.name: aggregate for aggregate in aggregates}
    for i, name in enumerate(names):
        if name not in known:
            raise SpecError(
                f"{field}[{i}]",
                f"{quote_value(name)} is not defined under aggregates{suggest_name(name, known)}; "
                f"allowed: {join_names(known)}",
            )
    for i, name in enumerate(names):
        if name in names[:i]:
            raise SpecError(field, f"{name!r} is given twice; name each aggregate once")
    return tuple(known[name] for name in names)


def _parse_grid(
    field: str, part: str, text: str, written: TumblingDocument | CumulateDocument
) -> Grid:
    """The grid whose step is the length `text`, given as the field `part`."""
    size = parse_duration(f"{field}.{part}", text)
    check_positive(f"{field}.{part}", text, size.us or size.months)
    if written.offset is not None and written.origin is not None:
        raise SpecError(
            f"{field}.offset",
            f"{written.offset!r} and origin {written.origin!r} are both given; use one of them",
        )
    if size.months and written.offset is not None:
        raise SpecError(
            f"{field}.offset",
            f"{written.offset!r} can't shift months, whose lengths differ; "
            "use origin, as in origin: 2024-01-15",
        )
    if written.origin is None:
        origin = _parse_offset_us(field, written, text, size.us)
    else:
        origin = origin_us(f"{field}.origin", written.origin)
    return Grid(size.us, size.months, origin, check_zone(f"{field}.zone", written.zone))


def _parse_cumulate_grid(field: str, written: CumulateDocument) -> Grid:
    periods = _parse_grid(field, "max_size", written.max_size, written)
    step = parse_duration(f"{field}.step", written.step)
    check_positive(f"{field}.step", written.step, step.us or step.months)
    if step.months and periods.step_us:
        raise SpecError(
            f"{field}.step",
            f"{written.step!r} has no fixed length, but max_size {written.max_size!r} has; "
            "use days",
        )
    grid = Grid(
        periods.step_us, periods.months, periods.origin_us, periods.zone, step.us, step.months
    )
    if step.months > periods.months or step.us > _longest_us(periods):
        raise SpecError(
            f"{field}.step",
            f"{written.step!r} is longer than max_size {written.max_size!r}; "
            "it must be at most as long",
        )
    follows_calendar = grid.zone is not None or grid.months > 0
    most = _MOST_CALENDAR_STEPS if follows_calendar else _MOST_WINDOWS
    if grid.plain.per > most:
        raise SpecError(
            f"{field}.step",
            f"{written.step!r} makes more than {most:,} steps of {written.max_size!r}; "
            "write a longer step",
        )
    if grid.zone is not None and 0 < grid.step_us < DAY and grid.plain.inner_us:
        wrong = f"{written.step!r} does not divide max_size {written.max_size!r}"
        raise SpecError(
            f"{field}.step", f"{wrong}; in a zone it must, unless max_size is a day or longer"
        )
    return grid


def _longest_us(grid: Grid) -> int:
    if grid.step_us:
        return grid.step_us
    return grid.months * 31 * DAY


def _parse_sliding(field: str, written: SlidingDocument) -> tuple[Grid, int]:
    """The grid where windows begin, and their size."""
    size = positive_us(f"{field}.size", written.size)
    slide = positive_us(f"{field}.slide", written.slide)
    if slide > size:
        raise SpecError(
            f"{field}.slide",
            f"{written.slide!r} is longer than size {written.size!r}; "
            "events between windows would be lost; make it at most as long",
        )
    if size // slide > _MOST_WINDOWS:
        raise SpecError(
            f"{field}.slide",
            f"{written.slide!r} puts each event into more than {_MOST_WINDOWS:,} windows of "
            f"{written.size!r}",
        )
    origin = _parse_offset_us(field, written, written.slide, slide)
    return Grid(slide, 0, origin, check_zone(f"{field}.zone", written.zone)), size


def _parse_session(field: str, written: SessionDocument) -> tuple[int, int | None]:
    """The gap, and how long a session may last; None for no limit."""
    gap = positive_us(f"{field}.gap", written.gap)
    if written.max_duration is None:
        return gap, None
    longest = positive_us(f"{field}.max_duration", written.max_duration)
    if longest < gap:
        raise SpecError(
            f"{field}.max_duration",
            f"{written.max_duration!r} is shorter than gap {written.gap!r}; "
            "make it at least as long",
        )
    return gap, longest


def _parse_record_sliding(field: str, written: RecordSlidingDocument) -> tuple[int, int]:
    """The difference and the tick."""
    tick = positive_us(f"{field}.tick", written.tick)
    difference = positive_us(f"{field}.difference", written.difference)
    if difference % tick:
        raise SpecError(
            f"{field}.difference",
            f"{written.difference!r} is not a multiple of tick {written.tick!r}; "
            "change one of them",
        )
    return difference, tick


def _parse_every(field: str, written: CountDocument) -> int:
    """From how many events on the next window begins."""
    if not 1 <= written.count <= _MOST_EVENTS:
        raise SpecError(
            f"{field}.count",
            f"{quote_value(written.count)} is not a number of events; "
            f"it must be from 1 to {_MOST_EVENTS:,}",
        )
    every = written.count if written.every is None else written.every
    if every < 1:
        raise SpecError(
            f"{field}.every",
            f"{quote_value(every)} is not a number of events; "
            f"it must be from 1 to count {written.count}",
        )
    if every > written.count:
        raise SpecError(
            f"{field}.every",
            f"{quote_value(every)} is more than count {written.count}; "
            "events between windows would be lost",
        )
    if written.count // every > _MOST_WINDOWS:
        raise SpecError(
            f"{field}.every",
            f"{quote_value(every)} puts each event into more than {_MOST_WINDOWS:,} windows of "
            f"{written.count:,} events",
        )
    return every


def _parse_delta(field: str, given: float | str) -> tuple[str | None, int | None]:
    """The growth as a decimal text, or as microseconds."""
    if isinstance(given, str):
        if _QUOTED_NUMBER.fullmatch(given):
            raise SpecError(
                field,
                f"{given!r} is text; write a number without quotes, "
                "or a duration such as '5 minutes'",
            )
        return None, not_negative_us(field, given)
    if isinstance(given, float) and not isfinite(given):
        raise SpecError(field, f"{given} is not {STEP}")
    if given < 0:
        raise SpecError(field, f"{quote_value(given)} is negative; it must be 0 or more")
    number = _exact_decimal(given)
    if number is None:
        raise SpecError(
            field,
            f"{quote_value(given)} has too many digits; "
            f"a number has up to 18 before and {_DELTA_PLACES} after the point",
        )
    # abs, because YAML has -0.0, which is not negative and would keep its sign.
    return f"{abs(number):f}", None


def _exact_decimal(given: float) -> Decimal | None:
    """The number without trailing zeros; None if it has too many digits."""
    # The limit comes first, because Python writes no int of more than 4,300 digits out.
    if given >= _DELTA_LIMIT:
        return None
    number = Decimal(str(given)).normalize()
    if number != round(number, _DELTA_PLACES):
        return None
    return number


def _parse_offset_us(field: str, written: GridDocument, step: str, step_us: int) -> int:
    """Where boundary 0 lies: the offset, modulo the step, after 1970-01-01.

    If the step is written in weeks, it is the offset after Monday, 1970-01-05.
    """
    begin_us = MONDAY_US if _WEEKS.fullmatch(step) else 0
    if written.offset is None:
        return begin_us
    return (begin_us + fixed_us(f"{field}.offset", written.offset)) % step_us
