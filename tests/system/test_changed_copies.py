"""Copies of one event in a source that changes its past.

Each of the events stays accepted or refused, whatever is changed around it. The expected tables are
those of an oracle to which each run brings its events as the source has them in the end.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import oracle
from tests.oracle import Event
from tests.support.changing_source import Changing
from tests.support.long_lived_pipeline import MINUTE, Crasher, ends_at
from tests.support.pipeline_under_test import FEW, us
from tests.support.stored_rows import list_stored
from windowing.spec.load import load_pipeline

HOURLY = oracle.Tumbling("hourly", 60 * MINUTE)
DAILY = oracle.Tumbling("daily", 1440 * MINUTE)
HOUR = 60 * MINUTE
DAY = us("2026-01-01T00:00:00")


def at(hour: float, name: str, order: int, day: int = 1) -> Event:
    """The event of that name, at an hour of a day of January."""
    return Event("a", DAY + (day - 1) * 24 * HOUR + round(hour * HOUR), 1, name, order)


def change(lab: Changing, *events: Event) -> list[Event]:
    """The source gets another value in each of these events, in a commit of its own."""
    for event in events:
        lab.sql(f"update {{}} set value = value + 10 where seq = {event.order}")
    return [replace(event, value=(event.value or 0) + 10) for event in events]


def land_copies_of_two_days(lab: Changing) -> tuple[Event, Event, Event, Event]:
    """An accepted event and one beside it, an earlier one, and a copy beside that, refused."""
    winner, beside, early = at(10, "x", 1, 10), at(10, "p", 2, 10), at(10, "q", 3)
    copy = at(10, "x", 4)
    lab.land([winner, beside, early])
    lab.go()
    lab.land([copy])
    assert lab.go().duplicate == 1
    return winner, beside, early, copy


def count_open_copies(lab: Changing) -> int:
    """How many rows are refused as duplicates and not resolved."""
    rows = list_stored(lab.spark, lab.pipeline.table("_duplicates"))
    return sum(row["resolved_by"] is None for row in rows)


@pytest.mark.deep
@pytest.mark.parametrize("changed", ["the copy", "both"])
def test_a_copy_that_was_changed_is_counted_nowhere_where_ids_expire(
    changed: str, spark: SparkSession, tmp_path: Path
) -> None:
    lab = Changing(spark, tmp_path, (HOURLY,), shows=FEW, horizon=30 * 24 * HOUR)
    first, copy, other = at(10, "y", 1), at(10 + 1 / 12, "y", 2), at(10.5, "z", 3)
    lab.land([first, copy, other])
    lab.go()
    if changed == "both":
        (first,) = change(lab, first)
    (copy,) = change(lab, copy)
    lab.go()
    lab.holds_what_came([first, copy, other])
    assert count_open_copies(lab) == 1
    # The pane is made anew, and both copies lie outside what is reprocessed.
    (other,) = change(lab, other)
    lab.go()
    lab.holds_what_came([first, copy, other])
    lab.backfill(other.t or 0, DAY + 11 * HOUR)
    lab.holds_what_came([first, copy, other])
    lab.windows = (HOURLY, DAILY)
    lab.pipeline = load_pipeline(lab.spec())
    lab.go()
    lab.holds_what_came([first, copy, other])
    # What is no longer in the source is no longer refused.
    lab.sql("delete from {} where seq = 2")
    lab.go()
    lab.holds_what_came([first, other])
    assert count_open_copies(lab) == 0


@pytest.mark.deep
@pytest.mark.parametrize("place", ["backfill.remembered", "backfill.resolved"])
def test_a_copy_is_refused_once_however_often_its_change_is_reprocessed(
    place: str, spark: SparkSession, tmp_path: Path
) -> None:
    lab = Changing(spark, tmp_path, (HOURLY,), shows=FEW, horizon=30 * 24 * HOUR)
    first, copy, other = at(10, "y", 1), at(10 + 1 / 12, "y", 2), at(10.5, "z", 3)
    lab.land([first, copy, other])
    lab.go()
    first, copy = change(lab, first, copy)
    ends_at(Crasher(place), lab.go)
    lab.go()
    (other,) = change(lab, other)
    lab.go()
    lab.holds_what_came([first, copy, other])
    assert count_open_copies(lab) == 1


@pytest.mark.deep
def test_a_copy_in_one_of_two_changed_ranges_takes_no_event_of_the_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Changing(spark, tmp_path, (HOURLY,), shows=FEW)
    winner, beside, early, copy = land_copies_of_two_days(lab)
    beside, early = change(lab, beside, early)
    assert lab.go().corrections == 2
    lab.holds_what_came([winner, beside, early], [copy])


@pytest.mark.deep
def test_a_copy_takes_the_place_of_an_event_that_is_gone_from_another_changed_range(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Changing(spark, tmp_path, (HOURLY,), shows=FEW)
    _, beside, early, copy = land_copies_of_two_days(lab)
    (early,) = change(lab, early)
    lab.sql("delete from {} where seq = 1")
    assert lab.go().corrections > 0
    lab.holds_what_came([beside, early, copy])


@pytest.mark.deep
@pytest.mark.parametrize("changed", ["the first", "the second"])
def test_two_events_of_an_expired_id_stay_two_whichever_is_changed(
    changed: str, spark: SparkSession, tmp_path: Path
) -> None:
    lab = Changing(spark, tmp_path, (HOURLY,), shows=FEW, horizon=HOUR)
    first, other, second = at(10, "x", 1), at(13.5, "z", 2), at(14, "x", 3)
    lab.land([first, other])
    lab.go()
    lab.land([second])
    assert lab.go().accepted == 1
    if changed == "the first":
        (first,) = change(lab, first)
    else:
        (second,) = change(lab, second)
    lab.go()
    lab.holds_what_came([first, other], [second])
    first, second = change(lab, first, second)
    lab.go()
    lab.holds_what_came([first, other], [second])


@pytest.mark.deep
def test_a_row_that_was_refused_stays_refused_when_one_beside_it_is_changed_where_ids_expire(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Changing(spark, tmp_path, (HOURLY,), shows=FEW, horizon=HOUR)
    first, copy, other = at(10, "x", 1), at(14, "x", 2), at(14.1, "z", 3)
    lab.land([first, copy, other])
    assert lab.go().duplicate == 1
    (other,) = change(lab, other)
    lab.go()
    lab.holds_what_came([first, copy, other])
    # Far from the first, and yet no row of its id is accepted twice.
    lab.sql("update {} set ts = ts + interval 10 minutes where seq = 1")
    lab.go()
    lab.holds_what_came([replace(first, t=(first.t or 0) + 10 * MINUTE), copy, other])
