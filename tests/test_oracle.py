"""The oracle against values worked out by hand, and against itself."""

from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle import (
    Count,
    Cumulate,
    Delta,
    Event,
    Global,
    Oracle,
    Punctuation,
    RecordSliding,
    Session,
    Sliding,
    Tumbling,
    Window,
    aggregates,
    spans,
)
from tests.wall_clock import MICROSECOND, instant, wall

S, FAR = 1_000_000, 10**17
MINUTE, HOUR, DAY = 60 * S, 3600 * S, 86400 * S


def utc(text: str) -> int:
    """The instant a UTC clock shows as `text`; also the reading of any wall clock."""
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1)) // MICROSECOND  # noqa: DTZ001 both naive


def oracle(
    *windows: Window, lateness: int | None = 0, delay: int = 0, max_future: int = FAR, **more: Any
) -> Oracle:
    return Oracle(delay, lateness, max_future, more.pop("horizon", None), windows, **more)


def shown(o: Oracle, name: str = "w", key: object = "k", of: str = "count") -> dict[Any, Any]:
    return {
        place: row[of]
        for (of_key, *rest), row in o.table(name).items()
        for place in [tuple(rest)]
        if of_key == key
    }


def times(o: Oracle, outcome: str) -> list[int | None]:
    return [event.t for event, found in o.outcomes if found == outcome]


def missed(o: Oracle) -> list[tuple[int | None, Any]]:
    return [(a.event.t, *a.missed) for a in o.accepted if a.missed]


def play(o: Oracle, *steps: Any) -> Oracle:
    """A list is a run of events.

    A tuple a run of one event, a number a watermark that other keys reach.
    """
    for step in steps:
        if isinstance(step, int):
            o.watermark = step
        else:
            o.run([event(step)] if isinstance(step, tuple) else [event(e) for e in step], FAR)
    return o


def event(said: Any) -> Event:
    """A number is the time of an event of the key k, marked at 10; a tuple is (key, time, ...)."""
    number = Event("k", said, 1, attr=said, mark=said == 10) if isinstance(said, int) else None
    return number or (Event(*said) if isinstance(said, tuple) else said)


# The worked example of "Windowing: tumbling, sliding, session": ten payments,
# {user: [(second, paise), ...]}.
PAYMENTS = {
    91001: [(5, 1240), (20, 890), (35, 2100), (90, 3300), (105, 500)],
    91002: [(10, 450), (70, 1500)],
    91003: [(130, 2199), (145, 500), (200, 300)],
}
PRINTED = {
    Tumbling("w", 60): [
        {(0, 60): 4230, (60, 120): 3800},
        {(0, 60): 450, (60, 120): 1500},
        {(120, 180): 2699, (180, 240): 300},
    ],
    # The script leaves out the windows before zero, and prints a session up to its last event; ours
    # ends a gap later.
    Sliding("w", 60, 30): [
        {(-30, 30): 2130, (0, 60): 4230, (30, 90): 2100, (60, 120): 3800, (90, 150): 3800},
        {(-30, 30): 450, (0, 60): 450, (30, 90): 1500, (60, 120): 1500},
        {(90, 150): 2699, (120, 180): 2699, (150, 210): 300, (180, 240): 300},
    ],
    Session("w", 30): [
        {(5, 65): 4230, (90, 135): 3800},
        {(10, 40): 450, (70, 100): 1500},
        {(130, 175): 2699, (200, 230): 300},
    ],
}


@pytest.mark.parametrize("window", PRINTED)
def test_the_printed_windows(window: Window) -> None:
    o = oracle(window, lateness=None)
    o.run([Event(user, t, paise) for user, paid in PAYMENTS.items() for t, paise in paid], FAR)
    assert [shown(o, key=user, of="sum") for user in PAYMENTS] == PRINTED[window]


@pytest.mark.parametrize(("window", "t", "expected"), [
    (Tumbling("w", 60), 0, {(0, 60)}),
    (Tumbling("w", 60), 60, {(60, 120)}),
    (Tumbling("w", 60), -1, {(-60, 0)}),
    (Tumbling("w", 60), -60, {(-60, 0)}),
    (Tumbling("w", 60, origin=10), 0, {(-50, 10)}),
    (Tumbling("w", 60, origin=-50), 10, {(10, 70)}),
    # The size is no multiple of the slide: t = 4 is in all three, t = 5 is no more in the first.
    (Sliding("w", 25, 10), 4, {(-20, 5), (-10, 15), (0, 25)}),
    (Sliding("w", 25, 10), 5, {(-10, 15), (0, 25)}),
    (Sliding("w", 25, 10, 1), 5, {(-19, 6), (-9, 16), (1, 26)}),
    (Cumulate("w", 60, step=20), 0, {(0, 20), (0, 40), (0, 60)}),
    (Cumulate("w", 60, step=20), 20, {(0, 40), (0, 60)}),
    (Cumulate("w", 60, step=20), 59, {(0, 60)}),
    (Cumulate("w", 60, step=20), 60, {(60, 80), (60, 100), (60, 120)}),
    (Cumulate("w", 60, step=20), -1, {(-60, 0)}),
    (Cumulate("w", 60, step=20, origin=10), 5, {(-50, 10)}),
    (Cumulate("w", 50, step=20), 5, {(0, 20), (0, 40), (0, 50)}),  # the last step is clipped
    (Cumulate("w", 50, step=20), 40, {(0, 50)}),
    # An event at t makes the window that ends with it and the one that begins after it.
    (RecordSliding("w", 10, 1), 7, {(-3, 8), (8, 19)}),
    (RecordSliding("w", 10_000), 1_999, {(-9_000, 2_000), (2_000, 13_000)}),
    (RecordSliding("w", 10_000), -1, {(-11_000, 0), (0, 11_000)}),
], ids=repr)  # fmt: skip
def test_windows_are_half_open_also_before_1970(
    window: Window, t: int, expected: set[tuple[int, int]]
) -> None:
    assert spans(window, t) == expected


NEW_YORK, LORD_HOWE, SAMOA, SAO_PAULO = (
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "America/Sao_Paulo",
)
NEW_YORK_STEPS = Cumulate("w", 4 * HOUR, step=HOUR, zone=NEW_YORK)
SAO_PAULO_STEPS = Cumulate("w", 4 * HOUR, step=HOUR, zone=SAO_PAULO)
SAO_PAULO_QUARTERS = Cumulate("w", DAY, step=6 * HOUR, zone=SAO_PAULO)


