"""What is read of `_quality`: a step's outcomes, without plain values of all those before it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from expectations.outcome import Outcome
from expectations.table import (
    read_newest,
    read_validated,
    read_validation,
    record_outcomes,
)
from tests.expectations.planted import PIPELINE
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import CLOSE, PUBLISH, LedgerEntry
from windowing.ledger.table import QUALITY
from windowing.location import Location
from windowing.report import table as report
from windowing.spec.pipeline import Pipeline
from windowing.storage import control

OLD, NEW = LedgerEntry(CLOSE, seq=3, run=1), LedgerEntry(CLOSE, seq=7, run=2)
PUBLISHED = LedgerEntry(PUBLISH, seq=5, run=1)


def outcome(number: int) -> Outcome:
    return Outcome("hourly", "builtin", f"expects {number}", "critical", True, "", "")


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """Fifty outcomes of an old step, then twice two of a new one."""
    made = replace(PIPELINE, lake=Location(str(tmp_path)))
    record_outcomes(made, OLD, [outcome(n) for n in range(50)], "old")
    record_outcomes(made, NEW, [outcome(n) for n in (1, 2)], "new")
    record_outcomes(made, NEW, [outcome(n) for n in (3, 4)], "newer")
    return made


@pytest.fixture
def plain(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The sequence number of every row that was made a plain value."""
    made: list[int] = []
    to_rows = control.to_rows

    def noting(found: pa.Table) -> list[control.Row]:
        rows = to_rows(found)
        made.extend(row["seq"] for row in rows)
        return rows

    monkeypatch.setattr(control, "to_rows", noting)
    yield made


def test_the_newest_validation_of_a_step_is_found_among_its_own_rows(
    pipeline: Pipeline, plain: list[int]
) -> None:
    assert read_validation(pipeline, NEW, "newer") == (outcome(3), outcome(4))
    assert read_validation(pipeline, NEW, "new") == ()
    assert read_newest(pipeline, NEW) == (outcome(3), outcome(4)), "whatever it followed from"
    assert set(plain) == {7}


def test_an_older_step_has_its_own_validation(pipeline: Pipeline) -> None:
    assert read_validation(pipeline, OLD, "old") == tuple(outcome(n) for n in range(50))


def test_validated_steps_are_those_since_the_publication(
    pipeline: Pipeline, plain: list[int]
) -> None:
    past = LedgerHistory((OLD, PUBLISHED, NEW))
    assert read_validated(pipeline, past) == {7}
    assert set(plain) == {7}


def test_before_any_publication_all_steps_count(pipeline: Pipeline) -> None:
    assert read_validated(pipeline, LedgerHistory((OLD, NEW))) == {3, 7}


def test_a_check_is_later_than_all_others_without_reading_their_rows(
    pipeline: Pipeline, plain: list[int]
) -> None:
    """The clock was set back: what was checked last says year 2100."""
    late_us = 4_102_444_800_000_000
    path = pipeline.table(QUALITY)
    (row, *_) = control.select_rows(control.read_contents(path), "seq", 7)
    schema = pa.schema([("seq", pa.int64()), ("checked_at", pa.timestamp("us", "UTC"))])
    last = {"seq": row["seq"], "checked_at": late_us}
    control.append_rows(path, schema, [last], control.read_version(path))
    plain.clear()
    record_outcomes(pipeline, replace(NEW, seq=9), [outcome(5)], None)
    assert plain == []
    (newest,) = control.select_rows(control.read_contents(path), "seq", 9)
    assert newest["checked_at"] == late_us + 1


def test_outcomes_of_another_step_with_the_same_number_do_not_count(pipeline: Pipeline) -> None:
    """The ledger was restored to an earlier time, and has come to that number again since."""
    (row, *_) = control.select_rows(control.read_contents(pipeline.table(QUALITY)), "seq", 7)
    again = replace(NEW, at=row["checked_at"] + 60_000_000)
    assert read_validation(pipeline, again, "newer") == ()
    assert read_newest(pipeline, again) == ()
    assert read_validated(pipeline, LedgerHistory((OLD, PUBLISHED, again))) == frozenset()
    # The clock was set back since that step, and the outcomes of this one count all the same.
    record_outcomes(pipeline, again, [outcome(6)], "newest")
    assert read_validation(pipeline, again, "newest") == (outcome(6),)
    assert read_validated(pipeline, LedgerHistory((OLD, PUBLISHED, again))) == {7}


def test_a_report_shows_the_last_validation_of_the_newest_step_last(pipeline: Pipeline) -> None:
    *earlier, newest = report.read_validations(pipeline, LedgerHistory((OLD, NEW)))
    assert [check.expectation for check in newest.checks] == ["expects 3", "expects 4"]
    assert newest.seq == 7
    assert [each.seq for each in earlier] == sorted(each.seq for each in earlier)


def test_a_report_reads_the_outcomes_of_a_few_steps_however_many_there_are(
    pipeline: Pipeline, plain: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "_VALIDATIONS", 1)
    report.read_validations(pipeline, LedgerHistory((OLD, NEW)))
    assert set(plain) == {7}


def test_a_report_shows_no_outcomes_of_steps_that_are_gone(pipeline: Pipeline) -> None:
    """The ledger was restored to an earlier time, and in the second case has come on since."""
    (row, *_) = control.select_rows(control.read_contents(pipeline.table(QUALITY)), "seq", 7)
    again = replace(NEW, at=row["checked_at"] + 60_000_000)
    for past in (LedgerHistory((OLD,)), LedgerHistory((OLD, again))):
        newest = report.read_validations(pipeline, past)[-1]
        assert newest.seq == 3
        assert len(newest.checks) == 50


def test_a_pipeline_without_a_validation_has_no_outcomes(tmp_path: Path) -> None:
    empty = replace(PIPELINE, lake=Location(str(tmp_path)))
    assert read_validation(empty, NEW, "new") == ()
    assert read_validated(empty, LedgerHistory((NEW,))) == frozenset()
    assert read_newest(empty, NEW) == ()
    assert report.read_validations(empty, LedgerHistory((NEW,))) == ()
