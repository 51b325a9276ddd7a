"""A first load and a long backlog are read in several batches, and give the tables of one.

Where several batches could judge rows otherwise than one would, nothing is read.
"""

import json
import os
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from jobs.run import follow_rewrites, run
from jobs.validate import validate
from tests import oracle
from tests.oracle import Event
from tests.support.changing_source import Changing
from tests.support.killed_process import patiently, start
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, Life, check_records, ends_at
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab
from windowing.errors import SpecError, StateRefused
from windowing.grid.zone import moment
from windowing.ledger.rule import DONE, INTENT
from windowing.ledger.table import read_history
from windowing.report.progress import RunProgress

pytestmark = pytest.mark.slow

HOUR = 60 * MINUTE
GRID = (
    oracle.Tumbling("hourly", HOUR),
    oracle.Sliding("rolling", HOUR, 20 * MINUTE, emit="changes"),
    oracle.Count("pairs", 2),
)
SESSIONS = (*GRID[:2], oracle.Session("visits", 10 * MINUTE, emit="on_close"))
KILLS = int(os.environ.get("TIDEMARK_KILLS", "6"))
"""How often a first load is killed."""


def batch_of(rng: Random, n: int, many: int = 4) -> list[Event]:
    """A few events around an hour of their own, some long before it, one without a time."""
    middle = BASE + n * 30 * MINUTE
    times = [middle + rng.randrange(-240, 30) * MINUTE for _ in range(many)]
    events = [Event(rng.choice("ab"), t, n, f"e{n}-{i}", i) for i, t in enumerate(times)]
    return [*events, Event("a", None, 1, f"bad{n}")]


def land(lab: Lab, seed: int, commits: range, copies: int = 1) -> list[Event]:
    """As many commits of a file, each with copies of earlier events."""
    rng, landed = Random(seed), []
    for n in commits:
        known = [rng.choice(lab.landed) for _ in range(copies if lab.landed else 0)]
        landed += lab.land([*batch_of(rng, n), *known])
    return landed


def files_of(lab: Lab) -> int:
    """How many files the source has."""
    return len([*(lab.root / "source").glob("*.parquet")])


def batches_of(lab: Lab) -> int:
    """How many batches the newest run has read, each of them once."""
    past = read_history(lab.pipeline)
    steps = [entry for entry in past.entries if entry.run == past.last_run]
    done, begun = ([e.batch for e in steps if e.step == step] for step in (DONE, INTENT))
    assert done == begun and len(set(done)) == len(done)
    return len(done)


@pytest.mark.deep
def test_a_first_load_and_a_backlog_in_batches_give_the_oracles_tables(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, GRID, lateness=60 * MINUTE, delay=5 * MINUTE, shows=FEW)
    lab.bound({"rows": 1})
    seen: list[RunProgress] = []
    events = land(lab, 1, range(3))
    files = files_of(lab)
    report = run(spark, lab.pipeline, moment(ARRIVAL), seen.append)
    lab.truth.run(events, ARRIVAL)
    assert (report.batches, batches_of(lab)) == (files, files)
    assert len(seen) == files + 1
    assert [(each.batches, each.rows, each.share) for each in (seen[0], seen[-1])] == [
        (0, 0, 0),
        (files, len(events), 1),
    ]
    assert {each.all_rows for each in seen} == {len(events)}
    # What waits for the watermark, and what is completed by it, is written at the end of the run.
    hourly = report.windows["hourly"]
    assert seen[-1].windows == hourly.inserted + hourly.updated > hourly.inserted
    lab.check()
    # Many of these are late, by the watermark and their times alone.
    report = lab.run_over(land(lab, 2, range(3, 6)))
    assert report.late > 0 and (report.batches, batches_of(lab)) == (files_of(lab) - files,) * 2
    lab.check()
    check_records(lab)


@pytest.mark.deep
def test_a_load_that_is_killed_goes_on_behind_its_last_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, SESSIONS, lateness=60 * MINUTE, delay=5 * MINUTE, shows=FEW)
    lab.bound({"rows": 1})
    events = land(lab, 3, range(3))
    ends_at(Crasher("batch.done"), lab.go)
    # What has come since is read by the same run, behind the version that it began with.
    events += land(lab, 4, range(3, 4))
    ends_at(Crasher("batch.processed"), lab.go)
    ends_at(Crasher("batch.begun", nth=2), lab.go)
    report = lab.run_over(events)
    assert (report.batches, batches_of(lab)) == (files_of(lab), files_of(lab))
    lab.check()
    check_records(lab)