@pytest.mark.parametrize(("window", "t", "expected"), [
    # The daily window at 23:59, and weeks from Monday 1970-01-05; 2026-03-08 is a Sunday.
    (Tumbling("w", DAY, origin=DAY - MINUTE), "1969-12-31T23:59",
     "1969-12-31T23:59 1970-01-01T23:59"),
    (Tumbling("w", DAY, origin=DAY - MINUTE), "1969-12-31T23:58:59",
     "1969-12-30T23:59 1969-12-31T23:59"),
    (Tumbling("w", 7 * DAY, origin=4 * DAY), "2026-03-08T23:59", "2026-03-02 2026-03-09"),
    (Tumbling("w", months=3), "2026-05-17", "2026-04-01 2026-07-01"),
    (Tumbling("w", months=12), "1969-05-17", "1969-01-01 1970-01-01"),
    # Months from the 31st are clamped:
    # Nov 30 | Dec 31 | Jan 31 (origin) | Feb 28 | Mar 31 | Apr 30
    (Tumbling("w", months=1, origin=utc("2026-01-31")), "2026-03-30T23:59",
     "2026-02-28 2026-03-31"),
    (Tumbling("w", months=1, origin=utc("2026-01-31")), "2025-12-30", "2025-11-30 2025-12-31"),
    (Tumbling("w", months=1, origin=utc("2026-01-31")), "2024-03-01", "2024-02-29 2024-03-31"),
    # Month to date by day; year to date by month.
    (Cumulate("w", months=1, step=DAY), "2026-02-27T12:00", "2026-02-01 2026-02-28 2026-03-01"),
    (Cumulate("w", months=12, step_months=1), "2026-10-31",
     "2026-01-01 2026-11-01 2026-12-01 2027-01-01"),
    # Half years from August 31st are clamped to February 28th, and months step from there.
    (Cumulate("w", months=6, step_months=1, origin=utc("2025-08-31")), "2025-12-31",
     "2025-08-31 2026-01-31 2026-02-28"),
    (Cumulate("w", months=6, step_months=1, origin=utc("2025-08-31")), "2026-07-28",
     "2026-02-28 2026-08-28 2026-08-31"),
    (Tumbling("w", DAY, zone="Asia/Kolkata"), "2026-03-08T18:30",
     "2026-03-08T18:30 2026-03-09T18:30"),
    (Tumbling("w", months=1, zone="Asia/Kolkata"), "2026-03-08",
     "2026-02-28T18:30 2026-03-31T18:30"),
    # New York, 2026-03-08: 01:59:59 EST is followed by 03:00 EDT, at 07:00Z.
    #   wall  00:00   01:00   02:00 = 03:00   04:00
    #   UTC   05:00 | 06:00 | 07:00         | 08:00
    (Tumbling("w", HOUR, zone=NEW_YORK), "2026-03-08T06:59:59",
     "2026-03-08T06:00 2026-03-08T07:00"),
    (Tumbling("w", HOUR, zone=NEW_YORK), "2026-03-08T07:00", "2026-03-08T07:00 2026-03-08T08:00"),
    (Tumbling("w", 4 * HOUR, zone=NEW_YORK), "2026-03-08T05:00",
     "2026-03-08T05:00 2026-03-08T08:00"),
    (Tumbling("w", DAY, zone=NEW_YORK), "2026-03-08T05:00", "2026-03-08T05:00 2026-03-09T04:00"),
    (Tumbling("w", DAY, zone=NEW_YORK), "2026-03-08T04:59:59", "2026-03-07T05:00 2026-03-08T05:00"),
    (NEW_YORK_STEPS, "2026-03-08T05:59",
     "2026-03-08T05:00 2026-03-08T06:00 2026-03-08T07:00 2026-03-08T08:00"),
    # New York, 2026-11-01: 01:59:59 EDT is followed by 01:00 EST, at 06:00Z.
    #   wall  00:00   01:00   01:30   (01:00   01:30)   02:00
    #   UTC   04:00 | 05:00 | 05:30 |  06:00   06:30  | 07:00
    (Tumbling("w", HOUR, zone=NEW_YORK), "2026-11-01T06:59:59",
     "2026-11-01T05:00 2026-11-01T07:00"),
    (Tumbling("w", HOUR // 2, zone=NEW_YORK), "2026-11-01T06:10",
     "2026-11-01T05:30 2026-11-01T07:00"),
    (Tumbling("w", DAY, zone=NEW_YORK), "2026-11-01T04:00", "2026-11-01T04:00 2026-11-02T05:00"),
    (NEW_YORK_STEPS, "2026-11-01T06:30",
     "2026-11-01T04:00 2026-11-01T07:00 2026-11-01T08:00 2026-11-01T09:00"),
    # Lord Howe, half an hour. April: 02:00 (+11) becomes 01:30 (+10:30), at 15:00Z. October: 02:00
    # (+10:30) becomes 02:30, at 15:30Z.
    #   wall  01:00   (01:30)  02:00          wall  01:00   02:00 = 02:30   03:00
    #   UTC   14:00 |  15:00 | 15:30          UTC   14:30 | 15:30         | 16:00
    (Tumbling("w", HOUR, zone=LORD_HOWE), "2026-04-04T15:29:59",
     "2026-04-04T14:00 2026-04-04T15:30"),
    (Tumbling("w", HOUR, zone=LORD_HOWE), "2026-10-03T15:29:59",
     "2026-10-03T14:30 2026-10-03T15:30"),
    # Samoa had no 2011-12-30: the 29th ended at 10:00Z of the 30th, and the 31st began.
    (Tumbling("w", DAY, zone=SAMOA), "2011-12-30T09:59", "2011-12-29T10:00 2011-12-30T10:00"),
    (Tumbling("w", DAY, zone=SAMOA), "2011-12-30T10:00", "2011-12-30T10:00 2011-12-31T10:00"),
    (Cumulate("w", DAY, step=DAY // 2, zone=SAMOA), "2011-12-30T10:00",
     "2011-12-30T10:00 2011-12-30T22:00 2011-12-31T10:00"),
    # Both windows of two days begin where the 30th would have begun; only their ends tell them
    # apart.
    (Sliding("w", 2 * DAY, DAY, zone=SAMOA), "2011-12-30T12:00",
     "2011-12-30T10:00 2011-12-31T10:00 2012-01-01T10:00"),
    # São Paulo, 2018-11-04: midnight is skipped, at 03:00Z, and the quarters of the day still end
    # at 06:00, 12:00, 18:00.
    (SAO_PAULO_QUARTERS, "2018-11-04T13:59",
     "2018-11-04T03:00 2018-11-04T14:00 2018-11-04T20:00 2018-11-05T02:00"),
    (SAO_PAULO_STEPS, "2018-11-04T03:00",
     "2018-11-04T03:00 2018-11-04T04:00 2018-11-04T05:00 2018-11-04T06:00"),
])  # fmt: skip
def test_windows_on_the_wall_clock(window: Window, t: str, expected: str) -> None:
    start, *ends = map(utc, expected.split())
    assert spans(window, utc(t)) == {(start, end) for end in ends}


@pytest.mark.parametrize(("idle_after", "runs", "expected"), [
    # It trails by the delay of 5, stays without accepted rows, never goes back, and no event moves
    # it beyond the arrival.
    (None, [(500, [20]), (500, [8]), (500, [21])], [15, 15, 16]),
    (None, [(100, [None, 111]), (100, [110]), (90, [110]), (900, [])], [None, 95, 95, 95]),
    # A quiet source moves it by the clock, from its highest event, which the arrival of its own run
    # clamps.
    (15, [(100, []), (200, [])], [None, None]),
    (15, [(100, [95]), (114, []), (115, []), (140, []), (130, [])], [90, 90, 105, 130, 130]),
    (15, [(100, [95]), (140, []), (141, [96]), (156, [])], [90, 130, 130, 130]),
    (15, [(100, [110]), (130, [])], [95, 125]),
    (15, [(100, [95]), (120, [60]), (140, [])], [90, 90, 110]),
    (15, [(100, [95]), (120, [None, 20]), (140, [])], [90, 110, 130]),  # quarantined, late
])  # fmt: skip
def test_the_watermark_after_each_run(
    idle_after: int | None, runs: list[Any], expected: list[int | None]
) -> None:
    o = oracle(Tumbling("w", 10), lateness=50, delay=5, max_future=10, idle_after=idle_after)
    for (arrival, batch), watermark in zip(runs, expected, strict=True):
        o.run([Event("k", t) for t in batch], arrival)
        assert o.watermark == watermark


def test_backfilled_events_do_not_count_for_a_quiet_source() -> None:
    o = oracle(Tumbling("w", 10), max_future=0, idle_after=15)
    o.run([event(5), event(50)], 10)
    o.backfill([event(5), event(50)], 0, 100, 60)
    o.run([], 40)
    assert (o.watermark, shown(o)) == (5 + 30, {(0, 10): 1, (50, 60): 1})


def test_a_run_that_reads_nothing_and_moves_nothing_was_never_there() -> None:
    o = oracle(Tumbling("w", 10), max_future=0)
    o.run([], 100)
    assert o.run([event(50)], 40)["quarantined"] == 1
    assert o.run([event(50)], 60)["accepted"] == 1


def test_processing_time_is_the_arrival_of_the_run() -> None:
    o = oracle(Tumbling("w", 10), Session("s", 3), by_arrival=True, max_future=0)
    for arrival, batch in (
        (50, [Event("k", None), event(900)]),
        (40, [event(1)]),
        (61, [event(1)]),
    ):  # the host's clock went back
        assert o.run(batch, arrival)["accepted"] == len(batch)
    assert (shown(o), shown(o, "s"), o.watermark) == (
        {(50, 60): 3, (60, 70): 1},
        {(50, 53): 3, (61, 64): 1},
        61,
    )


# Lateness. W is 100 by an event of another key; a row is refused, or misses windows, given as
# {name: end of the last one missed}.
@pytest.mark.parametrize(("window", "lateness", "late", "partial", "in_time"), [
    (Tumbling("w", 10), 0, [89, 90, 99], [], [100]),
    (Tumbling("w", 10), 5, [85, 89], [], [90, 99]),
    (Tumbling("w", 10), 10, [79, 89], [], [90]),
    (Tumbling("w", 10), None, [], [], [-FAR]),
    (Sliding("w", 60, 30), 0, [59], [(60, 90), (85, 90), (89, 90)], [90]),
    (Sliding("w", 60, 10), 0, [49], [(50, 100), (61, 100), (99, 100)], [100]),
    (Cumulate("w", 60, step=20), 0, [59], [(60, 100), (79, 100), (99, 100)], [100]),
    (Cumulate("w", 60, step=20), 10, [59], [(60, 80), (79, 80)], [80]),
    (Session("w", 10), 0, [90], [], [91]),
    (Session("w", 10), 5, [85], [], [86]),
    # Its own window ends at t + 1, the last one possible at t + 11.
    (RecordSliding("w", 10, 1), 0, [89], [(90, 91), (99, 100)], [100]),
    (RecordSliding("w", 10, 1), 5, [84], [(85, 86), (94, 95)], [95]),
    (RecordSliding("w", 20, 10), 0, [79], [(80, 90), (99, 100)], [100]),
    (Count("w", 5), 3, [96], [], [97]),
    (Delta("w", 5), 0, [99], [], [100]),
    (Punctuation("w"), 0, [99], [], [100]),
    (Global("w"), 0, [], [], [-FAR]),
], ids=repr)  # fmt: skip
def test_late_for_a_window(
    window: Window, lateness: int | None, late: list[int], partial: list[Any], in_time: list[int]
) -> None:
    o = oracle(window, lateness=lateness)
    o.run([Event("other", 100, attr=0)], FAR)
    for t in [*late, *(t for t, _ in partial), *in_time]:
        o.run([Event(t, t, attr=0)], FAR)  # each with a key of its own
    assert (times(o, "late"), missed(o)) == (late, [(t, ("w", end)) for t, end in partial])
    assert times(o, "accepted") == [100, *(t for t, _ in partial), *in_time]


# Several windows: what each shows, which events are late for all they belong to, and what the
# accepted ones missed.
@pytest.mark.parametrize(("windows", "steps", "expected", "late", "misses"), [
    ([Sliding("a", 60, 30), Cumulate("b", 60, step=20)], [[100], [85, 35]],
     [{(60, 120): 2, (90, 150): 1}, {(60, 120): 2}], [35], [(85, ("a", 90), ("b", 100))]),
    # 9 alone would be a session that ends at 19; 19 joins 20.
    ([Tumbling("a", 10), Session("b", 10)], [[20], [9], [19]], [{(20, 30): 1}, {(19, 30): 2}], [9],
     [(19, ("a", 20))]),
    ([Tumbling("a", 100), Session("b", 10)], [[50], [5]], [{(0, 100): 2}, {(50, 60): 1}], [],
     [(5, ("b", 15))]),
    ([Tumbling("a", 10), Count("b", 1), Global("c")], [[100], [5]],
     [{(100, 110): 1}, {(100, 101, 0): 1}, {(None, None): 2}], [], [(5, ("a", 10), ("b", 6))]),
    ([Session("a", 10), Global("b")], [[0, 18], 40, [9]],
     [{(0, 10): 1, (18, 28): 1}, {(None, None): 3}], [], [(9, ("a", 28))]),
    # 89 is late for all record windows and makes none: not even [90, 101), which would hold 95 and
    # is not late.
    ([RecordSliding("a", 10, 1), Tumbling("b", 1000)], [[95], ("other", 100), [89]],
     [{(85, 96): 1}, {(0, 1000): 2}], [], [(89, ("a", 100))]),
    # A late marker closes nothing. It belongs to no window of punctuation, so it misses none, and
    # to the others as any row.
    ([Punctuation("a"), Tumbling("b", 100)], [[1], 10, [10, 11]],
     [{(1, 2, 0): 1, (11, 12, 1): 1}, {(0, 100): 3}], [], []),
    ([Punctuation("a"), Tumbling("b", 100)], [[1], 11, [10, 11]], [{(1, 12, 0): 2}, {(0, 100): 3}],
     [], []),
    ([Punctuation("a"), Tumbling("b", 10)], [[1, 22], [10]],
     [{(1, 23, 0): 2}, {(0, 10): 1, (20, 30): 1}], [10], []),
    ([Punctuation("a")], [[1, 22], [10]], [{(1, 23, 0): 2}], [], []),
])  # fmt: skip
def test_windows_of_one_pipeline(
    windows: list[Window], steps: list[Any], expected: list[Any], late: list[int], misses: list[Any]
) -> None:
    o = play(oracle(*windows), *steps)
    assert [shown(o, window.name) for window in windows] == expected
    assert (times(o, "late"), missed(o)) == (late, misses)


# Cases of other systems. Only the numbers move the watermark: Flink's 2999, after which no event at
# or before 2999 comes, is our 3000.
@pytest.mark.parametrize(("window", "lateness", "steps", "expected", "late"), [
    # Flink: 2400 is late for [0, 3000) only, the last 3001 for all its windows; a window closes at
    # its last instant.
    (Sliding("w", 3000, 1000), 0, [[1000], 2000, [2000], 3001, ("a", 3001), [2400], [2400], [3900],
      6001, ("a", 3001)],
     {(-1000, 2000): 1, (0, 3000): 2, (1000, 4000): 5, (2000, 5000): 4, (3000, 6000): 1}, [3001]),
    (Tumbling("w", 2000), 0, [[1000], 1986, [1980], 2000, [1998], [2001], 4000],
     {(0, 2000): 2, (2000, 4000): 1}, [1998]),
    # Flink takes 10000 in, beside the session that it touches; here that one is final since
    # 8500 + 2 * 3000 + 10 <= 14601.
    (Session("w", 3000), 10, [[1000], 2000, [2000], 4999, [4500], [8500], 7401, [7000], 11502,
      [11600], 14601, [10000], [14500]],
     {(1000, 11500): 5, (11600, 17500): 2}, [10000]),
    (Global("w"), 0, [[3000], [3999], [1998], 2000, [1999], [1000]], {(None, None): 5}, []),
    # Spark appends a window when the watermark passes its end, and drops the last 10.
    (Tumbling("w", 5, emit="on_close"), 0, [[10, 11, 12, 13, 14, 15], 5], {}, []),
    (Tumbling("w", 5, emit="on_close"), 0, [[10, 11, 12, 13, 14, 15], 5, [25], 15, [10]],
     {(10, 15): 5}, [10]),
    # Kafka shows a window when its grace is over; here it appears when it ends, and is corrected.
    (Tumbling("w", 2, emit="on_close"), 2,
     [[0], [1], 1, [2], 2, [0], [3], 3, [0], [4], 4, [0], [30], 30],
     {(0, 2): 4, (2, 4): 2, (4, 6): 1}, [0]),
])  # fmt: skip
def test_cases_of_other_systems(
    window: Window, lateness: int, steps: list[Any], expected: dict[Any, int], late: list[int]
) -> None:
    o = play(oracle(window, lateness=lateness, delay=FAR), *steps)
    assert (shown(o), times(o, "late")) == (expected, late)


# Values are powers of two, so that a sum names its events. Kafka prints both ends included:
# [50, 100] is [50, 101).
@pytest.mark.parametrize(("window", "lateness", "arriving", "expected"), [
    (RecordSliding("w", 100, 1), 1000, (100, 150, 500),
     {(0, 101): 1, (50, 151): 3, (101, 202): 2, (400, 501): 4}),
    (RecordSliding("w", 100, 1), 1000, (200, 150), {(50, 151): 2, (100, 201): 3, (151, 252): 1}),
    (RecordSliding("w", 10, 1), 5, (10, 14, 15, 22, 26, 30), {
        (0, 11): 1, (4, 15): 3, (5, 16): 7, (11, 22): 6, (12, 23): 14, (15, 26): 12,
        (16, 27): 24, (20, 31): 56, (23, 34): 48, (27, 38): 32,
    }),
    # Closed is what ends by W = 30; Kafka also waits for its grace of 5 and leaves out [15, 25].
    (RecordSliding("w", 10, 1, emit="on_close"), 5, (10, 10, 14, 15, 20, 22, 30),
     {(0, 11): 3, (4, 15): 7, (5, 16): 15, (10, 21): 31, (11, 22): 28, (12, 23): 60, (15, 26): 56,
      (16, 27): 48}),
    # No grace: the windows that end with 103 and 110 are closed and not made, but both enter those
    # still open.
    (RecordSliding("w", 50, 1), 0, (100, 105, 106, 103, 113, 110), {
        (50, 101): 1, (55, 106): 3, (56, 107): 15, (63, 114): 63, (101, 152): 62,
        (104, 155): 54, (106, 157): 52, (107, 158): 48, (111, 162): 16,
    }),
    # 5 and 7 make no window, [0, 6) and [2, 8) are closed for good by 24, and enter [5, 11)
    # and [6, 12).
    (RecordSliding("w", 5, 1, emit="on_close"), 15, (10, 11, 10, 13, 10, 24, 5, 7, 90),
     {(5, 11): 1 + 4 + 16 + 64 + 128, (6, 12): 1 + 2 + 4 + 16 + 128, (8, 14): 31, (11, 17): 2 + 8,
      (12, 18): 8, (19, 25): 32}),
    # Kafka refuses 100 to 105, which leave no trace; here they are late for the windows that end
    # with them, not for those after.
    (RecordSliding("w", 10, 1), 90, (200, 100, 101, 102, 103, 104, 105, 15, 300, 400), {
        (101, 112): 4 + 8 + 16 + 32 + 64, (102, 113): 8 + 16 + 32 + 64, (103, 114): 16 + 32 + 64,
        (104, 115): 32 + 64, (105, 116): 64,
        (190, 201): 1, (290, 301): 256, (390, 401): 512,
    }),
    # On ticks of 1000, 1999 and 1000 are one time.
    (RecordSliding("w", 10_000), None, (1000, 1999, 2500, -1),
     {(-11_000, 0): 8, (-9_000, 2_000): 11, (-8_000, 3_000): 15, (0, 11_000): 7,
      (2_000, 13_000): 4}),
])  # fmt: skip
def test_windows_by_record_as_kafka_has_them(
    window: Window, lateness: int | None, arriving: tuple[int, ...], expected: Any
) -> None:
    o = play(oracle(window, lateness=lateness), *[("k", t, 2**n) for n, t in enumerate(arriving)])
    assert shown(o, of="sum") == expected


# Sessions. `=` is within the gap of 10.
@pytest.mark.parametrize(("window", "lateness", "steps", "expected", "late"), [
    (Session("w", 30), 0, [[0, 30, 61]], {(0, 60): 2, (61, 91): 1}, []),
    (Session("w", 10), 20, [[0, 15], [8]], {(0, 25): 3}, []),
    # An event is judged by the end of its chain. W = 20:   9 = 10 ===== 20
    (Session("w", 10), 0, [[20], [9]], {(20, 30): 1}, [9]),
    (Session("w", 10), 0, [[20], [10]], {(10, 30): 2}, []),
    (Session("w", 10), 0, [[20], [9, 10]], {(9, 30): 3}, []),
    # All copies are in the chain, and only the first counts; a copy of an event accepted before is
    # not in it.
    (Session("w", 10), 0, [[20], [("k", 10, 1, "x"), ("k", 9, 1, "x")]], {(9, 19): 1, (20, 30): 1},
     []),
    (Session("w", 10), 0, [("k", 20, 1, "x"), [("k", 10, 1, "x"), 9]], {(20, 30): 1}, [9]),
    # A final session is a wall: 0 + 2 * 10 <= 20, and 10 touches it, though it touches 20 too; 11
    # does not.
    (Session("w", 10), 0, [[0], [20], [10, 11]], {(0, 10): 1, (11, 30): 2}, [10]),
    (Session("w", 10), 0, [[0], [19], [9]], {(0, 29): 3}, []),
    (Session("w", 10), 5, [[30], [55], [20]], {(30, 40): 1, (55, 65): 1}, [20]),
    # Closed but not final, it can be reopened.
    (Session("w", 10), 0, [[0], 15, [5, 6]], {(0, 16): 3}, []),
    (Session("w", 10), 0, [[0], 15, [5]], {(0, 10): 1}, [5]),
    # Capped: an event at start + 30 begins anew, and 29 ends the window at 30.
    (Session("w", 10, 30), 0, [[0, 8, 16, 24, 29, 30, 38, 60]],
     {(0, 30): 5, (30, 48): 2, (60, 70): 1}, []),
    (Session("w", 10, 10), 0, [[0, 9, 10, 20]], {(0, 10): 2, (10, 20): 1, (20, 30): 1}, []),
    # A late event that moves the start moves the cuts.
    (Session("w", 10, 30), None, [[0, 8, 16, 24, 32]], {(0, 30): 4, (32, 42): 1}, []),
    (Session("w", 10, 30), None, [[0, 8, 16, 24, 32], [-8]], {(-8, 22): 4, (24, 42): 2}, []),
    # Its chain is not capped: 32 + 10 > 32 takes 4 in, though [0, 20) has ended.
    (Session("w", 10, 20), 0, [[0, 8, 16, 24, 32], [4]], {(0, 20): 4, (24, 42): 2}, []),
    # Now 16 + 2 * 10 <= 36: what is within the gap of 16 is late, even at 24 and 26, where an open
    # session runs on.
    (Session("w", 10, 20), 0, [[0, 8, 16, 24, 32, 36], [4, 24, 26, 27]], {(0, 20): 3, (24, 44): 4},
     [4, 24, 26]),
])  # fmt: skip
def test_sessions(
    window: Session,
    lateness: int | None,
    steps: list[Any],
    expected: dict[Any, int],
    late: list[int],
) -> None:
    o = play(oracle(window, lateness=lateness), *steps)
    assert (shown(o), times(o, "late")) == (expected, late)


def test_a_session_knows_its_last_event_also_when_it_is_capped() -> None:
    o = play(oracle(Session("w", 10, 30), Session("s", 10)), [0, 8, 16, 24, 29, 30])
    assert (shown(o, of="last_event"), shown(o, "s", of="last_event")) == (
        {(0, 30): 29, (30, 40): 30},
        {(0, 40): 30},
    )


# Count, delta, punctuation: events are (t, x), x is the attribute, or 1 a mark; values are powers
# of two.
@pytest.mark.parametrize(("window", "events", "expected"), [
    (Count("w", 2), [(1, 0), (2, 0), (3, 0)], {(1, 3, 0): 3, (3, 4, 1): 4}),
    (Count("w", 1), [(5, 0), (5, 0)], {(5, 6, 0): 1, (5, 6, 1): 2}),
    (Count("w", 4, 1), [(t, 0) for t in range(1, 7)],
     {(1, 5, 0): 15, (2, 6, 1): 30, (3, 7, 2): 60, (4, 7, 3): 56, (5, 7, 4): 48, (6, 7, 5): 32}),
    (Count("w", 2, 3), [(t, 0) for t in range(1, 6)], {(1, 3, 0): 3, (4, 6, 1): 24}),
    # 10 is not more than 10 above 0; 21 is not more than 10 above 11, the first of its window; 22
    # is.
    (Delta("w", 10), [(0, 0), (10, 4), (20, 10), (30, 11), (40, 15), (50, 21), (60, 22), (70, 40)],
     {(0, 21, 0): 7, (30, 51, 1): 56, (60, 61, 2): 64, (70, 71, 3): 128}),
    (Delta("w", 10), [(0, 0), (1, -50), (2, 5), (3, 11)], {(0, 3, 0): 7, (3, 4, 1): 8}),
    (Punctuation("w"), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 0)], {(1, 3, 0): 3, (5, 6, 1): 16}),
    (Punctuation("w"), [(0, 1), (1, 0)], {(1, 2, 0): 2}),
])  # fmt: skip
def test_windows_filled_in_event_order(
    window: Window, events: list[tuple[int, int]], expected: dict[Any, int]
) -> None:
    rows = [Event("k", t, 2**n, order=n, attr=x, mark=x == 1) for n, (t, x) in enumerate(events)]
    o, late = oracle(window), oracle(window, lateness=None)
    o.run(rows, FAR)
    for row in reversed(rows):
        late.run([row], FAR)
    assert shown(o, of="sum") == shown(late, of="sum") == expected
    assert shown(o, of="window_index") == {place: place[2] for place in expected}


