"""The oracle against values worked out by hand, and against itself."""

from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle import MICROSECOND, Event, Oracle, Session, Sliding, Tumbling, Window, aggregates, boundary, instant, spans, wall

S = 1_000_000
MINUTE, HOUR, DAY = 60 * S, 3600 * S, 86400 * S
FAR = 10**17


def utc(text: str) -> int:
    """The instant a UTC clock shows as `text`; also the reading of any wall clock."""
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1)) // MICROSECOND  # noqa: DTZ001 both naive


def oracle(*windows: Window, lateness: int | None = 0, delay: int = 0, max_future: int = FAR, horizon: int | None = None) -> Oracle:
    return Oracle(delay, lateness, max_future, horizon, windows)


def feed(o: Oracle, *times: int, key: str = "k") -> dict[str, int]:
    return o.run([Event(key, t) for t in times], FAR)


def counts(o: Oracle, name: str, key: str = "k") -> dict[tuple[int, int], Any]:
    return {(start, end): row["count"] for (of, start, end), row in o.table(name).items() if of == key}


def refused(rows: list[tuple[Event, str, int]]) -> list[int | None]:
    return [event.t for event, _, _ in rows]


# The worked example of "Windowing: tumbling, sliding, session": ten payments, (user, second, paise).
#
#   91001   5 20 35 . . . . 90 105
#   91002    10 . . . 70
#   91003                          130 145 . . . 200
PAYMENTS = [
    (91_001, 5, 1240),
    (91_001, 20, 890),
    (91_001, 35, 2100),
    (91_002, 10, 450),
    (91_002, 70, 1500),
    (91_001, 90, 3300),
    (91_001, 105, 500),
    (91_003, 130, 2199),
    (91_003, 145, 500),
    (91_003, 200, 300),
]
PRINTED_TUMBLING = {
    (91001, 0, 60): 4230,
    (91002, 0, 60): 450,
    (91001, 60, 120): 3800,
    (91002, 60, 120): 1500,
    (91003, 120, 180): 2699,
    (91003, 180, 240): 300,
}
PRINTED_SLIDING = {
    (91001, 0, 60): 4230,
    (91002, 0, 60): 450,
    (91001, 30, 90): 2100,
    (91002, 30, 90): 1500,
    (91001, 60, 120): 3800,
    (91002, 60, 120): 1500,
    (91001, 90, 150): 3800,
    (91003, 90, 150): 2699,
    (91003, 120, 180): 2699,
    (91003, 150, 210): 300,
    (91003, 180, 240): 300,
}
PRINTED_SESSIONS = {
    (91001, 5, 35): 4230,
    (91001, 90, 105): 3800,
    (91002, 10, 10): 450,
    (91002, 70, 70): 1500,
    (91003, 130, 145): 2699,
    (91003, 200, 200): 300,
}