def test_what_sessions_may_be_late_for_is_read_by_one_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, SESSIONS, lateness=60 * MINUTE, delay=5 * MINUTE, shows=FEW)
    lab.bound({"rows": 1})
    lab.run_over(land(lab, 5, range(2)))
    assert batches_of(lab) == files_of(lab)
    late = land(lab, 6, range(2, 4))
    before = read_history(lab.pipeline)
    with pytest.raises(SpecError) as refused:
        lab.go()
    assert refused.value.field == "source.batch"
    assert "which ones are late for sessions (visits) depends on all rows" in str(refused.value)
    assert read_history(lab.pipeline) == before
    lab.bound(None)
    lab.run_over(late)
    assert batches_of(lab) == 1
    # The log shows that no later event can be late.
    lab.bound({"rows": 1})
    newest = max(e.t for e in lab.landed if e.t is not None)
    on_time, files = [], files_of(lab)
    for n in range(3):
        on_time += lab.land([Event("ab"[n % 2], newest + n * MINUTE + i, n, None) for i in (0, 1)])
    lab.run_over(on_time)
    assert batches_of(lab) == files_of(lab) - files > 1
    lab.check()


@pytest.mark.deep
def test_what_comes_late_while_batches_are_read_is_for_the_next_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, SESSIONS, lateness=60 * MINUTE, delay=5 * MINUTE, shows=FEW)
    lab.bound({"rows": 1})
    lab.run_over(land(lab, 5, range(2)))
    newest = max(e.t for e in lab.landed if e.t is not None)
    on_time = lab.land([Event("a", newest + MINUTE, 1, "on time 1")])
    on_time += lab.land([Event("a", newest + 2 * MINUTE, 1, "on time 2")])
    # Alone the first of these is late for its session; with the second one it is not.
    closed = newest - 5 * MINUTE - 60 * MINUTE
    pair = [Event("c", closed - 11 * MINUTE, 1, "late"), Event("c", closed - 2 * MINUTE, 1, "open")]
    late: list[Event] = []

    def land_late(progress: RunProgress) -> None:
        if not late:
            assert progress.batches == 0
            for event in pair:
                late.extend(lab.land([event]))

    report = run(spark, lab.pipeline, moment(ARRIVAL), land_late)
    lab.truth.run(on_time, ARRIVAL)
    assert (report.read, report.batches) == (2, 2)
    lab.bound(None)
    lab.run_over(late)
    lab.check()


def test_what_was_there_before_something_late_came_is_read_by_the_same_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, SESSIONS, lateness=60 * MINUTE, delay=5 * MINUTE, shows=FEW)
    lab.run_over(land(lab, 5, range(2)))
    newest = max(e.t for e in lab.landed if e.t is not None)
    before = {*(lab.root / "source").glob("*.parquet")}
    first = [Event("a", newest + n * MINUTE, n, f"on time {n}" * 9) for n in range(1, 99)]
    on_time = lab.land(first)
    (large,) = {*(lab.root / "source").glob("*.parquet")} - before
    lab.bound({"bytes": large.stat().st_size})
    # A batch of so many bytes has this small file, and what comes meanwhile.
    on_time += lab.land([Event("b", newest + MINUTE, 1, "on time too")])
    late: list[Event] = []

    def land_late(progress: RunProgress) -> None:
        if not late:
            assert progress.batches == 0
            late.extend(lab.land([Event("c", BASE - 10 * HOUR, 1, "late")]))

    report = run(spark, lab.pipeline, moment(ARRIVAL), land_late)
    lab.truth.run(on_time, ARRIVAL)
    assert (report.read, report.batches) == (99, 2)
    lab.bound(None)
    lab.run_over(late)
    lab.check()


def test_a_sum_that_leaves_its_type_between_batches_is_right_in_the_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, GRID[:1], shows=("n", "total"))
    lab.bound({"rows": 1})
    landed: list[Event] = []
    for n, value in enumerate((2**62, 2**62, -(2**62))):
        landed += lab.land([Event("a", BASE + n * MINUTE, value, f"e{n}", n)])
    lab.run_over(landed)
    assert batches_of(lab) == 3
    lab.check()
    assert validate(spark, lab.pipeline).passed


