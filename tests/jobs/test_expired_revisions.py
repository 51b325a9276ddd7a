"""Values that were replaced before a time are forgotten by maintenance, and all others are told."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from jobs.cli.history import _print_histories
from jobs.console import Printer
from jobs.history import Histories, history
from jobs.maintain import maintain
from jobs.show import Wanted
from tests.jobs.test_history import Course, Named, place_of
from tests.support.hourly_trips import SPEC
from tests.support.long_lived_pipeline import Crasher, ends_at
from tests.support.pipeline_under_test import Lab
from windowing.grid.zone import micros, moment
from windowing.ledger.rule import BACKFILL_DONE, DONE
from windowing.ledger.table import read_history
from windowing.revisions.rule import Period, Value
from windowing.spec.load import load_pipeline

Told = Mapping[Named, list[Value]]
"""The values of each window, without what readers saw of them."""


def tell(lab: Lab) -> Told:
    found = {}
    for window in lab.windows:
        chosen = lab.pipeline.window(window.name)
        for each in history(lab.spark, lab.pipeline, chosen, Wanted(limit=999)).windows:
            told = [replace(v, published=(), is_published_known=True) for v in each.values]
            found[window.name, place_of(each)] = told
    return found


def forget(told: Told, until: int) -> Told:
    """What is left of it once all that was replaced by then is not known any more."""
    left = {}
    for named, values in told.items():
        kept = [v for v in values if v.known.end is None or micros(v.known.end) > until]
        first = kept[0]
        if first.known.start is not None and micros(first.known.start) <= until:
            since = Period(None, first.known.end)
            # That there was no such window is not known, either.
            unknown = [replace(first, made_by=None, known=since)] if first.values else []
            kept = [*unknown, *kept[1:]]
        if kept:
            left[named] = kept
    return left


def maintain_until(lab: Lab, until: int, place: str | None) -> None:
    """A maintenance by whose clock values expire that were replaced by then.

    It ends at a place first, if one is given.
    """
    arrival = read_history(lab.pipeline).last_arrival
    assert arrival is not None
    kept = replace(lab.pipeline.retention, revisions_us=arrival - until)
    expiring = replace(lab.pipeline, retention=kept)

    def step() -> None:
        maintain(lab.spark, expiring, moment(arrival))

    if place is not None:
        ends_at(Crasher(place), step)
    step()


def is_told_in_full(lab: Lab) -> list[bool]:
    """By output whether all values are known that its windows have had."""
    windows = [lab.pipeline.window(window.name) for window in lab.windows]
    found = [history(lab.spark, lab.pipeline, window, Wanted(limit=1)) for window in windows]
    return [each.is_complete for each in found]


@pytest.mark.parametrize("cause", ["retention.revisions", "`erase --where`"])
def test_what_may_have_removed_values_is_told(
    cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trips.yaml").write_text(SPEC)
    pipeline = load_pipeline(tmp_path / "trips.yaml")
    printer = Printer(as_json=False)
    _print_histories(printer, pipeline, "hourly", Histories())
    assert capsys.readouterr().out == "trips.hourly: 0 windows\n"
    _print_histories(printer, pipeline, "hourly", Histories(is_complete=False))
    assert cause in capsys.readouterr().out


def list_steps(lab: Lab) -> list[int]:
    """When each batch and each chunk of a backfill ended, by the ledger."""
    entries = read_history(lab.pipeline).entries
    return [e.at for e in entries if e.step in (DONE, BACKFILL_DONE) and e.at is not None]


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "place"), [(1, None), (2, "maintain.expired")])
def test_values_that_were_replaced_by_then_are_forgotten(
    spark: SparkSession, tmp_path: Path, seed: int, place: str | None
) -> None:
    course = Course(spark, tmp_path, Random(seed))
    lab = course.lab
    for step in (course.run, course.run, course.backfill, lab.maintain, course.run):
        step()
    before = tell(lab)
    assert all(is_told_in_full(lab))
    early, late = list_steps(lab)[1:3]
    maintain_until(lab, early, place)
    first = tell(lab)
    assert first == forget(before, early) != before
    assert not any(is_told_in_full(lab))
    maintain_until(lab, late, place)
    second = tell(lab)
    assert second == forget(before, late) != first
    maintain_until(lab, late, None)
    assert tell(lab) == second, "what has expired is not read from the change feed again"
    for step in (course.run, course.backfill):
        step()
    after = tell(lab)
    for named, values in second.items():
        stayed = [(v.values, v.made_by) for v in after[named][: len(values)]]
        assert stayed == [(v.values, v.made_by) for v in values]
    lab.check()
    newest = list_steps(lab)[-1]
    maintain_until(lab, newest, place)
    assert tell(lab) == forget(after, newest) != after
    shown = {named for named in after if course.witness.values[named][-1].shown}
    assert tell(lab).keys() == shown