def test_events_of_one_instant_are_ordered_by_id_null_first_then_by_columns_of_the_spec() -> None:
    o = oracle(Count("w", 1))
    o.run(
        [
            Event("k", 5, 1, "b"),
            Event("k", 5, 2, "a"),
            Event("k", 5, 3, order=2),
            Event("k", 5, 4, order=1),
            Event("k", 4, 5, "c"),
        ],
        FAR,
    )
    assert [
        value for _, value in sorted(shown(o, of="sum").items(), key=lambda row: row[0][2])
    ] == [5, 4, 3, 2, 1]


# Emission. What is (closed, final), and which windows `on_close` shows.

OPEN, CLOSED, FINAL = (False, False), (True, False), (True, True)


@pytest.mark.parametrize(("window", "lateness", "times", "watermark", "expected", "on_close"), [
    (Tumbling("w", 10), 5, [0], None, {(0, 10): OPEN}, 0),
    (Tumbling("w", 10), 5, [0], 9, {(0, 10): OPEN}, 0),
    (Tumbling("w", 10), 5, [0], 10, {(0, 10): CLOSED}, 1),
    (Tumbling("w", 10), 5, [0], 14, {(0, 10): CLOSED}, 1),
    (Tumbling("w", 10), 5, [0], 15, {(0, 10): FINAL}, 1),
    (Tumbling("w", 10), None, [0], 99, {(0, 10): CLOSED}, 1),
    (Sliding("w", 20, 10), 0, [5], 10, {(-10, 10): FINAL, (0, 20): OPEN}, 1),
    (Cumulate("w", 60, step=20), 5, [20], 45, {(0, 40): FINAL, (0, 60): OPEN}, 1),
    (Session("w", 10), 5, [0], 10, {(0, 10): CLOSED}, 1),
    (Session("w", 10), 5, [0], 24, {(0, 10): CLOSED}, 1),
    (Session("w", 10), 5, [0], 25, {(0, 10): FINAL}, 1),
    (Session("w", 10, 10), 0, [0, 10], 20, {(0, 10): FINAL, (10, 20): CLOSED}, 2),
    (RecordSliding("w", 10, 1), 3, [0, 5], 3, {(-10, 1): CLOSED, (-5, 6): OPEN, (1, 12): OPEN}, 1),
    (RecordSliding("w", 10, 1), 3, [0], 4, {(-10, 1): FINAL}, 1),
    # The last one is incomplete.
    (Count("w", 2), 3, [1, 2, 4], 5, {(1, 3, 0): CLOSED, (4, 5, 1): CLOSED}, 1),
    (Count("w", 2), 3, [1, 2, 4], 6, {(1, 3, 0): FINAL, (4, 5, 1): CLOSED}, 1),
    (Count("w", 2), 3, [1, 2], 2, {(1, 3, 0): OPEN}, 0),
    # The event that closes a window of delta and punctuation is the one at 10: final when 10 + 1 +
    # lateness has passed.
    (Delta("w", 5), 2, [0, 10], 1, {(0, 1, 0): CLOSED, (10, 11, 1): OPEN}, 1),
    (Delta("w", 5), 2, [0, 10], 12, {(0, 1, 0): CLOSED, (10, 11, 1): CLOSED}, 1),
    (Delta("w", 5), 2, [0, 10], 13, {(0, 1, 0): FINAL, (10, 11, 1): CLOSED}, 1),
    (Punctuation("w"), 2, [5, 10, 11], 12, {(5, 6, 0): CLOSED, (11, 12, 1): CLOSED}, 1),
    (Punctuation("w"), 2, [5, 10, 11], 13, {(5, 6, 0): FINAL, (11, 12, 1): CLOSED}, 1),
    (Global("w"), 0, [0], 99, {(None, None): OPEN}, 0),
])  # fmt: skip
def test_closed_final_and_on_close(
    window: Window, lateness: int, times: list[int], watermark: int, expected: Any, on_close: int
) -> None:
    for o in (
        oracle(window, lateness=lateness),
        oracle(replace(window, emit="on_close"), lateness=lateness),
    ):
        play(o, times).watermark = watermark
        states = {
            place: state
            for (_, *rest), state in o.closed_final("w").items()
            for place in [tuple(rest)]
        }
        assert states == (
            expected if o.windows[0] == window else dict(list(expected.items())[:on_close])
        )
        assert states.keys() == shown(o).keys()


