"""Which figures of a run raise an alarm, and which of them hold its outputs; derived by hand."""

import pytest

from windowing.grid.range import Range
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import CLOSE, DONE, MAX_TIME, MIN_TIME, LedgerEntry
from windowing.report.alarms import (
    Alarm,
    Raised,
    RunFigures,
    find_alarms,
    gather_figures,
    list_alarms,
    list_last_alarms,
    name_alarm_count,
)
from windowing.spec.pipeline import Alarms

NOTHING = Alarms()
DAY = 86_400_000_000
JULY = 1_751_328_000_000_000
"""2025-07-01 00:00Z."""


def names(figures: RunFigures, limits: Alarms = NOTHING) -> list[tuple[str, bool]]:
    """The names of the alarms, and whether each holds."""
    return [(alarm.name, alarm.holds) for alarm in find_alarms(figures, limits)]


def test_a_run_without_rows_raises_nothing() -> None:
    strict = Alarms(quarantined=0, lost_values=0, max_age_us=1, rows_factor=1)
    assert find_alarms(RunFigures(0, earlier=(900,) * 5), strict) == ()


@pytest.mark.parametrize(
    ("quarantined", "limit", "found"),
    [
        (50, None, []),
        (51, None, [("quarantined", False)]),
        (100, None, [("quarantined", False)]),
        (10, 0.1, []),
        (11, 0.1, [("quarantined", True)]),
        (1, 0, [("quarantined", True)]),
        (60, 0.7, [("quarantined", False)]),
        (100, 1, [("quarantined", False)]),
    ],
)
def test_quarantined_rows_are_said_above_a_half_and_hold_above_the_limit(
    quarantined: int, limit: float | None, found: list[tuple[str, bool]]
) -> None:
    assert names(RunFigures(100, quarantined), Alarms(quarantined=limit)) == found


def test_an_alarm_that_holds_names_the_limit_of_the_spec() -> None:
    figures = RunFigures(
        400, 300, {"fare": 300}, times=Range(0, 0), arrival_us=30 * DAY, earlier=(100,) * 5
    )
    strict = Alarms(quarantined=0.25, lost_values=0.01, max_age_us=7 * DAY, rows_factor=3)
    limits = {each.name: each.limit for each in find_alarms(figures, strict)}
    assert limits == {
        "quarantined": "0.25",
        "lost_values": "0.01",
        "max_age": "7 days",
        "rows_factor": "3",
    }
    assert {each.limit for each in find_alarms(figures, NOTHING)} == {None}


def test_a_sentence_says_how_many_of_how_many() -> None:
    (many,) = find_alarms(RunFigures(1_200, 1_100), NOTHING)
    (one,) = find_alarms(RunFigures(1, 1), NOTHING)
    assert many.text == "1,100 of 1,200 rows were quarantined"
    assert (one.text, one.figure) == ("1 of 1 row was quarantined", 1)


@pytest.mark.parametrize(
    ("lost", "limit", "found"),
    [
        ({}, 0, []),
        ({"delay": 5, "gain": 50}, None, []),
        ({"delay": 5, "gain": 51}, None, [("lost_values", False)]),
        ({"delay": 5, "gain": 3}, 0.04, [("lost_values", True)]),
        ({"delay": 4}, 0.04, []),
        # Rows that `where` left out are not among the 100 that were read.
        ({"source.where": 100}, None, []),
        ({"source.where": 101}, None, [("lost_values", False)]),
    ],
)
def test_lost_values_are_judged_by_the_column_that_lost_most(
    lost: dict[str, int], limit: float | None, found: list[tuple[str, bool]]
) -> None:
    assert names(RunFigures(100, lost=lost), Alarms(lost_values=limit)) == found


def test_the_sentence_names_the_column() -> None:
    (alarm,) = find_alarms(RunFigures(100, lost={"delay": 5, "gain": 60}), NOTHING)
    assert alarm.text == "gain gave no value (NULL) for 60 of 100 rows that had one"


@pytest.mark.parametrize(
    ("first_us", "limit_us", "found"),
    [
        (-1, None, []),
        (0, None, [("max_age", False)]),
        (1_751_328_000_000, None, [("max_age", False)]),
        (365 * DAY - 1, None, [("max_age", False)]),
        (365 * DAY, None, []),
        (JULY - 2 * DAY, 2 * DAY, []),
        (JULY - 2 * DAY - 1, 2 * DAY, [("max_age", True)]),
        (None, 2 * DAY, []),
    ],
)
def test_old_times_are_said_in_1970_and_hold_beyond_the_limit(
    first_us: int | None, limit_us: int | None, found: list[tuple[str, bool]]
) -> None:
    times = None if first_us is None else Range(first_us, JULY)
    figures = RunFigures(9, times=times, arrival_us=JULY)
    assert names(figures, Alarms(max_age_us=limit_us)) == found


