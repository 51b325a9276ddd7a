"""Which outputs an alarm holds: those of which readers don't see its run yet. No JVM."""

from dataclasses import replace

from jobs.cli.format import describe_alarm
from jobs.validation.alarming import advise_on_rows, find_holding
from jobs.validation.publishable import list_broken
from tests.windowing.report.test_report_status import published, ran
from tests.windowing.spec.specs import changed
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import LedgerEntry
from windowing.report.alarms import list_last_alarms
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Alarms

STRICT = load_pipeline(changed(alarms={"quarantined": 0.1, "lost_values": 0.1}))
EVERY = ["hourly", "rolling", "busy"]
"""Its windows."""
BAD = {"read": 4, "accepted": 3, "quarantined": 1}
GOOD = {"read": 4, "accepted": 4}


def holding(*entries: LedgerEntry, until: int = -1) -> list[tuple[str, str, str]]:
    """(window, expectation, run) of what the newest step breaks, or that at `until`."""
    past = LedgerHistory(tuple(replace(e, seq=seq) for seq, e in enumerate(entries)))
    closed = [entry for entry in past.entries if entry.step == "close"]
    found = find_holding(STRICT, past, closed[until])
    assert all(outcome.blocks for outcome in found)
    return [(o.window, o.expectation, o.observed) for o in found]


def all_hold(expectation: str, run: int) -> list[tuple[str, str, str]]:
    """Every output breaks it for that run."""
    return [(name, expectation, f"run {run}") for name in EVERY]


def test_a_bad_run_holds_every_output_until_readers_see_it() -> None:
    first = (*ran(1, 0, **GOOD), published(1, 1))
    second = ran(2, 15, **BAD)
    held = all_hold("rows_are_not_quarantined", 2)
    assert holding(*first, *second) == held
    assert holding(*first, *second, *ran(3, 30, **GOOD)) == held, "a good run repairs nothing"
    assert holding(*first, *second, until=0) == [], "it came after what is judged"
    assert holding(*first, *second, published(2, 16)) == [], "it was accepted"


def test_the_newest_run_is_named_for_each_kind_of_alarm() -> None:
    lost = {**GOOD, "null(delay)": 3}
    found = holding(*ran(1, 0, **BAD), *ran(2, 15, **BAD), *ran(3, 30, **lost))
    quarantined = all_hold("rows_are_not_quarantined", 2)
    assert sorted(found) == sorted([*quarantined, *all_hold("values_are_not_lost", 3)])


def test_an_output_that_was_held_back_is_held_on() -> None:
    entries = (*ran(1, 0, **GOOD), published(1, 1), *ran(2, 15, **BAD), published(2, 16, busy=1))
    assert holding(*entries) == [("busy", "rows_are_not_quarantined", "run 2")]


def test_without_limits_nothing_is_held_and_a_sentence_says_of_what() -> None:
    past = LedgerHistory(tuple(replace(e, seq=n) for n, e in enumerate(ran(1, 0, **BAD))))
    closed = past.entries[-1]
    assert find_holding(replace(STRICT, alarms=Alarms()), past, closed) == ()
    found = find_holding(STRICT, past, closed)
    detail = "run 1: 1 of 4 rows was quarantined, which is beyond alarms.quarantined: 0.1"
    assert [outcome.detail for outcome in found] == [detail] * 3
    (alarm,) = list_last_alarms(past, STRICT.alarms)
    told = "1 of 4 rows was quarantined; this is beyond alarms.quarantined: 0.1"
    assert describe_alarm(alarm) == f"alarm: {told}, so nothing is published"
    assert list_broken(found) == dict.fromkeys(EVERY, ["rows_are_not_quarantined"])


def test_what_is_only_said_holds_nothing() -> None:
    """Three quarters are said anyway; the spec has a limit for something else."""
    other = replace(STRICT, alarms=Alarms(lost_values=0.1))
    most = {"read": 4, "accepted": 1, "quarantined": 3}
    past = LedgerHistory(tuple(replace(e, seq=n) for n, e in enumerate(ran(1, 0, **most))))
    assert find_holding(other, past, past.entries[-1]) == ()
    assert len(find_holding(STRICT, past, past.entries[-1])) == 3


def test_what_is_broken_says_where_its_rows_are() -> None:
    late = "`tidemark late departures --outcome quarantined`"
    failing = "`tidemark validate departures --failing`"
    quarantined = "rows_are_not_quarantined"
    assert advise_on_rows(STRICT, [quarantined]) == f"see the rows with {late}, "
    assert advise_on_rows(STRICT, ["expect_x(n)"]) == f"see the rows with {failing}, "
    both = advise_on_rows(STRICT, ["expect_x(n)", quarantined])
    assert both == f"see the rows with {failing} and {late}, "
    assert advise_on_rows(STRICT, ["rows_are_as_many_as_usual"]) == "", "no row is to blame"
