"""One window of every kind and emission.

With it come right outputs of each, and outputs with one defect each.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from expectations.law import law_of
from expectations.outcome import Facts, Outcome
from windowing.grid.rule import Grid
from windowing.location import Location
from windowing.spec.kinds import (
    CHANGES,
    ON_CLOSE,
    Aggregate,
    CappedSession,
    Count,
    Cumulate,
    Delta,
    Expression,
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
from windowing.spec.pipeline import EventTime, Pipeline, Source, Watermark

Row = tuple[Any, ...]

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
HOUR, MICROSECOND = timedelta(hours=1), timedelta(microseconds=1)
EPOCH, T = datetime(1970, 1, 1, tzinfo=UTC), datetime(2013, 1, 1, tzinfo=UTC)
ZONE = "America/New_York"
SPRING = datetime(2013, 3, 10, 5, tzinfo=UTC)
"""Midnight in New York on the day whose clock jumps from 2 to 3."""
MARCH, APRIL = datetime(2013, 3, 1, 5, tzinfo=UTC), datetime(2013, 4, 1, 4, tzinfo=UTC)
"""Where months begin in New York."""
AGGREGATES = (Aggregate("flights", "count"), Aggregate("note", "first", "note"))
WESTERN = Expression("longitude < -100", ("longitude",))
SOME = (
    Aggregate("flights", "count"),
    Aggregate("delayed", "count_if", "late"),
    Aggregate("western", "count", where=WESTERN),
)

HOURLY = Tumbling("hourly", Grid(HOUR_US), AGGREGATES)
ZONED = Tumbling("zoned", Grid(DAY_US, zone=ZONE), AGGREGATES)
MONTHLY = Tumbling("monthly", Grid(months=1, zone=ZONE), AGGREGATES)
MIXED = Tumbling("mixed", Grid(HOUR_US), SOME)
FILLED = Tumbling("filled", Grid(HOUR_US), AGGREGATES, OutputPolicy(empty_limit=10))
CLOSED = Tumbling("closed", Grid(HOUR_US), AGGREGATES, OutputPolicy(ON_CLOSE))
CROWDED = Tumbling(
    "crowded", Grid(HOUR_US), AGGREGATES, OutputPolicy(having=Having("flights", ">=", "2"))
)
ROLLING = Sliding("rolling", Grid(HOUR_US // 2), HOUR_US, AGGREGATES)
LOCAL = Sliding("local", Grid(HOUR_US, zone=ZONE), 2 * HOUR_US, AGGREGATES)
STEPS = Sliding("steps", Grid(HOUR_US // 2), HOUR_US, AGGREGATES, OutputPolicy(CHANGES))
SO_FAR = Cumulate("so_far", Grid(DAY_US, inner_us=7 * HOUR_US), AGGREGATES)
TODAY = Cumulate("today", Grid(DAY_US, zone=ZONE, inner_us=6 * HOUR_US), AGGREGATES)
TO_DATE = Cumulate("to_date", Grid(months=1, zone=ZONE, inner_us=DAY_US), AGGREGATES)
IN_YEAR = Cumulate("in_year", Grid(months=12, inner_months=5), AGGREGATES, OutputPolicy(CHANGES))
BUSY = Session("busy", HOUR_US, AGGREGATES)
SHIFT = CappedSession("shift", HOUR_US, 3 * HOUR_US, AGGREGATES)
RECENT = RecordSliding("recent", 2 * HOUR_US, HOUR_US // 2, AGGREGATES)
TENS = Count("tens", 10, 10, AGGREGATES)
LATEST = Count("latest", 10, 5, AGGREGATES)
CLIMB = Delta("climb", "altitude", "1000", None, AGGREGATES)
LEGS = Punctuation("legs", "landed", AGGREGATES, OutputPolicy(ON_CLOSE))
EVER = Global("ever", AGGREGATES)
WINDOWS: tuple[Window, ...] = (
    *(
        HOURLY,
        ZONED,
        MONTHLY,
        MIXED,
        FILLED,
        CLOSED,
        CROWDED,
        ROLLING,
        LOCAL,
        STEPS,
        SO_FAR,
        TODAY,
        TO_DATE,
        IN_YEAR,
    ),
    *(BUSY, SHIFT, RECENT, TENS, LATEST, CLIMB, LEGS, EVER),
)
PIPELINE = Pipeline(
    "lab",
    Location("/lake"),
    Source(Location("t"), EventTime("at"), ("origin",)),
    Watermark(0, None, 0),
    WINDOWS,
)
FACTS = Facts(
    accepted=8, partial=dict.fromkeys(("hourly", "zoned", "monthly", "mixed", "filled"), 2)
)
_TYPES = {
    "origin": "string",
    "note": "string",
    "window_start": "timestamp",
    "window_end": "timestamp",
    "last_event": "timestamp",
}


def frame(spark: SparkSession, name: str, rows: list[Row]) -> DataFrame:
    columns = law_of(PIPELINE.window(name), PIPELINE.source.key).columns
    return spark.createDataFrame(rows, ", ".join(f"{c} {_TYPES.get(c, 'bigint')}" for c in columns))


def failed(outcomes: Iterable[Outcome]) -> set[str]:
    return {o.expectation.removeprefix("expect_") for o in outcomes if not o.success}


def row(
    start: datetime | None,
    end: datetime | None,
    flights: int | None = 2,
    origin: str | None = "JFK",
    note: str = "",
) -> Row:
    return (origin, start, end, flights, note, 0, 1)


def some(start: datetime, flights: int, delayed: int | None = 1, western: int | None = 1) -> Row:
    return ("JFK", start, start + HOUR, flights, delayed, western, 0, 1)


def session(
    start: datetime, last: datetime, origin: str = "JFK", end: datetime | None = None
) -> Row:
    return (origin, start, end or last + HOUR, last, 2, "", 0, 1)


def turn(index: int | None, first: datetime, last: datetime, origin: str = "JFK") -> Row:
    return (origin, first, last + MICROSECOND, index, 2, "", 0, 1)


IN_TURN = [
    turn(0, T, T + HOUR),
    turn(1, T + HOUR, T + HOUR),
    turn(2, T + HOUR, T + HOUR),
    turn(5, T + 2 * HOUR, T + 9 * HOUR),
]
"""Windows that share instants, and one before which others are not shown."""

GOOD: Mapping[str, list[Row]] = {
    "hourly": [row(T, T + HOUR), row(T + 2 * HOUR, T + 3 * HOUR), row(T, T + HOUR, origin="LGA")],
    "zoned": [
        row(SPRING, SPRING + 23 * HOUR),
        row(SPRING + 23 * HOUR, SPRING + 47 * HOUR),
        row(SPRING - 24 * HOUR, SPRING),
    ],
    "monthly": [row(MARCH, APRIL, 6)],
    "mixed": [some(T, 4), some(T + HOUR, 2, 0, 0)],
    "filled": [
        row(T, T + HOUR, 4),
        row(T + HOUR, T + 2 * HOUR, 0),
        row(T + 2 * HOUR, T + 3 * HOUR),
    ],
    "closed": [row(T, T + HOUR)],
    "crowded": [row(T, T + HOUR)],
    "rolling": [row(T, T + HOUR), row(T + HOUR / 2, T + HOUR * 1.5)],
    "local": [
        row(SPRING + HOUR, SPRING + 2 * HOUR),
        row(SPRING + 2 * HOUR, SPRING + 3 * HOUR),
        row(SPRING + 2 * HOUR, SPRING + 4 * HOUR),
    ],
    "steps": [row(T, T + HOUR), row(T + HOUR, T + 2 * HOUR, 0)],
    "so_far": [
        row(T, T + 7 * HOUR),
        row(T, T + 21 * HOUR),
        row(T, T + 24 * HOUR),
        row(T + 24 * HOUR, T + 31 * HOUR),
    ],
    "today": [
        row(SPRING, SPRING + 5 * HOUR),
        row(SPRING, SPRING + 23 * HOUR),
        row(SPRING + 23 * HOUR, SPRING + 29 * HOUR),
    ],
    "to_date": [row(MARCH, MARCH + 24 * HOUR), row(MARCH, SPRING + 23 * HOUR), row(MARCH, APRIL)],
    "in_year": [
        row(T, T.replace(month=6)),
        row(T, T.replace(month=11)),
        row(T, T.replace(year=2014)),
    ],
    "busy": [
        session(T, T + HOUR),
        session(T + 3 * HOUR, T + 3 * HOUR),
        session(T, T + 5 * HOUR, "LGA"),
    ],
    "shift": [
        session(T, T + 2.5 * HOUR, end=T + 3 * HOUR),
        session(T + 3 * HOUR, T + 3 * HOUR),
        session(T + 4 * HOUR + MICROSECOND, T + 5 * HOUR),
        session(T, T + 3 * HOUR - MICROSECOND, "LGA", T + 3 * HOUR),
    ],
    "recent": [
        row(T - 2 * HOUR, T + HOUR / 2),
        row(T + HOUR / 2, T + 3 * HOUR),
        row(EPOCH - HOUR, EPOCH + 1.5 * HOUR),
    ],
    "tens": [*IN_TURN, turn(0, T, T, "LGA")],
    "latest": [
        turn(0, T, T + 3 * HOUR),
        turn(1, T + HOUR, T + 4 * HOUR),
        turn(2, T + HOUR, T + 4 * HOUR),
        turn(4, T + 2 * HOUR, T + 9 * HOUR),
    ],
    "climb": IN_TURN,
    "legs": IN_TURN,
    "ever": [row(None, None, 6), row(None, None, origin="LGA")],
}

ON_GRID, UNIQUE, NULLS = (
    "windows_to_lie_on_grid",
    "windows_to_be_unique",
    "window_key_and_bounds_not_to_be_null",
)
ORDER, COUNTS, FLOOR = (
    "window_start_before_end",
    "window_counts_not_to_be_negative",
    "windows_once_events_were_accepted",
)
OVERLAP, END = "sessions_not_to_overlap", "sessions_to_end_gap_after_last_event"
INDEX, SEQUENCE = "window_index_not_to_be_negative", "windows_to_follow_event_order"
ENDLESS, TOTAL = "global_windows_to_have_no_bounds", "window_counts_to_add_up(flights)"

HOURS, DAYS, SHIFTS = GOOD["hourly"][:2], GOOD["zoned"], GOOD["shift"]
DEFECTS: list[tuple[str, str, list[Row], set[str]]] = [
    ("twice", "hourly", [*HOURS, row(T, T + HOUR)], {UNIQUE}),
    ("no key", "hourly", [*HOURS, row(T, T + HOUR, origin=None)], {NULLS}),
    ("no end", "local", [row(SPRING, None)], {NULLS, ORDER}),
    ("backwards", "hourly", [*HOURS, row(T + HOUR, T)], {ORDER, ON_GRID}),
    ("off the grid", "hourly", [*HOURS, row(T + HOUR / 2, T + HOUR * 1.5)], {ON_GRID}),
    ("too long", "hourly", [*HOURS, row(T + 4 * HOUR, T + 6 * HOUR)], {ON_GRID}),
    ("24 hours on a day of 23", "zoned", [*DAYS[1:], row(SPRING, SPRING + 24 * HOUR)], {ON_GRID}),
    ("a day of UTC", "zoned", [*DAYS[1:], row(T, T + 24 * HOUR)], {ON_GRID}),
    ("two days as one", "zoned", [*DAYS[:2], row(SPRING - 48 * HOUR, SPRING)], {ON_GRID}),
    ("half a month", "monthly", [row(SPRING, APRIL, 6)], {ON_GRID}),
    ("wrong size", "rolling", [row(T, T + HOUR / 2)], {ON_GRID}),
    ("no slide begins there", "rolling", [row(T + HOUR / 4, T + HOUR * 1.25)], {ON_GRID}),
    ("no end for that start", "local", [row(SPRING + HOUR, SPRING + 3 * HOUR)], {ON_GRID}),
    ("below zero", "rolling", [row(T, T + HOUR, -1)], {COUNTS}),
    ("no count", "rolling", [row(T, T + HOUR, None)], {COUNTS}),
    ("a count of some below zero", "mixed", [some(T, 6, -1)], {COUNTS}),
    ("no count of some", "mixed", [some(T, 6, western=None)], {COUNTS}),
    ("one event lost", "hourly", [*HOURS, row(T, T + HOUR, 1, "LGA")], {TOTAL}),
    ("one event twice", "hourly", [*HOURS, row(T, T + HOUR, 3, "LGA")], {TOTAL}),
    ("one event lost beside others that need not add up", "mixed", [some(T, 5)], {TOTAL}),
    (
        "one event lost among empty windows",
        "filled",
        [row(T, T + HOUR, 5), row(T + HOUR, T + 2 * HOUR, 0)],
        {TOTAL},
    ),
    ("off the grid, shown late", "closed", [row(T, T + 2 * HOUR)], {ON_GRID}),
    ("below zero, among a few", "crowded", [row(T, T + HOUR, -2)], {COUNTS}),
    ("a step off the grid", "steps", [row(T, T + 2 * HOUR)], {ON_GRID}),
    ("empty", "rolling", [], {FLOOR}),
    ("no step ends there", "so_far", [row(T, T + 8 * HOUR)], {ON_GRID}),
    ("into the next period", "so_far", [row(T, T + 31 * HOUR)], {ON_GRID}),
    ("from inside a period", "so_far", [row(T + 7 * HOUR, T + 14 * HOUR)], {ON_GRID}),
    ("an empty part of a period", "so_far", [row(T, T)], {ON_GRID, ORDER}),
    ("nothing so far", "so_far", [], {FLOOR}),
    ("six hours where the clock shows seven", "today", [row(SPRING, SPRING + 6 * HOUR)], {ON_GRID}),
    ("past a day of 23 hours", "today", [row(SPRING, SPRING + 24 * HOUR)], {ON_GRID}),
    ("a month from its second day", "to_date", [row(MARCH + 24 * HOUR, APRIL)], {ON_GRID}),
    ("a month and a day", "to_date", [row(MARCH, APRIL + 24 * HOUR)], {ON_GRID}),
    ("half a day of a month", "to_date", [row(MARCH, MARCH + 36 * HOUR)], {ON_GRID}),
    ("six months", "in_year", [row(T, T.replace(month=7))], {ON_GRID}),
    (
        "twice the same session start",
        "busy",
        [session(T, T), session(T, T + HOUR)],
        {UNIQUE, OVERLAP},
    ),
    ("a gap that is touched", "busy", [session(T, T), session(T + HOUR, T + HOUR)], {OVERLAP}),
    (
        "one session inside another",
        "busy",
        [session(T, T + 9 * HOUR), session(T + HOUR, T + HOUR)],
        {OVERLAP},
    ),
    ("an end too soon", "busy", [session(T, T, end=T + HOUR / 2)], {END}),
    ("last before first", "busy", [session(T + HOUR / 2, T)], {END}),
    ("no session", "busy", [], {FLOOR}),
    ("twice the same cut", "shift", [*SHIFTS, SHIFTS[1]], {UNIQUE, OVERLAP}),
    (
        "a gap that is touched, not cut",
        "shift",
        [session(T, T), session(T + HOUR, T + HOUR)],
        {OVERLAP},
    ),
    (
        "before the cut",
        "shift",
        [SHIFTS[0], session(T + 3 * HOUR - MICROSECOND, T + 3 * HOUR)],
        {OVERLAP},
    ),
    ("not cut", "shift", [session(T, T + 2.5 * HOUR)], {END}),
    ("cut too soon", "shift", [session(T, T + HOUR, end=T + HOUR)], {END}),
    ("an event after the cut", "shift", [session(T, T + 3 * HOUR, end=T + 3 * HOUR)], {END}),
    ("last before first, cut", "shift", [session(T + HOUR / 2, T)], {END}),
    ("longer than the difference and a tick", "recent", [row(T, T + 3 * HOUR)], {ON_GRID}),
    ("between ticks", "recent", [row(T + HOUR / 4, T + 2.75 * HOUR)], {ON_GRID}),
    ("no record", "recent", [], {FLOOR}),
    ("below the first", "tens", [turn(-1, T, T)], {INDEX}),
    ("twice the same turn", "tens", [*IN_TURN, turn(5, T + 9 * HOUR, T + 9 * HOUR)], {UNIQUE}),
    (
        "an event in two",
        "tens",
        [turn(0, T, T + 2 * HOUR), turn(1, T + HOUR, T + 3 * HOUR)],
        {SEQUENCE},
    ),
    ("nothing counted", "tens", [], {FLOOR}),
    ("begins too early", "latest", [turn(0, T, T + HOUR), turn(1, T - HOUR, T + HOUR)], {SEQUENCE}),
    (
        "ends too early",
        "latest",
        [turn(0, T, T + 3 * HOUR), turn(1, T + HOUR, T + 2 * HOUR)],
        {SEQUENCE},
    ),
    ("no time", "latest", [turn(0, T, T - MICROSECOND)], {ORDER}),
    (
        "closed after the next began",
        "climb",
        [turn(0, T, T + HOUR), turn(1, T + HOUR - MICROSECOND, T + HOUR)],
        {SEQUENCE},
    ),
    ("out of turn", "climb", [turn(1, T, T), turn(0, T + HOUR, T + HOUR)], {SEQUENCE}),
    ("nothing climbed", "climb", [], {FLOOR}),
    ("no turn", "legs", [*IN_TURN, turn(None, T + 9 * HOUR, T + 9 * HOUR)], {NULLS, INDEX}),
    ("across another", "legs", [*IN_TURN, turn(4, T + 2 * HOUR, T + 3 * HOUR)], {SEQUENCE}),
    ("bounds", "ever", [row(T, T + HOUR)], {ENDLESS}),
    ("one bound", "ever", [row(None, T)], {ENDLESS}),
    ("twice the same key", "ever", [row(None, None), row(None, None)], {UNIQUE}),
    ("no key for all time", "ever", [row(None, None, origin=None)], {NULLS}),
    ("nobody ever", "ever", [], {FLOOR}),
]