def test_seconds_read_as_milliseconds_are_said() -> None:
    figures = RunFigures(9, times=Range(1_751_328_000_000, 1_751_328_000_000), arrival_us=JULY)
    (alarm,) = find_alarms(figures, NOTHING)
    assert alarm.text.startswith("the first accepted event is of 1970-01-21 06:28:48Z; numbers")


def test_times_more_than_a_year_ahead_are_said_and_never_hold() -> None:
    year = RunFigures(9, times=Range(JULY, JULY + 366 * DAY), arrival_us=JULY)
    more = RunFigures(9, times=Range(JULY, JULY + 366 * DAY + 1), arrival_us=JULY)
    strict = Alarms(quarantined=0, lost_values=0, max_age_us=DAY, rows_factor=1)
    assert (names(year, strict), names(more, strict)) == ([], [("ahead", False)])


@pytest.mark.parametrize(
    ("read", "earlier", "limit", "found"),
    [
        (5_000, (100,) * 4, 2, []),
        (1_000, (100,) * 5, None, []),
        (1_001, (100,) * 5, None, [("rows_factor", False)]),
        (10, (100,) * 5, None, []),
        (9, (100,) * 5, None, [("rows_factor", False)]),
        (9, (99,) * 5, None, []),
        # The middle one counts, not the mean.
        (1_001, (100, 100, 100, 90_000, 90_000), None, [("rows_factor", False)]),
        (201, (100,) * 5, 2, [("rows_factor", True)]),
        (200, (100,) * 5, 2, []),
        (49, (100,) * 5, 2, [("rows_factor", True)]),
        (1_001, (100,) * 5, 50, [("rows_factor", False)]),
    ],
)
def test_rows_are_compared_with_the_runs_before(
    read: int, earlier: tuple[int, ...], limit: float | None, found: list[tuple[str, bool]]
) -> None:
    assert names(RunFigures(read, earlier=earlier), Alarms(rows_factor=limit)) == found


def closed(run: int, read: int, **counts: int) -> list[LedgerEntry]:
    """The entries of a run with one batch; each run has five numbers of its own."""
    done = LedgerEntry(DONE, seq=5 * run, run=run, batch=run, counts={"read": read, **counts})
    end = LedgerEntry(CLOSE, seq=5 * run + 1, run=run, arrival=JULY, counts={"read": read})
    return [done, end]


def test_figures_are_gathered_from_batches_and_counts() -> None:
    times = [{MIN_TIME: 5, MAX_TIME: 9}, {MIN_TIME: 3, MAX_TIME: 4}, {}]
    done = [LedgerEntry(DONE, counts=each) for each in times]
    counts = {"read": 8, "quarantined": 2, "null(delay)": 1}
    found = gather_figures(done, counts, 7, (1, 2))
    assert found == RunFigures(8, 2, {"delay": 1}, Range(3, 9), 7, (1, 2))


def test_alarms_of_all_runs_are_those_of_each() -> None:
    entries = [entry for run in range(1, 6) for entry in closed(run, 100)]
    entries += closed(6, 0) + closed(7, 2_000, **{MIN_TIME: 60, MAX_TIME: 60}) + closed(8, 100)
    past = LedgerHistory(tuple(entries))
    found = [(r.run, r.seq, r.alarm.name) for r in list_alarms(past, NOTHING)]
    assert found == [(7, 36, "max_age"), (7, 36, "rows_factor")]
    until_seven = LedgerHistory(past.entries[:14])
    assert [a.name for a in list_last_alarms(until_seven, NOTHING)] == ["max_age", "rows_factor"]
    assert list_last_alarms(past, NOTHING) == list_last_alarms(LedgerHistory(), NOTHING) == ()
    assert past.recent_reads == (100, 100, 100, 100, 100, 2_000, 100)


def test_a_batch_that_was_repeated_counts_once() -> None:
    first, end = closed(1, 9, **{MIN_TIME: 60, MAX_TIME: 60})
    again = LedgerEntry(DONE, seq=6, run=1, batch=1, counts={MIN_TIME: JULY, MAX_TIME: JULY})
    assert list_alarms(LedgerHistory((first, again, end)), NOTHING) == ()


def test_an_alarm_is_plain_and_has_a_count_of_its_own() -> None:
    alarm = Alarm("quarantined", "all of them", 9, holds=True, limit="0.1")
    plain = {"name": "quarantined", "text": "all of them", "holds": True, "limit": "0.1"}
    assert Raised(1, 5, alarm).alarm.as_json() == plain
    assert name_alarm_count(alarm) == "alarm(quarantined)"