SLIDES, STEPS = Sliding("w", 30, 10, emit="changes"), Cumulate("w", 60, step=20, emit="changes")


@pytest.mark.parametrize(("window", "lateness", "steps", "expected"), [
    # Changes: [0, 30) has the events of [-10, 20), and from [20, 50) on there is none.
    (SLIDES, 0, [[5, 12]], {(-20, 10): 1}),
    (SLIDES, 0, [[5, 12], 49], {(-20, 10): 1, (-10, 20): 2, (10, 40): 1}),
    (SLIDES, 0, [[5, 12], 50], {(-20, 10): 1, (-10, 20): 2, (10, 40): 1, (20, 50): 0}),
    (SLIDES, 0, [[5, 205], 240], {(-20, 10): 1, (10, 40): 0, (180, 210): 1, (210, 240): 0}),
    # A correction makes [10, 40) equal to the window before; the same count of another value does
    # not.
    (SLIDES, None, [[5], 70, [31]], {(-20, 10): 1, (40, 70): 0}),
    (SLIDES, None, [("k", 5, 1), 70, ("k", 31, 2)], {(-20, 10): 1, (10, 40): 1, (40, 70): 0}),
    # 15 is late for [-10, 20).
    (SLIDES, 0, [[5], 25, [15], 50], {(-20, 10): 1, (0, 30): 2, (10, 40): 1, (20, 50): 0}),
    (STEPS, 0, [[5, 45, 65], 130], {(0, 20): 1, (0, 60): 2, (60, 80): 1}),
    (STEPS, 0, [[5, 65], 130], {(0, 20): 1, (60, 80): 1}),  # each period begins with nothing
    (STEPS, 0, [[25, 45]], {(0, 40): 1}),
    (STEPS, 0, [[5], 45, [6], 60], {(0, 20): 1, (0, 60): 2}),  # 6 is late for the first two
    # Empty windows, between the first and the last that count an event.
    (Tumbling("w", 10, empty=True), 0, [[5, 35]],
     {(0, 10): 1, (10, 20): 0, (20, 30): 0, (30, 40): 1}),
    (Tumbling("w", 10, empty=True), 0, [[5, 15], ("other", 95)], {(0, 10): 1, (10, 20): 1}),
    (Tumbling("w", 10, empty=True, emit="on_close"), 0, [[5, 35]],
     {(0, 10): 1, (10, 20): 0, (20, 30): 0}),
    (Tumbling("w", 10, empty=True, having=("count", "<", 1)), 0, [[5, 35]],
     {(10, 20): 0, (20, 30): 0}),
    (Sliding("w", 20, 10, empty=True), 0, [[5, 35]],
     {(-10, 10): 1, (0, 20): 1, (10, 30): 0, (20, 40): 1, (30, 50): 1}),
    # 61 is late for the windows that end by 100; they are not between two events.
    (Sliding("w", 60, 20, empty=True), 0, [100, [61], [141]],
     {(60, 120): 1, (80, 140): 0, (100, 160): 1, (120, 180): 1, (140, 200): 1}),
    # A session extended beyond W disappears until W passes its new end.
    (Session("w", 10, emit="on_close"), 50, [[0], 10], {(0, 10): 1}),
    (Session("w", 10, emit="on_close"), 50, [[0], 10, [5]], {}),
    (Session("w", 10, emit="on_close"), 50, [[0], 10, [5], 15], {(0, 15): 2}),
    # Having: two events in [0, 10), one without a value in [10, 20); null fails.
    *((Tumbling("w", 10, having=having), 0, [("k", 1, 1), ("k", 2, 2), ("k", 15)], rows) for having,
     rows in [
        (("count", ">=", 2), {(0, 10): 2}), (("count", "<", 2), {(10, 20): 1}),
        (("count", "=", 1), {(10, 20): 1}),
        (("count", ">", 1), {(0, 10): 2}), (("count", "!=", 1), {(0, 10): 2}),
        (("count", "<=", 1), {(10, 20): 1}),
        (("sum", "!=", 7), {(0, 10): 2}), (("sum", "<", 7), {(0, 10): 2}), (("sum", "<", 3), {}),
    ]),
])  # fmt: skip
def test_what_is_shown(
    window: Window, lateness: int | None, steps: list[Any], expected: dict[Any, int]
) -> None:
    assert shown(play(oracle(window, lateness=lateness), *steps)) == expected


