"""Sessions at the end of a closed period, whose row is in one of two tables.

A step that ends between the commits of the two is done again from what there was before it.
"""

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.backfill import backfill
from jobs.run import follow_rewrites
from tests.oracle import Event, Session
from tests.support.closed_lab import ClosedLab
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, ends_at
from tests.support.pipeline_under_test import FEW, Lab
from windowing.grid.zone import moment
from windowing.location import Location
from windowing.storage import upkeep

VISITS = Session("visits", 10 * MINUTE)
FROZEN, ACROSS = 110, (125, 132)
AT_ANY_PLACE = pytest.mark.parametrize(
    ("place", "nth"),
    [
        pytest.param("output.corrected", 1, marks=pytest.mark.slow),
        pytest.param("output.corrected", 2, marks=pytest.mark.deep),
        pytest.param("period.restated", 1, marks=pytest.mark.deep),
    ],
)
"""The output comes first, then the table of its restated rows."""


def at(minutes: int) -> Event:
    """An event so many minutes after the beginning."""
    return Event("a", BASE + minutes * MINUTE, 1, f"a{minutes}", minutes)


def close_between(spark: SparkSession, root: Path, lateness: int | None = None) -> ClosedLab:
    """One session ends in the closed period, and another one begins in it and ends later."""
    lab = Lab(spark, root, (VISITS,), lateness=lateness, shows=FEW)
    lab.run([at(FROZEN), *map(at, ACROSS), at(300)])
    closed = ClosedLab(lab)
    closed.close(BASE + 126 * MINUTE)
    closed.check()
    return closed


@AT_ANY_PLACE
def test_a_late_event_between_two_sessions_joins_them_wherever_the_run_ends(
    place: str, nth: int, spark: SparkSession, tmp_path: Path
) -> None:
    closed = close_between(spark, tmp_path)
    landed = closed.lab.land([at(118)])
    ends_at(Crasher(place, nth), closed.lab.go)
    closed.lab.run_over(landed)
    closed.check()
    closed.reopen()
    closed.check()


@AT_ANY_PLACE
def test_a_backfill_between_two_sessions_loses_no_event_wherever_it_ends(
    place: str, nth: int, spark: SparkSession, tmp_path: Path
) -> None:
    closed = close_between(spark, tmp_path, lateness=MINUTE)
    lab = closed.lab
    lab.run([at(118)])
    closed.check()
    times = (BASE + 116 * MINUTE, BASE + 126 * MINUTE)
    step = partial(backfill, lab.spark, lab.pipeline, *map(moment, times))
    ends_at(Crasher(place, nth), step)
    lab.backfill(*times)
    closed.check()
    closed.reopen()
    closed.check()


@AT_ANY_PLACE
def test_a_deletion_that_splits_a_session_loses_no_part_wherever_it_ends(
    place: str, nth: int, spark: SparkSession, tmp_path: Path
) -> None:
    """The first part ends in the closed period, so it is stated and the other one is shown."""
    lab = Lab(spark, tmp_path, (VISITS,), lateness=None, shows=FEW)
    lab.run([at(100), at(108), at(116), at(300)])
    closed = ClosedLab(lab)
    closed.close(BASE + 120 * MINUTE)
    source = Location(str(lab.home / "source"))
    upkeep.delete_where(spark, source, F.col("id") == "a108")
    step = partial(follow_rewrites, lab.spark, lab.pipeline)
    ends_at(Crasher(place, nth), step)
    step()
    closed.reopen()
    shown = lab.table("visits")
    times = {((start - BASE) // MINUTE, (end - BASE) // MINUTE) for _, start, end in shown}
    assert times == {(100, 110), (116, 126), (300, 310)}
