"""What the order of the events of a sample suggests: delay, lateness, and how long windows are.

Each comes with the figures from which it follows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from windowing.spec.duration import DAY, HOUR, MINUTE, SECOND, Duration

_STEPS = (
    *(0, SECOND, 10 * SECOND, MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE),
    *(HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 30 * DAY, 365 * DAY),
)
"""Lengths that people would write."""
_SIZES = ((60 * DAY, "daily", DAY), (HOUR, "hourly", HOUR), (0, "minutes", 10 * MINUTE))
"""From which span of event times on windows are so long, and what they are called."""
_FINER = {DAY: HOUR, HOUR: MINUTE, MINUTE: SECOND, SECOND: SECOND, 1: 1}
"""The unit in which the rest of a length is told, by the largest unit that it has."""


@dataclass(frozen=True)
class Proposed:
    """One part of a spec as it is written in YAML, and why."""

    value: str
    why: str


def propose_delay(times: Sequence[int]) -> Proposed:
    """How long windows wait, so that nearly all events of the sample come in time."""
    lags = sorted(_lags(times))
    delay = round_up(lags[int(0.99 * (len(lags) - 1))]) if lags else 0
    within = sum(lag <= delay for lag in lags)
    of_all = f"all {len(lags):,}" if within == len(lags) else f"{within:,} of {len(lags):,}"
    told = "come no further behind the latest one before them" if delay else "come in order of time"
    why = f"{of_all} events {told}" if len(lags) > 1 else "there is no event before the only one"
    return Proposed(write_length(delay), why)


def propose_lateness(times: Sequence[int]) -> Proposed:
    """For how long events may correct windows: ten times as late as one of the sample."""
    latest = max(_lags(times), default=0)
    _, size = _window_of(times)
    lateness = round_up(max(10 * latest, size))
    why = "no event came behind a later one"
    if latest:
        why = f"the event that came latest was {tell_length(latest)} behind"
    return Proposed(write_length(lateness), f"{why}; forever is allowed, too")


def propose_windows(times: Sequence[int]) -> dict[str, Proposed]:
    """A window by its name, whose length fits the time from the first event to the last one."""
    name, size = _window_of(times)
    span = _span_of(times)
    apart = f"the first and the last event of the sample are {tell_length(span)} apart"
    why = apart if span else "all events of the sample have the same time"
    return {name: Proposed(f"{{kind: tumbling, size: {write_length(size)}}}", why)}


def _lags(times: Sequence[int]) -> Iterator[int]:
    """How far each event is behind the latest one before it."""
    latest = None
    for at in times:
        latest = at if latest is None else max(latest, at)
        yield latest - at


def _span_of(times: Sequence[int]) -> int:
    return max(times) - min(times) if times else 0


def _window_of(times: Sequence[int]) -> tuple[str, int]:
    span = _span_of(times)
    return next((name, size) for least, name, size in _SIZES if span >= least)


def round_up(us: int) -> int:
    """The shortest length that people would write and that is at least so long."""
    return next((step for step in _STEPS if step >= us), -(-us // DAY) * DAY)


def write_length(us: int) -> str:
    """A length as a spec has it."""
    return str(Duration(us))


def tell_length(us: int) -> str:
    """A length as people tell it, in its two largest units; what is less is left out.

    >>> tell_length(2 * DAY + 11 * HOUR + 51 * MINUTE)
    '2 days 11 hours'
    """
    finer = next((finer for unit, finer in _FINER.items() if us >= unit), 1)
    return write_length(us - us % finer)