# The clock skips from 02:00 to 03:00, at 07:00Z: the windows within that hour are none, and
# [02:45, 03:15) comes after [01:45, 02:15).
def test_changes_across_a_gap_of_the_clock() -> None:
    window = Sliding("w", 30 * MINUTE, 15 * MINUTE, zone=NEW_YORK, emit="changes")
    o = play(oracle(window), ("k", utc("2026-03-08T06:50")), ("other", utc("2026-03-09")))
    bounds = [
        ("2026-03-08T06:30", "2026-03-08T07:00", 1),
        ("2026-03-08T07:00", "2026-03-08T07:15", 0),
    ]
    assert shown(o) == {(utc(start), utc(end)): n for start, end, n in bounds}


# Seven days every minute: a user's five events within two minutes, others who move the watermark,
# one run each or all in one.
@pytest.mark.slow
def test_the_step_function_of_the_tutorial() -> None:
    noon = utc("2025-01-08T00:01")
    user = [Event("user", noon + t * S) for t in (0, 10, 70, 119, 120)]
    others = [Event("other", utc("2025-01-11"))] + [
        Event("other", utc("2025-01-15T00:01") + n * MINUTE) for n in range(5)
    ]
    steps = [(1, 2), (2, 4), (3, 5), (7 * 1440 + 1, 3), (7 * 1440 + 2, 1), (7 * 1440 + 3, 0)]
    for batches in ([[event] for event in user + others], [user + others]):
        o = oracle(Sliding("w", 7 * DAY, MINUTE, emit="changes"))
        for batch in batches:
            o.run(batch, FAR)
        assert shown(o, key="user") == {
            (noon + n * MINUTE - 7 * DAY, noon + n * MINUTE): count for n, count in steps
        }