def payments(window: Window) -> dict[tuple[Any, ...], dict[str, Any]]:
    o = oracle(window, lateness=None)
    o.run([Event((user,), second * S, paise) for user, second, paise in PAYMENTS], FAR)
    return {(key[0], start // S, end // S): row for (key, start, end), row in o.table(window.name).items()}


def test_the_printed_tumbling_windows() -> None:
    assert {window: row["sum"] for window, row in payments(Tumbling("w", 60 * S)).items()} == PRINTED_TUMBLING


def test_the_printed_sliding_windows_and_the_two_before_zero_that_the_script_leaves_out() -> None:
    before_zero = {(91001, -30, 30): 1240 + 890, (91002, -30, 30): 450}
    assert {window: row["sum"] for window, row in payments(Sliding("w", 60 * S, 30 * S)).items()} == PRINTED_SLIDING | before_zero


def test_the_printed_sessions_end_at_their_last_event_and_ours_a_gap_later() -> None:
    rows = payments(Session("w", 30 * S))
    assert {(user, start, row["last_event"] // S): row["sum"] for (user, start, _), row in rows.items()} == PRINTED_SESSIONS
    assert {end - row["last_event"] // S for (_, _, end), row in rows.items()} == {30}


# Grids. Times are drawn left to right; `|` is a boundary.


@pytest.mark.parametrize(
    ("origin", "t", "expected"),
    [
        (0, 0, (0, 60)),
        (0, 59, (0, 60)),
        (0, 60, (60, 120)),
        (0, -1, (-60, 0)),
        (0, -60, (-60, 0)),
        (10, 0, (-50, 10)),
        (10, 10, (10, 70)),
        (-50, 10, (10, 70)),
    ],
)
def test_tumbling_windows_are_half_open_also_before_1970(origin: int, t: int, expected: tuple[int, int]) -> None:
    assert spans(Tumbling("w", size=60, origin=origin), t) == {expected}


def test_the_microsecond_before_1970_is_in_the_minute_before() -> None:
    assert spans(Tumbling("w", size=MINUTE), -1) == {(-MINUTE, 0)}


def test_the_daily_window_at_23_59() -> None:
    window = Tumbling("w", size=DAY, origin=23 * HOUR + 59 * MINUTE)
    assert spans(window, utc("1969-12-31T23:59")) == {(utc("1969-12-31T23:59"), utc("1970-01-01T23:59"))}
    assert spans(window, utc("1969-12-31T23:58:59")) == {(utc("1969-12-30T23:59"), utc("1969-12-31T23:59"))}


# size 25, slide 10:   -20 |-----------------------| 5
#                           -10 |-----------------------| 15
#                                  0 |-----------------------| 25        t = 4 is in all three, t = 5 is no more in the first
def test_sliding_windows_whose_size_is_no_multiple_of_the_slide() -> None:
    window = Sliding("w", size=25, slide=10)
    assert spans(window, 4) == {(-20, 5), (-10, 15), (0, 25)}
    assert spans(window, 5) == {(-10, 15), (0, 25)}
    assert spans(Sliding("w", size=25, slide=10, origin=1), 5) == {(-19, 6), (-9, 16), (1, 26)}


# The month has no 31st:   Nov 30 | Dec 31 | Jan 31 (origin) | Feb 28 | Mar 31 | Apr 30
def test_months_step_from_the_origin_and_are_clamped() -> None:
    window = Tumbling("w", months=1, origin=utc("2026-01-31"))
    assert [boundary(window, k) for k in range(-2, 4)] == [
        utc(day) for day in ("2025-11-30", "2025-12-31", "2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30")
    ]
    assert spans(window, utc("2026-03-30T23:59")) == {(utc("2026-02-28"), utc("2026-03-31"))}
    assert spans(window, utc("2025-12-30")) == {(utc("2025-11-30"), utc("2025-12-31"))}
    assert spans(window, utc("2024-03-01")) == {(utc("2024-02-29"), utc("2024-03-31"))}


def test_quarters_years_and_weeks() -> None:
    assert spans(Tumbling("w", months=3), utc("2026-05-17")) == {(utc("2026-04-01"), utc("2026-07-01"))}
    assert spans(Tumbling("w", months=12), utc("1969-05-17")) == {(utc("1969-01-01"), utc("1970-01-01"))}
    # 2026-03-08 is a Sunday, 1970-01-05 a Monday.
    assert spans(Tumbling("w", size=7 * DAY, origin=4 * DAY), utc("2026-03-08T23:59")) == {(utc("2026-03-02"), utc("2026-03-09"))}


def test_days_and_months_of_kolkata_begin_at_18_30_utc() -> None:
    zone = "Asia/Kolkata"
    assert spans(Tumbling("w", size=DAY, zone=zone), utc("2026-03-08T18:30")) == {(utc("2026-03-08T18:30"), utc("2026-03-09T18:30"))}
    assert spans(Tumbling("w", months=1, zone=zone), utc("2026-03-08")) == {(utc("2026-02-28T18:30"), utc("2026-03-31T18:30"))}


# New York, 2026-03-08: 01:59:59 EST is followed by 03:00 EDT, at 07:00Z.
#   wall  00:00   01:00   02:00 = 03:00   04:00
#   UTC   05:00 | 06:00 | 07:00         | 08:00
@pytest.mark.parametrize(
    ("size", "t", "expected"),
    [
        (HOUR, "06:59:59", ("2026-03-08T06:00", "2026-03-08T07:00")),
        (HOUR, "07:00:00", ("2026-03-08T07:00", "2026-03-08T08:00")),
        (HOUR, "07:59:59", ("2026-03-08T07:00", "2026-03-08T08:00")),
        (30 * MINUTE, "07:29:59", ("2026-03-08T07:00", "2026-03-08T07:30")),
        (4 * HOUR, "05:00:00", ("2026-03-08T05:00", "2026-03-08T08:00")),
        (DAY, "05:00:00", ("2026-03-08T05:00", "2026-03-09T04:00")),
        (DAY, "04:59:59", ("2026-03-07T05:00", "2026-03-08T05:00")),
    ],
)
def test_new_york_skips_an_hour(size: int, t: str, expected: tuple[str, str]) -> None:
    window = Tumbling("w", size=size, zone="America/New_York")
    assert spans(window, utc(f"2026-03-08T{t}")) == {(utc(expected[0]), utc(expected[1]))}


# New York, 2026-11-01: 01:59:59 EDT is followed by 01:00 EST, at 06:00Z.
#   wall  00:00   01:00   01:30   (01:00   01:30)   02:00
#   UTC   04:00 | 05:00 | 05:30 |  06:00   06:30  | 07:00
@pytest.mark.parametrize(
    ("size", "t", "expected"),
    [
        (HOUR, "05:00:00", ("2026-11-01T05:00", "2026-11-01T07:00")),
        (HOUR, "06:59:59", ("2026-11-01T05:00", "2026-11-01T07:00")),
        (HOUR, "07:00:00", ("2026-11-01T07:00", "2026-11-01T08:00")),
        (30 * MINUTE, "06:10:00", ("2026-11-01T05:30", "2026-11-01T07:00")),
        (DAY, "04:00:00", ("2026-11-01T04:00", "2026-11-02T05:00")),
    ],
)
def test_new_york_repeats_an_hour(size: int, t: str, expected: tuple[str, str]) -> None:
    window = Tumbling("w", size=size, zone="America/New_York")
    assert spans(window, utc(f"2026-11-01T{t}")) == {(utc(expected[0]), utc(expected[1]))}


# Lord Howe, half an hour.  April: 02:00 (+11) becomes 01:30 (+10:30), at 15:00Z.  October: 02:00 (+10:30) becomes 02:30 (+11), at 15:30Z.
#   wall  01:00   (01:30)  02:00          wall  01:00   02:00 = 02:30   03:00
#   UTC   14:00 |  15:00 | 15:30          UTC   14:30 | 15:30         | 16:00
def test_lord_howe_moves_by_half_an_hour() -> None:
    window = Tumbling("w", size=HOUR, zone="Australia/Lord_Howe")
    assert spans(window, utc("2026-04-04T15:29:59")) == {(utc("2026-04-04T14:00"), utc("2026-04-04T15:30"))}
    assert spans(window, utc("2026-10-03T15:29:59")) == {(utc("2026-10-03T14:30"), utc("2026-10-03T15:30"))}
    assert spans(window, utc("2026-10-03T15:30")) == {(utc("2026-10-03T15:30"), utc("2026-10-03T16:00"))}


# Samoa had no 2011-12-30: the 29th ended at 10:00Z of the 30th, and the 31st began.
#   wall  28th            29th            30th = 31st     1st             2nd
#   UTC   Dec 28, 10:00 | Dec 29, 10:00 | Dec 30, 10:00 | Dec 31, 10:00 | Jan 1, 10:00
def test_samoa_has_no_30th_of_december() -> None:
    window = Tumbling("w", size=DAY, zone="Pacific/Apia")
    assert spans(window, utc("2011-12-30T09:59")) == {(utc("2011-12-29T10:00"), utc("2011-12-30T10:00"))}
    assert spans(window, utc("2011-12-30T10:00")) == {(utc("2011-12-30T10:00"), utc("2011-12-31T10:00"))}


def test_sliding_windows_that_begin_at_one_collapsed_instant_are_told_apart_by_their_ends() -> None:
    window = Sliding("w", size=2 * DAY, slide=DAY, zone="Pacific/Apia")
    skipped = utc("2011-12-30T10:00")
    assert spans(window, utc("2011-12-30T12:00")) == {(skipped, utc("2011-12-31T10:00")), (skipped, utc("2012-01-01T10:00"))}
    assert spans(window, utc("2011-12-29T12:00")) == {(utc("2011-12-28T10:00"), skipped), (utc("2011-12-29T10:00"), skipped)}


# A window of an hour every half hour in New York's fold: [01:00, 02:00) is two hours, [01:30, 02:30) is two, [00:30, 01:30) is one.
def test_sliding_windows_in_a_fold() -> None:
    window = Sliding("w", size=HOUR, slide=30 * MINUTE, zone="America/New_York")
    long = {("2026-11-01T05:00", "2026-11-01T07:00"), ("2026-11-01T05:30", "2026-11-01T07:30")}
    assert spans(window, utc("2026-11-01T06:10")) == {(utc(start), utc(end)) for start, end in long}


# Watermark


def test_rows_are_judged_by_the_watermark_of_the_run_before() -> None:
    o = oracle(Tumbling("w", 10))
    assert feed(o, 1000, 5) == {"read": 2, "accepted": 2, "late": 0, "duplicate": 0, "quarantined": 0}
    assert feed(o, 5)["late"] == 1


def test_the_watermark_trails_by_the_delay_and_never_goes_back() -> None:
    o = oracle(Tumbling("w", 10), delay=3, lateness=None)
    seen = []
    for t in (20, 8, 21):
        feed(o, t)
        seen.append(o.watermark)
    assert seen == [17, 17, 18]


def test_the_watermark_stays_without_accepted_rows_and_is_capped_by_the_arrival() -> None:
    o = oracle(Tumbling("w", 10), max_future=10)
    o.run([Event("k", None), Event("k", 111)], 100)
    assert [o.watermark] == [None]
    o.run([Event("k", 110)], 100)
    assert o.watermark == 100
    o.run([Event("k", 110)], 90)
    assert (o.watermark, o.arrival) == (100, 100)


# Lateness


def test_a_window_whose_end_plus_lateness_is_the_watermark_is_late() -> None:
    for lateness, late in ((5, 1), (6, 0)):
        o = oracle(Tumbling("w", 10), lateness=lateness)
        feed(o, 25)
        assert feed(o, 15)["late"] == late  # its window ends at 20


# W = 100:   30 |---------| 90          gone
#                  60 |---------| 120   open       t = 85 misses the first, t = 35 also [0, 60) and so all of its windows
def test_a_sliding_event_counts_only_in_the_windows_it_is_not_late_for() -> None:
    o = oracle(Sliding("w", size=60, slide=30))
    feed(o, 100)
    assert feed(o, 85, 35) == {"read": 2, "accepted": 1, "late": 1, "duplicate": 0, "quarantined": 0}
    assert counts(o, "w") == {(60, 120): 2, (90, 150): 1}
    assert o.partial == [(Event("k", 85), [("w", 90)])]
    assert refused(o.late) == [35]


def test_the_last_missed_end_is_reported() -> None:
    o = oracle(Sliding("w", size=60, slide=10))
    feed(o, 100)
    feed(o, 61)  # ends 70, 80, 90, 100 are missed, 110 and 120 are not
    assert o.partial == [(Event("k", 61), [("w", 100)])]
    assert counts(o, "w")[(60, 120)] == 2


def test_one_window_kind_that_still_takes_it_is_enough() -> None:
    o = oracle(Tumbling("t", 10), Session("s", 10))
    feed(o, 20)
    assert feed(o, 9) == {"read": 1, "accepted": 0, "late": 1, "duplicate": 0, "quarantined": 0}  # alone it would end at 19
    assert feed(o, 19) == {"read": 1, "accepted": 1, "late": 0, "duplicate": 0, "quarantined": 0}  # joins 20
    assert counts(o, "t") == {(20, 30): 1}
    assert counts(o, "s") == {(19, 30): 2}
    assert o.partial == [(Event("k", 19), [("t", 20)])]


def test_an_event_late_only_for_its_session_stays_out_of_it() -> None:
    o = oracle(Tumbling("t", 100), Session("s", 10))
    feed(o, 50)
    feed(o, 5)
    assert counts(o, "t") == {(0, 100): 2}
    assert counts(o, "s") == {(50, 60): 1}
    assert o.partial == [(Event("k", 5), [("s", 15)])]


# Sessions. Gap 10; `=` is within the gap.


def test_a_gap_that_equals_the_distance_merges() -> None:
    o = oracle(Session("s", 30))
    feed(o, 0, 30, 61)
    assert counts(o, "s") == {(0, 60): 2, (61, 91): 1}


def test_sessions_are_per_key() -> None:
    o = oracle(Session("s", 10))
    o.run([Event("a", 0), Event("b", 5), Event("a", 10)], FAR)
    assert {(key, start): row["count"] for (key, start, _), row in o.table("s").items()} == {("a", 0): 2, ("b", 5): 1}


#   0 ===== 8 ===== 15       8 comes last, behind the watermark
def test_a_late_event_bridges_two_sessions() -> None:
    o = oracle(Session("s", 10), lateness=20)
    feed(o, 0, 15)
    assert counts(o, "s") == {(0, 10): 1, (15, 25): 1}
    feed(o, 8)
    assert counts(o, "s") == {(0, 25): 3}


# W = 20, L = 0; 20 is stored.    9 = 10 ===== 20
def test_an_event_is_judged_by_the_end_of_its_chain() -> None:
    for times, late in (((9,), 1), ((10,), 0), ((9, 10), 0)):
        o = oracle(Session("s", 10))
        feed(o, 20)
        assert feed(o, *times)["late"] == late


# W = 20, L = 0; 0 is stored and final, as 0 + 2 * 10 <= 20.
#   0 ===== 10 ===== 20     10 touches it: late, though it touches 20 too
#   0        11 ==== 20     11 does not
def test_a_final_session_is_a_wall() -> None:
    o = oracle(Session("s", 10))
    feed(o, 0)
    feed(o, 20)
    feed(o, 10, 11)
    assert counts(o, "s") == {(0, 10): 1, (11, 30): 2}
    assert refused(o.late) == [10]


# W = 19, L = 0: 0 is not final yet.   0 ===== 9 ===== 19
def test_a_session_just_not_final_is_merged() -> None:
    o = oracle(Session("s", 10))
    feed(o, 0)
    feed(o, 19)
    feed(o, 9)
    assert counts(o, "s") == {(0, 29): 3}


def test_a_session_closed_but_not_final_can_be_reopened() -> None:
    o = oracle(Session("s", 10))
    feed(o, 0)
    feed(o, 15, key="other")
    feed(o, 5, 6)  # 6 + 10 > 15, and 5 is in its chain
    assert o.table("s")["k", 0, 16]["count"] == 3
    o = oracle(Session("s", 10))
    feed(o, 0)
    feed(o, 15, key="other")
    assert feed(o, 5)["late"] == 1  # 5 + 10 <= 15


def test_an_event_before_a_final_session_that_touches_it_is_late() -> None:
    o = oracle(Session("s", 10), lateness=5)
    feed(o, 30)
    feed(o, 55)  # 30 + 20 + 5 <= 55
    feed(o, 20)
    assert refused(o.late) == [20]
    assert counts(o, "s") == {(30, 40): 1, (55, 65): 1}


# Duplicates


def test_an_accepted_id_is_a_duplicate_before_it_is_late() -> None:
    o = oracle(Tumbling("w", 10))
    o.run([Event("k", 5, id="x"), Event("k", 25, id="y")], FAR)
    assert o.run([Event("k", 5, id="x")], FAR) == {"read": 1, "accepted": 0, "late": 0, "duplicate": 1, "quarantined": 0}


def test_the_first_copy_in_event_order_wins_and_a_null_id_is_no_copy() -> None:
    o = oracle(Tumbling("w", 10))
    batch = [Event("k", 3, 1, "x", order=2), Event("k", 3, 2, "x", order=1), Event("k", 4, 3, "x"), Event("k", 4, 9), Event("k", 4, 9)]
    assert o.run(batch, FAR)["duplicate"] == 2
    assert o.table("w")["k", 0, 10]["sum"] == 2 + 9 + 9


def test_the_first_copy_that_is_not_late_wins() -> None:
    o = oracle(Tumbling("w", 10))
    feed(o, 25)
    o.run([Event("k", 5, id="x"), Event("k", 28, id="x"), Event("k", 27, id="x")], FAR)
    assert [a.event.t for a in o.accepted] == [25, 27]
    assert (refused(o.duplicates), o.late) == ([5, 28], [])


def test_when_all_copies_are_late_all_are_late() -> None:
    o = oracle(Tumbling("w", 10))
    feed(o, 25)
    assert o.run([Event("k", 5, id="x"), Event("k", 6, id="x")], FAR)["late"] == 2
    assert o.run([Event("k", 26, id="x")], FAR)["accepted"] == 1  # a late id is not remembered


# W = 20, 20 is stored; two copies at 9 and 10.   9 = 10 ===== 20 admits both, the first counts, alone.
def test_chains_are_judged_with_all_copies_in_them() -> None:
    o = oracle(Session("s", 10))
    feed(o, 20)
    o.run([Event("k", 10, id="x"), Event("k", 9, id="x")], FAR)
    assert counts(o, "s") == {(9, 19): 1, (20, 30): 1}
    assert refused(o.duplicates) == [10]


def test_an_id_is_forgotten_when_the_watermark_reaches_its_horizon() -> None:
    for moved_to, outcome in ((9, "duplicate"), (10, "accepted")):
        o = oracle(Tumbling("w", 10), lateness=None, horizon=10)
        o.run([Event("k", 0, id="x")], FAR)
        feed(o, moved_to)
        assert o.run([Event("k", 0, id="x")], FAR)[outcome] == 1


# Quarantine


def test_what_cannot_be_read_is_quarantined_before_anything_else() -> None:
    o = oracle(Tumbling("w", 10), max_future=10)
    batch = [
        Event("k", 1, bad="not a number", id="x"),
        Event("k", None, id="y"),
        Event(("a", None), 1),
        Event("k", 111, id="z"),
        Event("k", 110, id="z"),
        Event("k", 1, id="x"),
    ]
    assert o.run(batch, 100) == {"read": 6, "accepted": 2, "late": 0, "duplicate": 0, "quarantined": 4}
    assert [(event.t, reason) for event, reason, _ in o.quarantine] == [
        (1, "not a number"),
        (None, "event time or a key part is null"),
        (1, "event time or a key part is null"),
        (111, "too far ahead of the arrival"),
    ]


# Aggregates


def test_aggregates_skip_nulls_and_follow_event_order() -> None:
    events = [
        Event("k", 9, 4, "b"),
        Event("k", 9, 7, "a"),
        Event("k", 1, None, "c"),
        Event("k", 2, 4, "d", order=2),
        Event("k", 2, 5, "d", order=1),
        Event("k", 10, None),
    ]
    assert aggregates(events) == {"count": 6, "sum": 20, "min": 4, "max": 7, "avg": 5.0, "distinct": 3, "first": 5, "last": 4}


def test_a_window_without_values_counts_and_knows_nothing_else() -> None:
    nothing = dict.fromkeys(("sum", "min", "max", "avg", "first", "last"))
    assert aggregates([Event("k", 1)]) == nothing | {"count": 1, "distinct": 0}


def test_a_sum_of_more_than_64_bits_is_null() -> None:
    top = 2**63 - 1
    assert aggregates([Event("k", 1, top)])["sum"] == top
    assert aggregates([Event("k", 1, top), Event("k", 2, 1)])["sum"] is None
    assert aggregates([Event("k", 1, -top), Event("k", 2, -1)])["sum"] == -top - 1
    assert aggregates([Event("k", 1, -top), Event("k", 2, -2)])["sum"] is None
    assert aggregates([Event("k", 1, top), Event("k", 2, 1), Event("k", 3, -1)])["sum"] == top


# Backfill


def test_a_backfill_takes_in_the_late_events_of_its_range_and_no_others() -> None:
    o = oracle(Tumbling("w", 10))
    source = [Event("k", 5), Event("k", 35), Event("k", 6), Event("k", 10), Event("k", 9)]
    o.run(source[:2], FAR)
    o.run(source[2:], FAR)
    assert refused(o.late) == [6, 9, 10]
    o.backfill(source, 0, 10, FAR)
    assert counts(o, "w") == {(0, 10): 3, (30, 40): 1}
    assert (o.watermark, {e.t for e in o.resolved}) == (35, {6, 9})


def test_a_backfill_repairs_what_the_next_run_builds_on() -> None:
    o = oracle(Session("s", 10), lateness=0)
    source = [Event("k", 20, id="x"), Event("k", 5, id="y")]
    o.run(source[:1], FAR)
    o.run(source[1:], FAR)
    o.backfill(source, 0, 10, FAR)
    assert counts(o, "s") == {(5, 15): 1, (20, 30): 1}
    assert o.run([Event("k", 5, id="y")], FAR)["duplicate"] == 1
    feed(o, 12)  # alone it would be admitted by 20, and 5 is not final: 5 + 20 > 20
    assert counts(o, "s") == {(5, 30): 3}


def test_rows_whose_source_is_gone_disappear_inside_the_range() -> None:
    o = oracle(Tumbling("w", 10))
    source = [Event("k", 5), Event("k", 6), Event("k", 15)]
    o.run(source, FAR)
    o.backfill(source[:1], 0, 10, FAR)
    assert counts(o, "w") == {(0, 10): 1, (10, 20): 1}
    o.backfill([], 0, 10, FAR)
    assert counts(o, "w") == {(10, 20): 1}


def test_a_backfill_repairs_a_partial_row() -> None:
    o = oracle(Sliding("w", size=60, slide=30))
    source = [Event("k", 100), Event("k", 85)]
    for event in source:
        o.run([event], FAR)
    o.backfill(source, 85, 86, FAR)
    assert counts(o, "w") == {(30, 90): 1, (60, 120): 2, (90, 150): 1}
    assert o.resolved == [Event("k", 85)]


def test_the_live_winner_stays_while_the_source_has_it() -> None:
    o = oracle(Tumbling("w", 10))
    won, lost = Event("k", 5, 1, "x"), Event("k", 4, 2, "x")
    o.run([won], FAR)
    o.run([lost], FAR)
    o.backfill([won, lost], 0, 10, FAR)
    assert o.table("w")["k", 0, 10]["sum"] == 1
    o.backfill([lost], 0, 10, FAR)
    assert o.table("w")["k", 0, 10]["sum"] == 2


def test_a_winner_outside_the_range_stays_the_winner() -> None:
    o = oracle(Tumbling("w", 10))
    source = [Event("k", 15, 1, "x"), Event("k", 5, 2, "x")]
    for event in source:
        o.run([event], FAR)
    o.backfill(source, 0, 10, FAR)
    assert counts(o, "w") == {(10, 20): 1}


def test_among_copies_never_accepted_the_first_in_event_order_wins() -> None:
    o = oracle(Tumbling("w", 10))
    source = [Event("k", 35), Event("k", 7, 1, "x"), Event("k", 6, 2, "x")]
    for event in source:
        o.run([event], FAR)
    assert refused(o.late) == [7, 6]
    o.backfill(source, 0, 10, FAR)
    assert o.table("w")["k", 0, 10]["sum"] == 2


def test_a_backfill_judges_the_future_by_its_own_arrival_and_reads_what_a_run_has_read() -> None:
    o = oracle(Tumbling("w", 10), max_future=0)
    source = [Event("k", 5), Event("k", 8), Event("k", 9), Event("k", 6)]
    o.run(source[:3], 5)
    assert refused(o.quarantine) == [8, 9]
    o.backfill(source, 0, 10, 8)
    assert counts(o, "w") == {(0, 10): 2}
    assert (o.watermark, o.arrival) == (5, 5)


def test_a_quarantined_row_that_has_become_readable_is_taken_in() -> None:
    o = oracle(Tumbling("w", 10))
    o.run([Event("k", 5), Event("k", 6, 1, bad="not a number")], FAR)
    o.backfill([Event("k", 5), Event("k", 6, 1)], 0, 10, FAR)
    assert counts(o, "w") == {(0, 10): 2}


# 0 is final when 8 and 14 arrive; [5, 10) takes in 8 alone.   0 ===== 8 =====(14)
def test_refused_rows_outside_stay_refused_though_their_session_is_widened() -> None:
    o = oracle(Session("s", 10))
    source = [Event("k", t) for t in (0, 40, 8, 14)]
    o.run(source[:1], FAR)
    o.run(source[1:2], FAR)
    o.run(source[2:], FAR)
    assert refused(o.late) == [8, 14]
    o.backfill(source, 5, 10, FAR)
    assert counts(o, "s") == {(0, 18): 2, (40, 50): 1}


# Properties. Copies of one id are equal, as they are meant to be.

WINDOWS = (Tumbling("t", size=10, origin=3), Sliding("h", size=25, slide=10), Session("s", gap=7))


def event(key: str, t: int, value: int | None, named: bool) -> Event:  # noqa: FBT001 drawn by hypothesis
    return Event(key, t, value, f"{key}/{t}/{value}" if named else None, order=-1 if value is None else value)


EVENTS = st.builds(event, st.sampled_from("ab"), st.integers(-60, 90), st.none() | st.integers(0, 3), st.booleans())
BATCHES = st.lists(st.lists(EVENTS, max_size=8), max_size=8)


def replayed(batches: list[list[Event]], lateness: int | None, delay: int = 0) -> Oracle:
    o = oracle(*WINDOWS, lateness=lateness, delay=delay)
    for batch in batches:
        o.run(batch, FAR)
    return o


def tables(o: Oracle) -> list[dict[Any, Any]]:
    return [o.table(window.name) for window in o.windows]


@given(BATCHES, st.data())
def test_with_lateness_forever_batches_and_order_do_not_matter(batches: list[list[Event]], data: st.DataObject) -> None:
    whole = [e for batch in batches for e in batch]
    shuffled = data.draw(st.permutations(whole))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    split = [shuffled[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert tables(replayed(split, None)) == tables(replayed([whole], None)) == tables(replayed(batches, None))


@given(BATCHES, st.integers(0, 30), st.integers(0, 10))
def test_a_backfill_of_everything_equals_lateness_forever(batches: list[list[Event]], lateness: int, delay: int) -> None:
    o = replayed(batches, lateness, delay)
    watermark = o.watermark
    o.backfill([e for batch in batches for e in batch], -FAR, FAR, FAR)
    assert tables(o) == tables(replayed(batches, None))
    assert o.watermark == watermark


@given(BATCHES, st.integers(0, 30), st.integers(-60, 90), st.integers(0, 60))
def test_a_backfill_changes_nothing_the_second_time(batches: list[list[Event]], lateness: int, start: int, length: int) -> None:
    source = [e for batch in batches for e in batch]
    o = replayed(batches, lateness)
    o.backfill(source, start, start + length, FAR)
    before, resolved = tables(o), len(o.resolved)
    o.backfill(source, start, start + length, FAR)
    assert (tables(o), len(o.resolved)) == (before, resolved)


@given(BATCHES, st.integers(0, 30), st.data())
def test_the_order_inside_a_run_does_not_matter(batches: list[list[Event]], lateness: int, data: st.DataObject) -> None:
    shuffled = [data.draw(st.permutations(batch)) for batch in batches]
    assert tables(replayed(batches, lateness)) == tables(replayed(shuffled, lateness))


@given(BATCHES, st.integers(0, 30))
def test_every_row_read_has_exactly_one_outcome(batches: list[list[Event]], lateness: int) -> None:
    o = oracle(*WINDOWS, lateness=lateness)
    for batch in batches:
        counted = o.run(batch, FAR)
        assert counted.pop("read") == len(batch) == sum(counted.values())
    taken = len(o.accepted)
    missed_tumbling = sum("t" in dict(missed) for _, missed in o.partial)
    assert sum(counts(o, "t", "a").values()) + sum(counts(o, "t", "b").values()) == taken - missed_tumbling


@given(BATCHES, st.integers(0, 20))
def test_sessions_of_a_key_never_overlap_or_touch(batches: list[list[Event]], lateness: int) -> None:
    rows = sorted(replayed(batches, lateness).table("s"))
    for (key, _, end), (next_key, start, _) in pairwise(rows):
        assert key != next_key or end < start


@given(BATCHES, st.integers(0, 20))
def test_a_final_session_never_changes(batches: list[list[Event]], lateness: int) -> None:
    o = oracle(*WINDOWS, lateness=lateness)
    final: dict[Any, Any] = {}
    for batch in batches:
        o.run(batch, FAR)
        rows = o.table("s")
        assert final.items() <= {row: tuple(value.values()) for row, value in rows.items()}.items()
        gone = [row for row in rows if o.watermark is not None and row[2] + 7 + lateness <= o.watermark]
        final |= {row: tuple(rows[row].values()) for row in gone}


@given(BATCHES)
def test_a_slide_of_the_size_is_tumbling(batches: list[list[Event]]) -> None:
    o = oracle(Tumbling("t", size=10, origin=3), Sliding("h", size=10, slide=10, origin=3), lateness=5)
    for batch in batches:
        o.run(batch, FAR)
    assert o.table("t") == o.table("h")


ZONES = st.sampled_from(["America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kolkata", "Africa/Monrovia", "Europe/Dublin"])
MINUTES = st.integers(utc("1900-01-01") // MINUTE, utc("2040-01-01") // MINUTE)
NEAR_A_JUMP = st.sampled_from(["2026-03-08T02:00", "2026-11-01T01:30", "2026-04-05T01:45", "2026-10-04T02:15", "2011-12-30T12:00"])
LOCALS = MINUTES.map(lambda m: m * MINUTE) | st.builds(lambda text, m: utc(text) + m * MINUTE, NEAR_A_JUMP, st.integers(-1500, 1500))


@given(LOCALS, ZONES)
@settings(max_examples=200)
def test_a_local_time_is_the_first_instant_at_which_the_clock_has_reached_it(local: int, zone: str) -> None:
    found = instant(local, zone)
    assert wall(found, zone) >= local
    assert all(wall(found - 1 - back * 10 * MINUTE, zone) < local for back in range(26 * 6))


@given(LOCALS, ZONES, st.sampled_from([15 * MINUTE, HOUR, 7 * HOUR, DAY, 7 * DAY]))
def test_the_windows_of_a_grid_leave_no_hole(t: int, zone: str, size: int) -> None:
    window = Tumbling("w", size=size, origin=5 * MINUTE, zone=zone)
    ((start, end),) = spans(window, t)
    assert start <= t < end
    assert {after for after, _ in spans(window, end)} == {end}
    assert {before for _, before in spans(window, start - 1)} == {start}