@pytest.mark.deep
def test_a_version_that_was_read_in_part_is_finished_before_rewrites_are_followed(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Changing(spark, tmp_path, SESSIONS[:1], delay=5 * MINUTE, shows=FEW, feed=False)
    lab.bound({"rows": 1})
    for n in range(4):
        lab.land(Event("ab"[i % 2], BASE + n * HOUR + i, n, f"e{n}{i}", i) for i in range(3))
    for place in ("batch.done", "batch.processed"):
        ends_at(Crasher(place), lab.go)
    lab.sql("update {} set value = 50 where id in ('e00', 'e31')")
    lab.land([Event("b", BASE + 9 * HOUR, 1, "new", 90)])
    with pytest.raises(StateRefused, match="SOURCE_REWRITTEN"):
        lab.go()
    report = follow_rewrites(spark, lab.pipeline)
    assert report.followed is not None and report.followed.rows == 4
    assert report.read == 13
    lab.holds_what_the_source_does()


@pytest.mark.deep
def test_a_rewrite_among_what_is_new_is_refused_before_a_batch_is_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Changing(spark, tmp_path, SESSIONS[:1], delay=5 * MINUTE, shows=FEW, feed=False)
    lab.bound({"rows": 1})
    lab.land([Event("a", BASE, 1, "first")])
    lab.go()
    lab.land([Event("a", BASE, 1, "second")])
    lab.sql("delete from {} where id = 'first'")
    before = read_history(lab.pipeline)
    with pytest.raises(StateRefused, match="SOURCE_REWRITTEN"):
        lab.go()
    assert read_history(lab.pipeline) == before


@pytest.mark.parametrize("bound", [{"rows": 1}, None], ids=["batches", "one batch"])
def test_a_copy_of_an_event_that_is_deleted_by_a_later_batch_takes_its_place(
    spark: SparkSession, tmp_path: Path, bound: dict[str, object] | None
) -> None:
    lab = Changing(spark, tmp_path, GRID[:1], delay=5 * MINUTE, shows=FEW)
    lab.land([Event("a", BASE, 1, "one"), Event("a", BASE, 1, "two")])
    lab.go()
    lab.bound(bound)
    lab.land([Event("a", BASE + HOUR, 7, "one", 1)])
    lab.sql(f"delete from {{}} where id = 'one' and ts = timestamp_micros({BASE})")
    lab.go()
    assert batches_of(lab) == (1 if bound is None else 2)
    lab.holds_what_the_source_does()


@pytest.mark.deep
def test_a_source_that_changes_is_read_in_batches_while_nothing_can_be_late(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Changing(spark, tmp_path, SESSIONS, delay=5 * MINUTE, shows=FEW)
    lab.bound({"rows": 1})
    for n in range(3):
        lab.land(Event("ab"[i % 2], BASE + n * HOUR + i, n, f"e{n}{i}", i) for i in range(3))
    lab.go()
    assert batches_of(lab) == files_of(lab)
    lab.sql("update {} set value = 50 where id in ('e00', 'e11')")
    lab.land([Event("b", BASE + 9 * HOUR, 1, "new", 90)])
    lab.sql("delete from {} where id = 'e20'")
    lab.go()
    assert batches_of(lab) >= 3, "a commit is never cut"
    lab.holds_what_the_source_does()


@pytest.mark.deep
@pytest.mark.timeout(120 * KILLS)
def test_a_first_load_that_is_killed_again_and_again_repeats_at_most_one_batch_each_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, SESSIONS, lateness=60 * MINUTE, delay=5 * MINUTE, shows=FEW)
    lab.bound({"rows": 1})
    life, rng = Life(lab), Random(7)
    events = land(lab, 8, range(KILLS + 2))
    spec = tmp_path / "lab.json"
    spec.write_text(json.dumps(lab.spec()))
    for n in range(KILLS):
        whom = ("group", "jvm", "python")[n % 3]
        process = start(tmp_path, spec, rng.randrange(4, 30), whom, "run")
        out, err = process.communicate(timeout=240)
        assert out and process.returncode != 0, err[-2000:]
        past = read_history(lab.pipeline)
        steps = [entry.step for entry in past.entries if entry.batch is not None]
        assert steps.count(INTENT) - steps.count(DONE) in (0, 1), out
    patiently(lab.go)
    lab.truth.run(events, ARRIVAL)
    assert batches_of(lab) == files_of(lab)
    life.check()
