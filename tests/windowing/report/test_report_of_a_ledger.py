"""The page says what the ledger has: a ledger is written, and its page is read. No JVM."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest
from pyspark.sql import SparkSession

from expectations.outcome import CRITICAL, WARNING, Outcome
from expectations.table import record_outcomes
from jobs.report import report
from tests.support.report_facts import BEGUN_US, MADE, PIPELINE
from tests.support.report_page import ReadPage, read_page
from windowing.grid.zone import moment
from windowing.ledger.acceptance import Acceptance, Rollback
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import (
    CLOSE,
    DONE,
    ERASE_DONE,
    ERASE_INTENT,
    INTENT,
    MAX_TIME,
    MIN_TIME,
    OPEN,
    PUBLISH,
    LedgerEntry,
)
from windowing.ledger.table import create_ledger, record_entries, record_watermark
from windowing.location import Location
from windowing.report import table
from windowing.report.facts import Facts
from windowing.report.page import render_page
from windowing.report.publications import list_publications
from windowing.report.view import view_facts
from windowing.spec.duration import HOUR, MINUTE, SECOND
from windowing.spec.pipeline import Pipeline

COUNTS = {"read": 9, "accepted": 7, "late": 1, "duplicate": 0, "quarantined": 1}
CHANGES = {"hourly.inserted": 3, "hourly.updated": 2, "hourly.deleted": 0, "daily.updated": 1}


def list_run(run: int, batch_took_us: int) -> list[LedgerEntry]:
    """The entries of a run of one batch, which arrives `run` hours after the begin."""
    arrival = BEGUN_US + run * HOUR
    times = {MIN_TIME: arrival - HOUR, MAX_TIME: arrival - 5 * MINUTE}
    entry = LedgerEntry(OPEN, run=run, arrival=arrival, at=arrival + SECOND)
    intent = replace(entry, step=INTENT, batch=run - 1)
    done = replace(intent, step=DONE, at=arrival + SECOND + batch_took_us, counts=COUNTS | times)
    closed = replace(
        entry,
        step=CLOSE,
        at=arrival + 11 * SECOND,
        watermark_out=arrival - 35 * MINUTE,
        counts=COUNTS | CHANGES,
    )
    return [entry, intent, done, closed]


def refuse() -> SparkSession:
    """A session that must not be opened."""
    raise AssertionError("a session was opened")


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """Two runs; the batch of the second has no time of its own for its end."""
    made = replace(PIPELINE, lake=Location(str(tmp_path)))
    reason = Acceptance("the till was broken", {"hourly": {"rule": "the till was broken"}})
    published = LedgerEntry(
        PUBLISH,
        run=1,
        at=BEGUN_US + HOUR + 71 * SECOND,
        counts={"run.daily": 1},
        note=reason.as_note(),
    )
    create_ledger(made)
    entries = [*list_run(1, 6 * SECOND), published, *list_run(2, 0)]
    past = record_entries(made, LedgerHistory(version=0), entries)
    for closed in past.entries:
        if closed.step == CLOSE:
            assert closed.arrival is not None
            record_watermark(made, closed.run or 0, closed, closed.arrival - 5 * MINUTE)
            outcomes = [
                Outcome("hourly", "", "rows_add_up", CRITICAL, closed.run == 1, "4", "4 of 5"),
                Outcome("hourly", "own", "expect_a(n)", WARNING, False, "9", "at most 5"),
            ]
            record_outcomes(made, closed, outcomes, None)
    return made


def page_of(pipeline: Pipeline) -> ReadPage:
    return read_page(render_page(view_facts(report(pipeline, refuse), MADE)))


def test_runs_have_the_counts_of_the_ledger(pipeline: Pipeline) -> None:
    page = page_of(pipeline)
    newest, oldest = page.tables["runs, newest first"]
    assert (newest["run"], oldest["run"]) == ("2", "1")
    assert {name: int(newest[name]) for name in COUNTS} == COUNTS
    assert [newest[name] for name in ("inserted", "updated", "deleted")] == ["3", "3", "0"]
    assert newest["arrival"] == "2026-01-01 02:00Z"
    assert page.cards["read"] == "18"
    assert page.cards["watermark"] == "2026-01-01 01:25Z"
    assert page.cards["published run"] == "1"


class CountedEntries(tuple[LedgerEntry, ...]):
    """Entries that count how often somebody goes through all of them."""

    passes: int

    def __new__(cls, entries: Iterable[LedgerEntry]) -> Self:
        made = super().__new__(cls, entries)
        made.passes = 0
        return made

    def __iter__(self) -> Iterator[LedgerEntry]:
        self.passes += 1
        return super().__iter__()


def list_published_runs(runs: int) -> CountedEntries:
    """The entries of so many runs, each of which was published."""
    entries = []
    for run in range(1, runs + 1):
        entries += [*list_run(run, SECOND), LedgerEntry(PUBLISH, run=run, at=BEGUN_US)]
    return CountedEntries(entries)


def read_of(pipeline: Pipeline, entries: Iterable[LedgerEntry], patch: pytest.MonkeyPatch) -> Facts:
    """The facts of the pipeline, as if its ledger had these entries."""
    past = LedgerHistory(entries if isinstance(entries, CountedEntries) else tuple(entries))
    closed = sorted(entry.run or 0 for entry in past.entries if entry.step == CLOSE)
    rows = [{"run": run, "arrival": 0, "watermark": 0, "max_event_time": 0} for run in closed]
    patch.setattr(table, "read_history", lambda _: past)
    patch.setattr("windowing.storage.control.read_rows", lambda _: rows)
    return table.read_facts(pipeline, refuse)


def count_passes(pipeline: Pipeline, runs: int, patch: pytest.MonkeyPatch) -> tuple[int, int]:
    """How often facts, and how often publications, go through the ledger of so many runs."""
    entries = list_published_runs(runs)
    facts = read_of(pipeline, entries, patch)
    assert [ran.batches for ran in facts.runs] == [1] * runs
    of_facts, entries.passes = entries.passes, 0
    found = list_publications(LedgerHistory(entries), pipeline.windows)
    assert [each.watermark for each in found] == [
        moment(BEGUN_US + run * HOUR - 35 * MINUTE) for run in range(1, runs + 1)
    ]
    return of_facts, entries.passes


def test_more_runs_need_no_more_passes_through_the_ledger(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = count_passes(pipeline, 2, monkeypatch)
    assert count_passes(pipeline, 40, monkeypatch) == few


def test_lag_is_arrival_less_watermark(pipeline: Pipeline) -> None:
    page = page_of(pipeline)
    watermark, newest = page.figures["lag"]["data"]
    assert (watermark["y"], newest["y"]) == ([35, 35], [5, 5]), "minutes"
    assert [row["lag"] for row in page.tables["watermarks, newest first"]] == ["35 min"] * 2


def test_times_are_told_apart_where_the_ledger_does(pipeline: Pipeline) -> None:
    newest, oldest = page_of(pipeline).tables["run times, newest first"]
    assert (oldest["seconds"], oldest["of them closing"]) == ("10.0", "4.0")
    assert (newest["seconds"], newest["of them closing"]) == ("10.0", "-")
    assert (oldest["until readers saw it"], newest["until readers saw it"]) == ("1 min", "-")
    assert (newest["batches"], newest["rows read"], newest["rows per second"]) == ("1", "9", "1")


def publish(run: int, at: int, versions: Mapping[str, int], **held: int) -> LedgerEntry:
    """A publication of `run`, where outputs that were held back show the runs `held`."""
    counts = {f"run.{name}": shown for name, shown in held.items()}
    return LedgerEntry(PUBLISH, run=run, at=at, versions=versions, counts=counts)


def close(run: int, **versions: int) -> LedgerEntry:
    """The end of a run, which has left these versions."""
    return LedgerEntry(CLOSE, run=run, at=run, versions=versions)


BOTH = {"hourly": 1, "daily": 1}


@pytest.mark.parametrize(
    ("entries", "shown"),
    [
        pytest.param(
            [
                *(close(run, **BOTH) for run in (1, 2, 3)),
                publish(2, 70, BOTH),
                publish(3, 80, BOTH),
            ],
            {1: 70, 2: 70, 3: 80},
            id="several runs, one publication",
        ),
        pytest.param(
            [close(1, **BOTH), publish(1, 60, BOTH), close(2, **BOTH), publish(1, 70, BOTH)],
            {1: 60},
            id="a rollback shows no later run",
        ),
        pytest.param(
            [
                *(close(run, **BOTH) for run in (1, 2, 3)),
                publish(1, 60, {"hourly": 1}),
                publish(2, 70, BOTH, daily=1),
                publish(3, 80, BOTH),
            ],
            {1: 70, 2: 80, 3: 80},
            id="the output that was held back decides",
        ),
        pytest.param(
            [close(1, hourly=1), publish(1, 60, {"hourly": 1}), close(2, **BOTH)],
            {1: 60},
            id="an output that came later is not waited for",
        ),
        pytest.param(
            [close(1, hourly=1, gone=1), publish(1, 60, {"hourly": 1})],
            {1: 60},
            id="an output that has gone is not waited for",
        ),
    ],
)
def test_readers_see_a_run_since_all_outputs_show_it_or_a_later_one(
    pipeline: Pipeline,
    monkeypatch: pytest.MonkeyPatch,
    entries: list[LedgerEntry],
    shown: Mapping[int, int],
) -> None:
    facts = read_of(pipeline, entries, monkeypatch)
    seen = {ran.run: ran.shown_us for ran in facts.runs if ran.shown_us is not None}
    assert seen == shown


def test_a_reason_of_a_publication_is_shown_after_later_ones_too(pipeline: Pipeline) -> None:
    (row,) = page_of(pipeline).tables["publications, newest first"]
    assert row == {
        "publication": "4",
        "run": "1",
        "at": "2026-01-01 01:01:11Z",
        "why": "accepted: the till was broken",
        "held back": "daily",
    }


OF_RUN_1 = {"hourly": 1, "daily": 1}
OF_RUN_2 = {"hourly": 2, "daily": 2}
ROLLBACK = Rollback(0, "wrong fares").as_note(None)


@pytest.mark.parametrize(
    ("entries", "held"),
    [
        pytest.param(
            [close(1, **OF_RUN_1), publish(1, 60, {"hourly": 1})],
            ("daily",),
            id="one that was never shown",
        ),
        pytest.param(
            [close(1, hourly=1), publish(1, 60, {"hourly": 1})], (), id="one that was not there"
        ),
        pytest.param(
            [close(2, **OF_RUN_2), publish(2, 60, {"hourly": 2, "daily": 1}, daily=1)],
            ("daily",),
            id="one of an older run",
        ),
        pytest.param(
            [close(2, **OF_RUN_2), publish(2, 60, {"hourly": 3, "daily": 2}, daily=2)],
            ("daily",),
            id="one that a backfill after the run has broken",
        ),
        pytest.param(
            [
                close(1, hourly=1),
                close(2, **OF_RUN_2),
                replace(publish(1, 60, {"hourly": 1, "daily": 2}, daily=2), note=ROLLBACK),
            ],
            (),
            id="a rollback has kept a newer one",
        ),
    ],
)
def test_an_output_is_held_back_where_a_run_has_filled_it_and_readers_see_less(
    pipeline: Pipeline,
    monkeypatch: pytest.MonkeyPatch,
    entries: list[LedgerEntry],
    held: tuple[str, ...],
) -> None:
    (found,) = read_of(pipeline, entries, monkeypatch).publishings
    assert found.held == held


def test_a_rollback_and_an_erasure_repeat_no_reason_as_theirs(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = Acceptance("the till was broken")
    again = Rollback(1, "wrong fares").as_note(accepted)
    entries = [
        close(1, **OF_RUN_1),
        replace(publish(1, 60, OF_RUN_1), note=accepted.as_note()),
        close(2, **OF_RUN_2),
        publish(2, 70, OF_RUN_2),
        replace(publish(1, 80, OF_RUN_1), note=again),
        LedgerEntry(ERASE_INTENT, run=2),
        replace(publish(1, 90, OF_RUN_1), note=again),
        LedgerEntry(ERASE_DONE, run=2, versions=OF_RUN_1),
    ]
    numbered = [replace(entry, seq=seq) for seq, entry in enumerate(entries)]
    found = read_of(pipeline, numbered, monkeypatch).publishings
    assert [each.told.why for each in found] == [
        "accepted: the till was broken",
        "validated",
        "rollback to 1: wrong fares",
        "erasure",
    ]
    assert [each.accepted for each in found] == [
        *("the till was broken", None, "the till was broken", "the till was broken"),
    ]


def test_expectations_have_the_verdicts_of_each_validation(pipeline: Pipeline) -> None:
    page = page_of(pipeline)
    (caption,) = [name for name in page.tables if name.startswith("expectations as of")]
    rows = {row["expectation"]: row for row in page.tables[caption]}
    assert list(rows) == ["rows_add_up", "expect_a(n)"], "what holds publication back comes first"
    assert rows["rows_add_up"]["history"] == "+x"
    assert rows["expect_a(n)"]["history"] == "!!"
    assert rows["expect_a(n)"]["holds"] == "no (warning)"
    assert "run 2: 2 expectations, 2 broken" in page.sections["quality"].text


def test_a_lake_without_a_run_has_a_page(tmp_path: Path) -> None:
    page = page_of(replace(PIPELINE, lake=Location(str(tmp_path))))
    assert page.cards["runs"] == "0"
    assert page.figures == {}
