"""The law of every kind of window holds of what the oracle makes of random events.

It holds whatever the output shows of it.
"""

import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from expectations.breaches import count_breaches
from expectations.law import law_of
from tests import oracle
from tests.expectations.planted import DAY_US, HOUR_US, SPRING, ZONE
from windowing.grid.rule import Grid
from windowing.grid.zone import micros, moment
from windowing.spec.kinds import (
    CHANGES,
    ON_CLOSE,
    Aggregate,
    CappedSession,
    Count,
    Cumulate,
    Delta,
    Global,
    Having,
    OutputPolicy,
    Punctuation,
    RecordSliding,
    Session,
    Sliding,
    Tumbling,
    Window,
)

MINUTE_US = HOUR_US // 60
MONTH = Grid(months=1, zone=ZONE, inner_us=5 * DAY_US)
COUNT = (Aggregate("count", "count"),)
PAIRS: tuple[tuple[Window, oracle.Window], ...] = (
    (Tumbling("day", Grid(DAY_US, zone=ZONE), COUNT), oracle.Tumbling("day", DAY_US, zone=ZONE)),
    (
        Tumbling("odd", Grid(7 * HOUR_US, 0, HOUR_US), COUNT),
        oracle.Tumbling("odd", 7 * HOUR_US, 0, HOUR_US),
    ),
    (
        Sliding("rolling", Grid(HOUR_US), 150 * MINUTE_US, COUNT),
        oracle.Sliding("rolling", 150 * MINUTE_US, HOUR_US),
    ),
    (
        Sliding("local", Grid(HOUR_US, zone=ZONE), 2 * HOUR_US, COUNT),
        oracle.Sliding("local", 2 * HOUR_US, HOUR_US, zone=ZONE),
    ),
    (
        Cumulate("so_far", Grid(DAY_US, inner_us=7 * HOUR_US), COUNT),
        oracle.Cumulate("so_far", DAY_US, step=7 * HOUR_US),
    ),
    (
        Cumulate("today", Grid(DAY_US, zone=ZONE, inner_us=HOUR_US), COUNT),
        oracle.Cumulate("today", DAY_US, step=HOUR_US, zone=ZONE),
    ),
    (
        Cumulate("sevens", Grid(DAY_US, zone=ZONE, inner_us=7 * HOUR_US), COUNT),
        oracle.Cumulate("sevens", DAY_US, step=7 * HOUR_US, zone=ZONE),
    ),
    (
        Cumulate("to_date", MONTH, COUNT),
        oracle.Cumulate("to_date", months=1, step=5 * DAY_US, zone=ZONE),
    ),
    (Session("busy", HOUR_US, COUNT), oracle.Session("busy", HOUR_US)),
    (
        CappedSession("shift", HOUR_US, 2 * HOUR_US, COUNT),
        oracle.Session("shift", HOUR_US, 2 * HOUR_US),
    ),
    (CappedSession("short", HOUR_US, HOUR_US, COUNT), oracle.Session("short", HOUR_US, HOUR_US)),
    (
        RecordSliding("recent", HOUR_US, 15 * MINUTE_US, COUNT),
        oracle.RecordSliding("recent", HOUR_US, 15 * MINUTE_US),
    ),
    (Count("three", 3, 3, COUNT), oracle.Count("three", 3)),
    (Count("latest", 5, 2, COUNT), oracle.Count("latest", 5, 2)),
    (Delta("climb", "attr", "3", None, COUNT), oracle.Delta("climb", 3)),
    (Punctuation("legs", "mark", COUNT), oracle.Punctuation("legs")),
    (Global("ever", COUNT), oracle.Global("ever")),
)
SHOWN = {
    "": (OutputPolicy(), {}),
    "_closed": (OutputPolicy(ON_CLOSE), {"emit": ON_CLOSE}),
    "_crowded": (OutputPolicy(having=Having("count", ">=", "2")), {"having": ("count", ">=", 2)}),
    "_changes": (OutputPolicy(CHANGES), {"emit": CHANGES}),
    "_filled": (OutputPolicy(empty_limit=1000), {"empty": True}),
}


