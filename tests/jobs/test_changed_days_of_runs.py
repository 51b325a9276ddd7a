"""Runs and publications name the days of windows that differ, by Spark and against the oracle."""

import random
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import SparkSession

from jobs.publish import publish
from tests.oracle import Event, Global, Session, Tumbling, Window
from tests.support.long_lived_pipeline import MINUTE
from tests.support.met_expectations import record_met
from tests.support.pipeline_under_test import FEW, Lab, us
from windowing.grid.zone import moment
from windowing.report.changed import Days
from windowing.report.rule import RunReport

HOUR = 60 * MINUTE
NEW_YORK = "America/New_York"
WINDOWS = (
    Tumbling("hourly", size=HOUR, zone=NEW_YORK),
    Session("visits", 90 * MINUTE),
    Global("ever"),
)
# The clock of New York jumps on the fourth day.
BEGIN = us("2026-03-05T00:00:00Z")
DAYS = 8
Table = Mapping[tuple[Any, ...], Mapping[str, Any]]


def days_that_differ(window: Window, before: Table, after: Table) -> list[date] | None:
    """The days of windows that differ, by the clock of their zone; None where none differs."""
    clock = ZoneInfo(getattr(window, "zone", None) or "UTC")
    places = [
        place for place in before.keys() | after.keys() if before.get(place) != after.get(place)
    ]
    if not places:
        return None
    starts = {place[1] for place in places} - {None}
    return sorted({moment(start).astimezone(clock).date() for start in starts})


def named(found: Mapping[str, Days], window: Window) -> list[date] | None:
    return list(found[window.name].days or ()) if window.name in found else None


def lab_of(spark: SparkSession, home: Path) -> Lab:
    return Lab(spark, home, WINDOWS, shows=FEW)


def tables(lab: Lab) -> dict[str, Table]:
    return {window.name: lab.expected(window) for window in WINDOWS}


def check_run(report: RunReport, before: Mapping[str, Table], after: Mapping[str, Table]) -> None:
    """A run names all days from the first one that changed to the last one."""
    for window in WINDOWS:
        due = days_that_differ(window, before[window.name], after[window.name])
        found = named(report.changed_days, window)
        assert (found is None) == (due is None), window
        if due:
            assert found and (found[0], found[-1]) == (due[0], due[-1]), window
            assert len(found) == (due[-1] - due[0]).days + 1


def check_publication(lab: Lab, before: Mapping[str, Table]) -> None:
    """A publication names exactly the days that differ."""
    record_met(lab.pipeline)
    changed = publish(lab.pipeline, "nobody judges tests").changed_days
    assert changed is not None
    for window in WINDOWS:
        due = days_that_differ(window, before[window.name], lab.expected(window))
        assert named(changed, window) == due, window


def event(number: int, t: int) -> Event:
    return Event("ab"[number % 2], t, value=number, id=str(number))


@pytest.mark.slow
def test_late_rows_change_their_days_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    lab = lab_of(spark, tmp_path)
    nothing: dict[str, Table] = {window.name: {} for window in WINDOWS}
    report = lab.run(event(n, BEGIN + n * 5 * HOUR) for n in range(30))
    check_run(report, nothing, tables(lab))
    check_publication(lab, nothing)
    before = tables(lab)
    # At 3 by UTC it is the day before in New York.
    late = [event(100, BEGIN + 51 * HOUR), event(101, BEGIN + 75 * HOUR)]
    report = lab.run([*late, event(102, BEGIN + 150 * HOUR)])
    check_run(report, before, tables(lab))
    check_publication(lab, before)
    lab.check()
    # Rows that were read before change nothing.
    report = lab.run([event(100, BEGIN + 51 * HOUR)])
    assert report.changed_days == {}
    check_publication(lab, tables(lab))


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(2))
def test_random_schedules(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    drawn, lab = random.Random(seed), lab_of(spark, tmp_path)
    shown: dict[str, Table] = {window.name: {} for window in WINDOWS}
    number = 0
    for _ in range(8):
        before = tables(lab) if number else shown
        events = []
        for _ in range(drawn.choice((1, 2, 5, 40))):
            number += 1
            events.append(event(number, BEGIN + drawn.randrange(DAYS * 24 * 60) * MINUTE))
        check_run(lab.run(events), before, tables(lab))
        if drawn.random() < 0.7:
            check_publication(lab, shown)
            shown = tables(lab)