# Outcomes. A batch holds (t, id).
@pytest.mark.parametrize(("horizon", "batches", "accepted", "duplicate", "late"), [
    (None, [[(5, "x"), (25, "y")], [(5, "x")]], [5, 25], [5], []),  # a duplicate before it is late
    # The first counts; a null id is no copy.
    (None, [[(3, "x"), (2, "x"), (4, None), (4, None)]], [2, 4, 4], [3], []),
    # The first that is not late.
    (None, [[(25, "y")], [(5, "x"), (28, "x"), (27, "x")]], [25, 27], [28, 5], []),
    # All are late; a late id is not remembered.
    (None, [[(25, "y")], [(5, "x"), (6, "x")], [(26, "x")]], [25, 26], [], [5, 6]),
    (10, [[(0, "x")], [(9, "y")], [(0, "x")]], [0, 9], [0], []),
    (9, [[(0, "x")], [(9, "y")], [(0, "x")]], [0, 9, 0], [], []),  # forgotten: 0 + 9 <= 9
])  # fmt: skip
def test_duplicates(
    horizon: int | None,
    batches: list[Any],
    accepted: list[int],
    duplicate: list[int],
    late: list[int],
) -> None:
    o = play(
        oracle(Tumbling("w", 10), horizon=horizon),
        *[[("k", t, None, name) for t, name in batch] for batch in batches],
    )
    assert (times(o, "accepted"), times(o, "duplicate"), times(o, "late")) == (
        accepted,
        duplicate,
        late,
    )


def test_what_cannot_be_read_is_quarantined_before_anything_else() -> None:
    bad = [
        Event("k", 1, id="x", bad="not a number"),
        Event("k", None),
        Event(("a", None), 1),
        Event(None, 1),
        Event("k", 111),
    ]
    good = [Event("k", 110, id="x"), Event(("a", "b"), 1)]
    o = oracle(Tumbling("w", 10), max_future=10)
    assert o.run(bad + good + good, 100) == {
        "read": 9,
        "accepted": 3,
        "late": 0,
        "duplicate": 1,
        "quarantined": 5,
        "erased": 0,
    }
    assert [e for e, outcome in o.outcomes if outcome == "quarantined"] == bad


def test_an_erased_key_is_as_if_it_were_not_there_until_that_is_lifted() -> None:
    a, b, late = Event("a", 5, id="x"), Event("b", 20, id="y"), Event("a", 1, id="late")
    o = oracle(Tumbling("w", 10), lateness=0)
    o.run([a, b], 100)
    o.erase("a")
    assert (shown(o, key="a"), shown(o, key="b"), o.watermark) == ({}, {(20, 30): 1}, 20)
    counts = o.run([late, Event("a", 90, id="x"), Event("b", 21, id="x")], 100)
    assert (counts["erased"], counts["accepted"], counts["late"]) == (2, 1, 0)
    assert (shown(o, key="a"), shown(o, key="b"), o.watermark) == ({}, {(20, 30): 2}, 21)
    o.backfill([a, b, late], 0, 100, 100)
    assert shown(o, key="a") == {}
    o.lift("a")
    assert shown(o, key="a") == {}
    o.backfill([a, b, late], 0, 100, 100)
    assert (shown(o, key="a"), shown(o, key="b")) == ({(0, 10): 2}, {(20, 30): 1})