def can_show(window: Window, how: str) -> bool:
    """Whether a spec may ask `window` for it."""
    kinds = {"_changes": (Sliding, Cumulate), "_filled": (Tumbling, Sliding)}.get(how)
    return not (how == "_closed" and isinstance(window, Global)) and (
        kinds is None or isinstance(window, kinds)
    )


CASES: dict[str, dict[str, tuple[Window, oracle.Window]]] = {
    ours.name: {
        ours.name + how: (
            replace(ours, name=ours.name + how, shown=shown),
            replace(theirs, name=ours.name + how, **told),
        )
        for how, (shown, told) in SHOWN.items()
        if can_show(ours, how)
    }
    for ours, theirs in PAIRS
}
"""Every window in every way it can be shown, by its name."""


@dataclass(frozen=True)
class Past:
    """What the oracle remembers of several runs.

    It also has how many accepted events missed each window.
    """

    truth: oracle.Oracle
    missed: Counter[str]


@pytest.fixture(scope="module")
def past() -> Past:
    """Events of eight keys over four days, in four runs, the later ones out of order.

    Events come in steps of ten minutes, so that many coincide.
    """
    draw, begin = random.Random(11), micros(SPRING) - DAY_US
    theirs = tuple(theirs for ways in CASES.values() for _, theirs in ways.values())
    truth = oracle.Oracle(HOUR_US // 2, 5 * HOUR_US, 10**15, None, theirs)
    for day in range(4):
        steps = [draw.randrange(max(0, day - 2) * 144, (day + 1) * 144) for _ in range(60)]
        truth.run(
            [
                _event(draw, f"{day}-{n}", begin + 10 * MINUTE_US * step)
                for n, step in enumerate(steps)
            ],
            begin + 30 * DAY_US,
        )
    return Past(truth, Counter(name for admitted in truth.accepted for name, _ in admitted.missed))


def _event(draw: random.Random, event_id: str, t: int) -> oracle.Event:
    return oracle.Event(
        f"key {draw.randrange(8)}",
        t,
        id=event_id,
        attr=t // HOUR_US % 100 + draw.randrange(9),
        mark=draw.random() < 0.2,
    )


def rows(truth: oracle.Oracle, name: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """The oracle's table as rows of an output with these columns, under keys of its own."""
    out = []
    for (key, start, end, *_), row in truth.table(name).items():
        values = {
            "key": f"{name}, {key}",
            "window_start": _at(start),
            "window_end": _at(end),
            "revision": 0,
            "run": 1,
            **row,
        }
        values["last_event"] = _at(row.get("last_event"))
        out.append(tuple(values[c] for c in columns))
    return out


def _at(us: float | None) -> Any:
    return None if us is None else moment(int(us))


@pytest.mark.parametrize("name", CASES)
def test_no_rule_is_broken_by_what_the_law_makes(
    spark: SparkSession, past: Past, name: str
) -> None:
    law = law_of(CASES[name][name][0], ("key",))
    types = {
        "key": "string",
        "window_start": "timestamp",
        "window_end": "timestamp",
        "last_event": "timestamp",
    }
    made = {way: rows(past.truth, way, law.columns) for way in CASES[name]}
    assert min(map(len, made.values())) > 5
    found = count_breaches(
        spark.createDataFrame(
            sum(made.values(), []), ", ".join(f"{c} {types.get(c, 'bigint')}" for c in law.columns)
        ),
        law,
    )
    assert found.pop("rows") == sum(map(len, made.values()))
    assert {rule: n for rule, n in found.items() if n and not rule.startswith("total.")} == {}


def test_what_has_to_add_up_does(past: Past) -> None:
    added_up = set()
    for ways in CASES.values():
        for way, (ours, _) in ways.items():
            if law_of(ours, ("key",)).totals:
                added_up.add(way)
                assert (
                    sum(row["count"] or 0 for row in past.truth.table(way).values())
                    == len(past.truth.accepted) - past.missed[way]
                )
    assert added_up == {"day", "day_filled", "odd", "odd_filled"}


def test_some_events_are_late_and_some_instants_are_shared(past: Past) -> None:
    assert all(past.missed[name] for name in CASES if name != "ever")
    times = [(a.event.key, a.event.t) for a in past.truth.accepted]
    assert len(set(times)) < len(times)
