"""The host's clock is set back: between runs, within a run, before a validation or publication.

Arrival times and watermarks never go back, no row is judged otherwise than by them, and nothing is
refused or deleted for it.
"""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from time import monotonic

import pytest
from pyspark.sql import SparkSession

from jobs.doctor import diagnose
from jobs.maintain import maintain
from jobs.publish import publish
from jobs.run import run
from jobs.shortcuts.nothing_new import find_nothing_new
from jobs.validate import validate
from tests.oracle import Count, Event, Session, Sliding
from tests.support.host_clock import HostClock, host_clock
from tests.support.long_lived_pipeline import MINUTE
from tests.support.pipeline_under_test import FEW, Lab
from tests.support.rare_cases import quick_and_rare
from windowing.crash import armed
from windowing.grid.zone import micros
from windowing.ledger.table import QUALITY, WATERMARKS, read_history
from windowing.storage import control

pytestmark = pytest.mark.slow

WINDOWS = (
    Sliding("rolling", 60 * MINUTE, 20 * MINUTE, emit="on_close"),
    Session("visits", 10 * MINUTE),
    Count("pairs", 2),
)
HOUR = 60 * MINUTE
JUMPS = (timedelta(seconds=2), timedelta(hours=3), timedelta(days=1))
WITHIN = (
    *("run.locked", "run.prepared", "batch.begun", "batch.intended", "batch.judged"),
    *("state.stored", "output.corrected", "batch.processed", "batch.done", "run.drained"),
    *("run.emitted", "run.marked"),
)


@pytest.fixture
def lab(spark: SparkSession, tmp_path: Path) -> Lab:
    """A pipeline that quarantines what is an hour ahead, and moves on when it is quiet."""
    return Lab(
        spark,
        tmp_path,
        WINDOWS,
        lateness=2 * HOUR,
        delay=5 * MINUTE,
        idle_after=10 * MINUTE,
        max_future=HOUR,
        shows=FEW,
    )


def events(now_us: int, number: int) -> list[Event]:
    """Some of the last hours, one that is an hour and a minute ahead, and a late one."""
    offsets = (-200, -90, -30, -1, 30, 61)
    return [
        Event("ab"[n % 2], now_us + minutes * MINUTE, n, f"e{number}-{n}", n)
        for n, minutes in enumerate(offsets)
    ]


def run_by_the_clock(lab: Lab, clock: HostClock, new: list[Event]) -> None:
    """A run without an explicit arrival; the oracle's arrival is what the pipeline recorded."""
    before = read_history(lab.pipeline)
    started_us, began = micros(clock.now()), monotonic()
    report = run(lab.spark, lab.pipeline)
    ended_us, passed_us = micros(clock.now()), round((monotonic() - began) * 1e6)
    past = read_history(lab.pipeline)
    if past.entries == before.entries:
        assert report.run is None and not new
        return
    arrival_us = past.last_arrival
    assert arrival_us is not None
    # Where the clock went back, it had shown more before, and less after.
    shown = (min(started_us, ended_us - passed_us), max(started_us + passed_us, ended_us))
    known = before.last_arrival
    if known is None:
        assert shown[0] <= arrival_us <= shown[1]
    else:
        assert max(known, shown[0]) <= arrival_us <= max(known, shown[1])
    expected = lab.truth.run(new, arrival_us)
    assert {name: getattr(report, name) for name in expected} == expected
    assert past.watermark == lab.truth.watermark


def check(lab: Lab) -> None:
    """Tables are the oracle's, and nothing in the ledger went back."""
    past = lab.check()
    closes = [entry for entry in past.entries if entry.step == "close"]
    arrivals = [entry.arrival for entry in closes if entry.arrival is not None]
    marks = [entry.watermark_out for entry in closes if entry.watermark_out is not None]
    assert arrivals == sorted(arrivals)
    assert marks == sorted(marks)
    rows = sorted(control.read_rows(lab.pipeline.table(WATERMARKS)), key=lambda row: row["run"])
    assert [row["watermark"] for row in rows] == [entry.watermark_out for entry in closes]
    assert [row["arrival"] for row in rows] == [entry.arrival for entry in closes]
    assert diagnose(lab.spark, lab.pipeline) == ()