def test_an_erased_value_is_as_if_its_events_were_not_there() -> None:
    kept, gone = Event("k", 5, 1, "x"), Event("k", 6, 2, "y")
    o = oracle(Tumbling("w", 10), Session("s", 5), lateness=0)
    o.run([kept, gone, Event("k", 11, 1, "z")], 100)
    assert (shown(o), shown(o, "s")) == ({(0, 10): 2, (10, 20): 1}, {(5, 16): 3})
    o.erase(2, "value")
    assert (shown(o), shown(o, "s")) == ({(0, 10): 1, (10, 20): 1}, {(5, 10): 1, (11, 16): 1})
    assert o.watermark == 11
    counts = o.run([Event("k", 30, 2, "w"), Event("k", 12, 1, "y")], 100)
    assert (counts["erased"], counts["accepted"], o.watermark) == (1, 1, 12)
    o.lift(2, "value")
    o.backfill([kept, gone], 0, 10, 100)
    assert shown(o) == {(0, 10): 1, (10, 20): 2}, "the id of the other is accepted elsewhere"


def test_a_null_or_nan_attribute_is_quarantined_where_there_is_a_delta_window() -> None:
    batch = [Event("k", 1), Event("k", 2, attr=float("nan")), Event("k", 3, attr=0)]
    assert oracle(Tumbling("w", 10)).run(batch, FAR)["accepted"] == 3
    o = oracle(Tumbling("w", 10), Delta("d", 1))
    assert (o.run(batch, FAR)["quarantined"], shown(o)) == (2, {(0, 10): 1})


def test_aggregates_skip_nulls_follow_event_order_and_know_nothing_without_values() -> None:
    ordered = [
        Event("k", 1, None, "c"),
        Event("k", 2, 5, "d", 1),
        Event("k", 2, 4, "d", 2),
        Event("k", 9, 7, "a"),
        Event("k", 9, 4, "b"),
    ]
    expected = {
        "count": 5,
        "sum": 20,
        "min": 4,
        "max": 7,
        "avg": 5.0,
        "distinct": 3,
        "first": 5,
        "last": 4,
    }
    assert aggregates(ordered) == aggregates(ordered[::-1]) == expected
    assert aggregates(ordered[:1]) == dict.fromkeys(expected) | {"count": 1, "distinct": 0}
    assert aggregates([]) == dict.fromkeys(expected) | {"count": 0, "distinct": 0}


def test_a_sum_of_more_than_64_bits_is_null() -> None:
    top = 2**63 - 1
    for values, expected in (
        ([top], top),
        ([top, 1], None),
        ([-top, -1], -top - 1),
        ([-top, -2], None),
        ([1e30], 1e30),
    ):
        assert (
            aggregates([Event("k", t, value) for t, value in enumerate(values)])["sum"] == expected
        )


# Backfill of [start, end) from a source that has these events; values tell copies apart.

WON, LOST, LATE = ("k", 5, 1, "x"), ("k", 4, 2, "x"), [[35], [("k", 7, 1, "x"), ("k", 6, 2, "x")]]


@pytest.mark.parametrize(("window", "steps", "source", "start", "end", "expected"), [
    (Tumbling("w", 10), [[5, 35], [6, 10, 9]], [5, 35, 6, 10, 9], 0, 10, {(0, 10): 3, (30, 40): 1}),
    # 8 was never read.
    (Tumbling("w", 10), [[5, 35], [6, 10, 9]], [5, 35, 6, 10, 9, 8], 6, 10,
     {(0, 10): 3, (30, 40): 1}),
    # What is gone disappears, inside the range.
    (Tumbling("w", 10), [[5, 6, 15]], [5], 0, 10, {(0, 10): 1, (10, 20): 1}),
    (Tumbling("w", 10), [[5, 6, 15]], [], 0, 10, {(10, 20): 1}),
    # A partial row.
    (Sliding("w", 60, 30), [[100], [85]], [100, 85], 85, 86,
     {(30, 90): 1, (60, 120): 2, (90, 150): 1}),
    # Now readable.
    (Tumbling("w", 10), [[5, ("k", 6, 1, None, 0, "not a number")]], [5, ("k", 6, 1)], 0, 10,
     {(0, 10): 2}),
    # The live winner stays while the source has it, also outside the range; else the first in event
    # order wins.
    (Tumbling("w", 10), [WON, LOST], [WON, LOST], 0, 10, {(0, 10): 1}),
    (Tumbling("w", 10), [WON, LOST], [LOST], 0, 10, {(0, 10): 2}),
    (Tumbling("w", 10), [("k", 15, 1, "x"), LOST], [("k", 15, 1, "x"), LOST], 0, 10, {(10, 20): 1}),
    (Tumbling("w", 10), LATE, LATE[1], 0, 10, {(0, 10): 2, (30, 40): 1}),
    (Tumbling("w", 10), [[5, 5]], [5, 5, 5], 0, 10, {(0, 10): 2}),  # as often as it was read
    # 0 + 9 <= W = 9
    (Tumbling("w", 10), [("k", 0, 1, "x"), [9], ("k", 0, 1, "x")], [9, *[("k", 0, 1, "x")] * 2], 0,
     10, {(0, 10): 3}),
    # 0 is final when 8 and 14 arrive; [5, 10) takes in 8 alone, though its session is widened.
    # 0 ===== 8 =====(14)
    (Session("w", 10), [[0], [40], [8, 14]], [0, 40, 8, 14], 5, 10, {(0, 18): 2, (40, 50): 1}),
    (Session("w", 10), [[20], [5]], [20, 5], 0, 10, {(5, 15): 1, (20, 30): 1}),
    (Session("w", 10, 30), [[0, 8, 16, 24, 32, 60], [-8]], [0, 8, 16, 24, 32, 60, -8], -8, 0,
     {(-8, 22): 4, (24, 42): 2, (60, 70): 1}),
    (Count("w", 2), [[1, 2, 3, 9], [5]], [1, 2, 3, 9, 5], 5, 6,
     {(1, 3, 0): 2, (3, 6, 1): 2, (9, 10, 2): 1}),
    (Delta("w", 5), [[1, 9], [3, 7]], [1, 9, 3, 7], 7, 8, {(1, 2, 0): 1, (7, 10, 1): 2}),
    (Punctuation("w"), [[9, 22], [10]], [9, 22, 10], 10, 11, {(9, 10, 0): 1, (22, 23, 1): 1}),
    (RecordSliding("w", 10, 1), [[95], 100, [89]], [95, 89], 89, 90,
     {(79, 90): 1, (85, 96): 2, (90, 101): 1}),
])  # fmt: skip
def test_backfill(
    window: Window,
    steps: list[Any],
    source: list[Any],
    start: int,
    end: int,
    expected: dict[Any, int],
) -> None:
    o = play(oracle(window, horizon=9), *steps)
    watermark = o.watermark
    o.backfill([event(said) for said in source], start, end, FAR)
    assert (shown(o, of="sum"), o.watermark) == (expected, watermark)


def test_the_next_run_builds_on_what_a_backfill_repaired() -> None:
    o = play(oracle(Session("w", 10)), ("k", 20, 1, "x"), ("k", 5, 1, "y"))
    o.backfill([Event("k", 20, 1, "x"), Event("k", 5, 1, "y")], 0, 10, FAR)
    play(
        o, ("k", 5, 1, "y"), [12]
    )  # alone 12 would be admitted by 20, and 5 is not final: 5 + 20 > 20
    assert (shown(o), times(o, "duplicate")) == ({(5, 30): 3}, [5])


def test_a_backfill_judges_the_future_by_its_own_arrival() -> None:
    o = oracle(Tumbling("w", 10), max_future=0)
    o.run([event(5), event(8), event(9)], 5)
    o.backfill([event(5), event(8), event(9)], 0, 10, 8)
    assert (shown(o), o.watermark, o.arrival) == ({(0, 10): 2}, 5, 5)


# Properties. Copies of one id are equal, as they are meant to be.

WINDOWS = (
    Tumbling("t", 10, origin=3, empty=True), Sliding("h", 25, 10), Cumulate("c", 20, step=7),
    Session("s", 7), Session("m", 7, 16),
    RecordSliding("r", 6, 2), Count("n", 3, 2), Delta("d", 2), Punctuation("p"),
    Sliding("x", 25, 10, emit="changes"),
)  # fmt: skip


