"""A sum that left its type fails the validation until it is back, whatever else is null.

Each window kind has four keys: a's sum leaves its type and returns, b has no value, c is in order,
and the sum of d leaves its type and stays away.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.backfill import backfill
from jobs.close import close_period, reopen_period
from jobs.failing import list_failing
from jobs.publish import publish
from jobs.validate import validate
from tests.oracle import (
    Count,
    Cumulate,
    Event,
    Global,
    Punctuation,
    RecordSliding,
    Session,
    Sliding,
    Tumbling,
    Window,
)
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.pipeline_under_test import FEW, Lab
from windowing.grid.zone import moment
from windowing.storage import delta

MOST = 2**63 - 1
WINDOWS: tuple[Window, ...] = (
    Tumbling("hourly", 60 * MINUTE, empty=True),
    Sliding("rolling", 60 * MINUTE, 20 * MINUTE, emit="changes"),
    Cumulate("so_far", 60 * MINUTE, step=20 * MINUTE),
    Global("ever"),
    Session("visits", 10 * MINUTE),
    Session("shifts", 10 * MINUTE, max_duration=60 * MINUTE),
    RecordSliding("recent", 10 * MINUTE, MINUTE),
    Count("tens", 10),
    Punctuation("legs"),
)

POSITIVE = ("sum", ">", 0)
FILTERED: tuple[Window, ...] = (
    Tumbling("hourly", 60 * MINUTE, having=POSITIVE),
    Tumbling("closed", 60 * MINUTE, emit="on_close", having=POSITIVE),
    Global("ever", having=POSITIVE),
)


def event(key: str, minute: float, value: int | None) -> Event:
    at = BASE + int(minute * MINUTE)
    return Event(key, at, value, f"{key}{minute}", int(minute * 10))


def failed(lab: Lab) -> set[str]:
    """The windows whose sums are reported; nothing else fails."""
    found = validate(lab.spark, lab.pipeline).failed
    assert {each.expectation for each in found} <= {"sums_fit_their_type"}
    return {each.window for each in found}


def null_sums(lab: Lab, window: Window) -> set[str]:
    """The keys that lack a sum in an output."""
    rows = delta.read(lab.spark, lab.pipeline.table(window.name)).where("total is null")
    return {row["key"] for row in rows.select("key").distinct().collect()}


def listed(lab: Lab) -> list[tuple[str, int | None]]:
    """Key and sum of the rows that are listed for the one output that fails."""
    (found,) = list_failing(lab.spark, lab.pipeline, validate(lab.spark, lab.pipeline), 9)
    return sorted((row["key"], row["total"]) for row in found.failing.rows)


@pytest.mark.deep
@pytest.mark.parametrize("windows", [WINDOWS[:1], WINDOWS[1:]], ids=["hourly", "of other kinds"])
def test_a_sum_that_is_back_in_its_type_is_no_longer_reported(
    windows: tuple[Window, ...], spark: SparkSession, tmp_path: Path
) -> None:
    """In the second run a's minus 5 makes its sum 2^63 - 1 + 1 - 5, and b's null stays null."""
    lab = Lab(spark, tmp_path, windows, shows=FEW)
    names = {window.name for window in windows}
    quiet = [event("b", 1, None), event("b", 190, None), event("c", 1, 2)]
    lab.land([event("a", 2, MOST), event("a", 3, 1), *quiet])
    lab.go()
    assert failed(lab) == names
    lab.land([event("a", 2.5, -5)])
    lab.go()
    for window in windows:
        assert null_sums(lab, window) >= {"b"}
    assert failed(lab) == set()
    lab.land([event("d", 2, MOST), event("d", 3, 1)])
    lab.go()
    assert failed(lab) == names
    lab.land([event("c", 4, 1)])
    lab.go()
    assert failed(lab) == names, "d still lacks its sums"


@pytest.mark.slow
def test_a_sum_of_a_closed_period_is_reported_once_it_is_shown(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, WINDOWS[:1], shows=FEW)
    lab.land([event("a", 2, 1), event("b", 1, None), event("c", 70, 2)])
    lab.go()
    close_period(spark, lab.pipeline, moment(BASE + 60 * MINUTE), "invoiced")
    lab.land([event("a", 3, MOST), event("c", 71, 2)])
    lab.go()
    assert failed(lab) == set(), "what is shown lacks no sum"
    publish(lab.pipeline)
    reopen_period(spark, lab.pipeline, "a customer is right")
    assert null_sums(lab, WINDOWS[0]) == {"a", "b"}
    assert failed(lab) == {"hourly"}
    assert listed(lab) == [("a", None), ("b", None)]
    lab.land([event("a", 4, -5)])
    lab.go()
    assert failed(lab) == set()


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 2])
def test_a_lost_sum_that_having_hides_is_reported(
    runs: int, spark: SparkSession, tmp_path: Path
) -> None:
    """A null sum does not qualify: its row is not inserted by one run, or deleted by the second."""
    lab = Lab(spark, tmp_path, FILTERED, shows=FEW)
    names = {window.name for window in FILTERED}
    first, second = event("a", 2, MOST), event("a", 3, 1)
    lab.land([first, event("c", 1, 2), event("c", 190, 2)] + [second] * (runs == 1))
    lab.go()
    if runs == 2:
        assert failed(lab) == set()
        assert {key for key, *_ in lab.table("hourly")} == {"a", "c"}
        lab.land([second])
        report = lab.go()
        assert report.windows["hourly"].deleted == 1
    assert failed(lab) == names
    for window in FILTERED:
        assert {key for key, *_ in lab.table(window.name)} == {"c"}
    backfill(spark, lab.pipeline, moment(BASE), moment(BASE + 60 * MINUTE))
    assert failed(lab) == names
    for window in FILTERED:
        assert {key for key, *_ in lab.table(window.name)} == {"c"}
    lab.land([event("a", 4, -5)])
    lab.go()
    assert failed(lab) == set()
    for window in FILTERED:
        assert {key for key, *_ in lab.table(window.name)} == {"a", "c"}