@pytest.mark.parametrize("jump", quick_and_rare(JUMPS, JUMPS[:2]), ids=str)
def test_a_clock_that_goes_back_between_runs(jump: timedelta, lab: Lab) -> None:
    with host_clock() as clock:
        for number in range(3):
            new = lab.land(events(micros(clock.now()), number))
            run_by_the_clock(lab, clock, new)
            clock.set_back(jump)
            # A quiet source does not advance by a clock that has not come so far.
            run_by_the_clock(lab, clock, [])
            nothing = find_nothing_new(lab.pipeline, micros(clock.now()))
            assert nothing is None or nothing.run is None
        check(lab)


def test_a_source_is_read_whose_commit_is_later_than_the_clock(lab: Lab) -> None:
    """Its writer's clock is ahead, or this host's was set back after the source was written."""
    with host_clock() as clock:
        clock.set_back(timedelta(days=1))
        for number in range(3):
            run_by_the_clock(lab, clock, lab.land(events(micros(clock.now()), number)))
            assert find_nothing_new(lab.pipeline, micros(clock.now())) is not None
        check(lab)


def set_back_at(place: str, clock: HostClock, seen: list[str]) -> Callable[[str], None]:
    """The clock goes back a day when a run comes to `place` for the first time."""

    def set_back(name: str) -> None:
        if name == place and name not in seen:
            seen.append(name)
            clock.set_back(timedelta(days=1))

    return set_back


@pytest.mark.deep
def test_a_clock_that_goes_back_within_a_run(lab: Lab) -> None:
    with host_clock() as clock:
        start_us, seen = micros(clock.now()), list[str]()
        for number, place in enumerate(WITHIN):
            new = lab.land(events(start_us + number * 30 * MINUTE, number))
            clock.ahead = timedelta(minutes=30 * number)
            with armed(set_back_at(place, clock, seen)):
                run_by_the_clock(lab, clock, new)
        assert seen == [*WITHIN]
        check(lab)


@pytest.mark.deep
def test_a_clock_that_goes_back_around_a_validation_and_a_publication(lab: Lab) -> None:
    checks = []
    with host_clock() as clock:
        for number in range(3):
            run_by_the_clock(lab, clock, lab.land(events(micros(clock.now()), number)))
            for _ in range(2):
                clock.set_back(timedelta(days=1))
                assert validate(lab.spark, lab.pipeline).passed
                rows = control.read_rows(lab.pipeline.table(QUALITY))
                checks.append(max(row["checked_at"] for row in rows))
            clock.set_back(timedelta(days=1))
            published = publish(lab.pipeline)
            past = read_history(lab.pipeline)
            assert past.is_published and published.run == past.last_run
            pointer = json.loads((lab.pipeline.root.local / "_published.json").read_text())
            assert pointer["seq"] == past.entries[-1].seq
        assert checks == sorted(set(checks))
        check(lab)


@pytest.mark.deep
def test_maintenance_by_a_clock_that_went_back_deletes_nothing_early(lab: Lab) -> None:
    with host_clock() as clock:
        run_by_the_clock(lab, clock, lab.land(events(micros(clock.now()), 0)))
        before = read_history(lab.pipeline)
        clock.set_back(timedelta(days=400))
        maintain(lab.spark, lab.pipeline)
        run_by_the_clock(lab, clock, lab.land(events(before.last_arrival or 0, 1)))
        maintain(lab.spark, lab.pipeline)
        check(lab)
        assert validate(lab.spark, lab.pipeline).passed
        assert publish(lab.pipeline).run == read_history(lab.pipeline).last_run