def drawn(key: str, t: int, value: int | None, attr: int, flags: tuple[bool, bool]) -> Event:
    order = (value or 0) + 4 * attr + 100 * flags[0] + 200 * (value is None)
    return Event(
        key, t, value, f"{key}/{t}/{order}" if flags[1] else None, order, attr=attr, mark=flags[0]
    )


FLAGS = st.sampled_from([(False, False), (False, True), (False, True), (True, False)])
EVENTS = st.builds(
    drawn,
    st.sampled_from("ab"),
    st.integers(-60, 90),
    st.none() | st.integers(0, 3),
    st.integers(0, 5),
    FLAGS,
)
BATCHES = st.lists(st.lists(EVENTS, max_size=8), max_size=8)
PROPERTY = settings(deadline=None, max_examples=60)


def replayed(
    batches: list[list[Event]], lateness: int | None, *windows: Window, delay: int = 0
) -> Oracle:
    return play(oracle(*(windows or WINDOWS), lateness=lateness, delay=delay), *batches)


def tables(o: Oracle) -> list[dict[Any, Any]]:
    return [o.table(window.name) for window in o.windows]


@given(BATCHES, st.data())
@PROPERTY
def test_with_lateness_forever_batches_and_order_do_not_matter(
    batches: list[list[Event]], data: st.DataObject
) -> None:
    whole = [e for batch in batches for e in batch]
    shuffled = data.draw(st.permutations(whole))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    split = [
        shuffled[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)
    ]
    assert (
        tables(replayed(split, None))
        == tables(replayed([whole], None))
        == tables(replayed(batches, None))
    )


@given(BATCHES, st.integers(0, 30), st.integers(0, 10))
@PROPERTY
def test_a_backfill_of_everything_equals_lateness_forever(
    batches: list[list[Event]], lateness: int, delay: int
) -> None:
    o = replayed(batches, lateness, delay=delay)
    o.backfill([e for batch in batches for e in batch], -FAR, FAR, FAR)
    assert tables(o) == tables(replayed(batches, None, delay=delay))


@given(BATCHES, st.integers(0, 30), st.integers(-60, 90), st.integers(0, 60))
@PROPERTY
def test_a_backfill_changes_nothing_the_second_time(
    batches: list[list[Event]], lateness: int, start: int, length: int
) -> None:
    o, source = replayed(batches, lateness), [e for batch in batches for e in batch]
    o.backfill(source, start, start + length, FAR)
    before = tables(o)
    o.backfill(source, start, start + length, FAR)
    assert tables(o) == before


@given(BATCHES, st.integers(0, 30), st.data())
@PROPERTY
def test_the_order_inside_a_run_does_not_matter(
    batches: list[list[Event]], lateness: int, data: st.DataObject
) -> None:
    shuffled = [data.draw(st.permutations(batch)) for batch in batches]
    assert tables(replayed(batches, lateness)) == tables(replayed(shuffled, lateness))


@given(BATCHES, st.integers(0, 20))
@PROPERTY
def test_a_final_window_never_changes_and_sessions_never_overlap(
    batches: list[list[Event]], lateness: int
) -> None:
    o, final = oracle(*WINDOWS, lateness=lateness), {}
    for batch in batches:
        counted = o.run(batch, FAR)
        assert counted.pop("read") == len(batch) == sum(counted.values())
        rows = {
            (w.name, *place): list(row.values())
            for w in WINDOWS
            for place, row in o.table(w.name).items()
        }
        assert all(rows[place] == row for place, row in final.items())
        final |= {
            (w.name, *place): rows[w.name, *place]
            for w in WINDOWS
            for place, told in o.closed_final(w.name).items()
            if told[1]
        }
    for apart, name in ((1, "s"), (0, "m")):
        assert all(a[0] != b[0] or a[2] + apart <= b[1] for a, b in pairwise(sorted(o.table(name))))


@given(BATCHES)
@PROPERTY
def test_kinds_that_are_one_another(batches: list[list[Event]]) -> None:
    grids = (
        Tumbling("a", 10, origin=3),
        Sliding("b", 10, 10, 3),
        Cumulate("c", 10, step=10, origin=3),
    )
    a, b, c, d, e = tables(replayed(batches, 5, *grids, Session("d", 7), Session("e", 7, 1000)))
    assert (a, d) == (b, e) == (c, e)


ZONES = st.sampled_from(
    [NEW_YORK, LORD_HOWE, SAMOA, "Asia/Kolkata", "Africa/Monrovia", "Europe/Dublin"]
)
MINUTES = st.integers(utc("1900-01-01") // MINUTE, utc("2040-01-01") // MINUTE)
JUMPS = st.sampled_from(
    [
        (NEW_YORK, 90, "2026-03-08T02:30"),
        (NEW_YORK, 90, "2026-11-01T01:30"),
        (LORD_HOWE, 45, "2026-10-04T02:15"),
        (LORD_HOWE, 45, "2026-04-05T01:45"),
        ("Europe/Dublin", 90, "2026-03-29T01:30"),
        ("Europe/Dublin", 90, "2026-10-25T01:30"),
        ("Africa/Monrovia", 60, "1972-01-07T00:20"),
        (SAMOA, 1500, "2011-12-30T12:00"),
    ]
)
NEAR_A_JUMP = JUMPS.flatmap(
    lambda jump: st.integers(-jump[1], jump[1]).map(lambda m: (utc(jump[2]) + m * MINUTE, jump[0]))
)
"""Local times about a jump of their zone's clock, on both sides of it and within."""
ANY = st.tuples(MINUTES.map(lambda m: m * MINUTE), ZONES)


@given(ANY | NEAR_A_JUMP)
@settings(max_examples=200)
def test_a_local_time_is_the_first_instant_at_which_the_clock_has_reached_it(
    place: tuple[int, str],
) -> None:
    local, zone = place
    found = instant(local, zone)
    assert wall(found, zone) >= local
    assert all(wall(found - 1 - back * 10 * MINUTE, zone) < local for back in range(26 * 6))


@given(ANY | NEAR_A_JUMP, st.sampled_from([15 * MINUTE, HOUR, 7 * HOUR, DAY, 7 * DAY]))
def test_the_windows_of_a_grid_leave_no_hole(place: tuple[int, str], size: int) -> None:
    t, zone = place
    window = Tumbling("w", size=size, origin=5 * MINUTE, zone=zone)
    ((start, end),) = spans(window, t)
    assert start <= t < end
    assert {after for after, _ in spans(window, end)} == {end}
    assert {before for _, before in spans(window, start - 1)} == {start}


# A spec that gains windows: 110 came when W was 150, in time for the window to 200.
@pytest.mark.parametrize(("before", "expected"), [
    ((), 1),
    ((Tumbling("other", 20),), None),
], ids=["late for none there was", "late for one there was"])  # fmt: skip
def test_a_window_that_comes_counts_what_was_late_for_no_window(
    before: tuple[Window, ...], expected: int | None
) -> None:
    o = play(oracle(Tumbling("w", 100), *before), [150], [110])
    o.respecify((Tumbling("w", 100), Tumbling("new", 10)))
    assert shown(o, "new").get((110, 120)) == expected
    o.respecify((Tumbling("new", 10), Tumbling("last", 10)))
    both = {(150, 160): 1} | ({(110, 120): expected} if expected else {})
    assert shown(o, "last") == shown(o, "new") == both


def test_a_marker_that_was_late_ends_no_window_that_comes() -> None:
    o = play(oracle(Punctuation("w"), Tumbling("all", 1000)), [5, 20], [10])
    assert shown(o) == {(5, 21, 0): 2}
    o.respecify((Punctuation("w"), Punctuation("new"), Tumbling("all", 1000)))
    assert shown(o, "new") == shown(o) == {(5, 21, 0): 2}
