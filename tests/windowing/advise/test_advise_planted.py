"""Lateness that was planted is found, within one per cent; and shares that arrived, within two."""

import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import exp, log
from typing import Any

import numpy as np
import pytest

from tests.windowing.cases import (
    COUNT,
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    cumulate,
    pipeline,
    sliding,
    year,
)
from tests.windowing.cases import tumbling as tumbling_case
from windowing.advise.advice import OpenWindow, Wanted
from windowing.advise.analysis import advise_watermark
from windowing.advise.history import UNKNOWN_US, Batches, Events
from windowing.advise.reading import Reading
from windowing.grid.rule import Grid
from windowing.spec.kinds import Global, Window
from windowing.spec.pipeline import Retention, Watermark

START = year(2026)
EVERY = 10 * SECOND
"""How often a commit is made."""
Shape = Callable[[float], float]
"""From the share of events that are at most so late to how late they are, in microseconds."""


def exponential(share: float) -> float:
    """Half a minute on average: a queue."""
    return -30 * SECOND * log(1 - share)


def two_ways(share: float) -> float:
    """Nine tenths within ten seconds, the rest between one and three hours: phones without net."""
    if share < 0.9:
        return share / 0.9 * 10 * SECOND
    return HOUR + (share - 0.9) / 0.1 * 2 * HOUR


def heavy(share: float) -> float:
    """A minute in the middle, and a long tail (log-logistic)."""
    return min(MINUTE * exp(log(share / (1 - share)) / 2), 5 * HOUR)


SHAPES: dict[str, Shape] = {"queue": exponential, "phones": two_ways, "long": heavy}


def spread_over_shares(shape: Shape, many: int) -> list[int]:
    """So many latenesses that have exactly the quantiles of the shape; the last one has an end."""
    return [round(shape(min((n + 1) / many, 1 - 0.5 / many))) for n in range(many)]


def plant(many: int, long: int, seed: int) -> list[tuple[int, int, int]]:
    """(arrival, event time, group) of events of each shape, in the order of arrival.

    Of each shape the latenesses are evenly spread over its shares, so they have its quantiles. A
    commit is made every ten seconds, and each has an event that is not late.
    """
    rng = random.Random(seed)
    found = []
    for group, shape in enumerate(SHAPES.values()):
        lates = spread_over_shares(shape, many)
        rng.shuffle(lates)
        for late in lates:
            arrival = START + rng.randrange(1, long // EVERY) * EVERY
            found.append((arrival, arrival - late, group))
    beats = range(START, START + long, EVERY)
    return sorted([*found, *((at, at, len(SHAPES)) for at in beats)])


def read(events: list[tuple[int, int, int]]) -> Reading:
    """A reading of such events, one batch for each arrival."""
    arrivals = sorted({arrival for arrival, _, _ in events})
    number = {arrival: n for n, arrival in enumerate(arrivals)}
    batch, time, group = (
        np.array(column, np.int64)
        for column in zip(*((number[a], t, g) for a, t, g in events), strict=True)
    )
    known = Batches(np.array(arrivals, np.int64), np.full(len(arrivals), UNKNOWN_US))
    names = [(name,) for name in (*SHAPES, "beat")]
    return Reading(
        0, len(arrivals) - 1, known, Events(batch, time, group, group), names, names, 0, (), "all"
    )


def hourly(delay: int = 0) -> Window:
    """Hours of UTC."""
    return tumbling_case(Grid(HOUR)).ours


def test_lateness_is_found_by_group() -> None:
    many = 10_000
    events = plant(many, 2 * DAY, 1)
    advice = advise_watermark(pipeline(hourly()), read(events), Wanted())
    assert advice.all is not None
    assert advice.judged == len(events) - 1
    found = {each.name: each.lateness for each in advice.groups}
    for name, shape in SHAPES.items():
        lateness = found[name]
        for share, age, behind in zip(
            (0.5, 0.99, 0.999), lateness.age_us, lateness.behind_us, strict=False
        ):
            assert age == pytest.approx(shape(share), rel=0.01)
            # Ten seconds earlier the newest event had arrived as it happened.
            assert behind == pytest.approx(max(0, shape(share) - EVERY), rel=0.01, abs=SECOND / 10)
        assert lateness.age_us[3] == spread_over_shares(shape, many)[-1]
    ages = sorted(arrival - time for arrival, time, _ in events[1:])
    expected = [ages[-(-len(ages) * n // 1000) - 1] for n in (500, 990, 999, 1000)]
    assert list(advice.all.age_us) == expected
    counts = sum(each.lateness.events for each in advice.hours)
    assert counts == sum(each.lateness.events for each in advice.periods) == advice.judged


def test_what_is_needed_is_what_a_loop_finds() -> None:
    events = plant(3_000, DAY, 4)
    advice = advise_watermark(pipeline(hourly()), read(events), Wanted(counted=Fraction(1)))
    # Each commit has an event that is not late, so the newest one before is of the last commit.
    over = [
        arrival - EVERY - (time // HOUR + 1) * HOUR
        for arrival, time, _ in events
        if arrival > START
    ]
    over.sort()
    for target in advice.targets:
        rank = -(-len(over) * target.share.numerator // target.share.denominator)
        assert target.reach_us == max(0, over[rank - 1] + 1)
        kept = sum(each < target.cost.settings.reach_us for each in over)
        assert target.cost.missing == len(over) - kept
    assert advice.proposed is not None
    assert (advice.proposed.missing, advice.proposed.refused) == (0, 0)
    assert advice.proposed.correcting == sum(
        each >= advice.proposed.settings.delay_us for each in over
    )


WINDOWS: dict[str, Window] = {
    "tumbling": tumbling_case(Grid(HOUR)).ours,
    "sliding": sliding(Grid(20 * MINUTE), 2 * HOUR).ours,
    "cumulate": cumulate(Grid(3 * HOUR, inner_us=30 * MINUTE)).ours,
}


LENGTHS = {"tumbling": HOUR, "sliding": 2 * HOUR, "cumulate": 3 * HOUR}
"""How long the longest windows are."""


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("age", [-20 * MINUTE, 10 * MINUTE, 90 * MINUTE])
def test_expected_shares_are_what_arrives_in_the_end(kind: str, age: int) -> None:
    """At three ages: a window that goes on, one that has just ended, one that is long over."""
    long = 4 * DAY
    events = spread(40_000, long, 5)
    # The history ends at that age of the window that ends with the third day.
    until = START + 3 * DAY + age
    known = [event for event in events if event[0] <= until]
    asked = replace(pipeline(WINDOWS[kind]), watermark=Watermark(12 * HOUR, 0, HOUR))
    advice = advise_watermark(asked, read(known), Wanted())
    (found,) = [
        each
        for each in advice.windows
        if each.end.timestamp() * SECOND == START + 3 * DAY and length(each) == LENGTHS[kind]
    ]
    start = int(found.start.timestamp()) * SECOND
    inside = [a for a, t, _ in events if start <= t < START + 3 * DAY]
    share = sum(a <= until for a in inside) / len(inside)
    assert found.events == sum(a <= until for a in inside)
    assert found.expected_share == pytest.approx(share, abs=0.02)
    assert advice.checks
    for each in advice.checks:
        assert each.check.was == pytest.approx(each.check.expected, abs=0.02)


def length(window: OpenWindow) -> int:
    """How long a window is, in microseconds."""
    return int((window.end - window.start).total_seconds()) * SECOND


@cache
def spread(many: int, long: int, seed: int) -> list[tuple[int, int, int]]:
    """(arrival, event time, group) of events that happen evenly, each as late as a shape.

    They arrive with the next commit.
    """
    rng = random.Random(seed)
    found = []
    for group, shape in enumerate(SHAPES.values()):
        lates = spread_over_shares(shape, many)
        rng.shuffle(lates)
        for n, late in enumerate(lates):
            time = START + (n * long) // many + rng.randrange(0, long // many)
            arrival = -(-(time + late) // MINUTE) * MINUTE
            found.append((arrival, time, group))
    return sorted(found)


def test_what_the_spec_would_refuse_is_said() -> None:
    events = plant(1_000, DAY, 6)
    asked = pipeline(hourly())

    def notes(**changes: Any) -> tuple[str, ...]:
        return advise_watermark(replace(asked, **changes), read(events), Wanted()).notes

    assert notes() == notes(retention=Retention(DAY), freshness_us=DAY) == ()
    (short,) = notes(retention=Retention(HOUR))
    assert "change retention.state" in short
    assert "write at least '" in short
    (early,) = notes(freshness_us=1)
    assert "freshness" in early
    (never,) = advise_watermark(pipeline(Global("g", COUNT)), read(events), Wanted()).notes
    assert "global windows never close" in never
    few = plant(50, HOUR, 6)
    (too_few,) = advise_watermark(asked, read(few), Wanted()).notes
    assert "so few events" in too_few


def test_odd_keys_are_found() -> None:
    """A key that is always three hours late, one whose clock is ahead, one that fell silent."""
    times = range(START, START + DAY, MINUTE // 2)
    keys = {
        0: [(at, at) for at in times],
        1: [(at, at - 3 * HOUR) for at in times[::120]],
        2: [(at, at + 5 * MINUTE) for at in times[::120]],
        3: [(at, at) for at in times[:60]],
    }
    events = sorted((a, t, key) for key, pairs in keys.items() for a, t in pairs)
    advice = advise_watermark(pipeline(hourly()), read(events), Wanted())
    found = {(name, finding.what) for name, finding in advice.odd_keys}
    assert found == {
        ("queue", "busy"), ("phones", "late"), ("long", "ahead"), ("beat", "silent"),
    }  # fmt: skip
