"""The ledger stays a few files and a short log, and remains an ordinary Delta table.

Only the last test needs Spark.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.long_lived_pipeline import Crasher, ends_at
from tests.windowing.spec.specs import changed
from windowing.errors import Busy
from windowing.grid.zone import FIRST_US, LAST_US
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import CLOSE, DONE, INTENT, OPEN, LedgerEntry
from windowing.ledger.table import (
    LEDGER,
    MOST_FILES,
    WATERMARKS,
    compact_ledger,
    read_excerpt,
    read_history,
    record_entries,
    record_watermark,
)
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.storage import control, delta

ADDED = 3
"""How many files a run of one batch adds to the ledger."""


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """A pipeline whose lake is empty."""
    return load_pipeline(changed(lake=str(tmp_path)))


def steps_of_run(run: int) -> tuple[list[LedgerEntry], ...]:
    """The entries of a run of one batch, commit by commit."""
    arrival = LAST_US if run % 2 else FIRST_US
    counts = {"read": run, "accepted": run, "min_event_time": run, "max_event_time": run}
    intent = LedgerEntry(INTENT, run=run, batch=run - 1, arrival=arrival, offsets="o", note="q")
    done = replace(intent, step=DONE, counts=counts, versions={"hourly": run}, note=None)
    opened = LedgerEntry(OPEN, run=run, arrival=arrival, source_id="s", note='{"parts": {}}')
    closed = replace(opened, step=CLOSE, watermark_out=run, versions={"hourly": run}, note=None)
    return [opened, intent], [done], [closed]


def record_run(pipeline: Pipeline, run: int) -> None:
    """A run of one batch, as the stream records it."""
    past = read_excerpt(pipeline)
    *before, closing = steps_of_run(run)
    for entries in before:
        past = record_entries(pipeline, past, entries)
    record_watermark(pipeline, run, closing[0], run)
    record_entries(pipeline, past, closing)


def compact_now(pipeline: Pipeline) -> None:
    """Compacts both tables, however few files they have."""
    compact_ledger(pipeline, read_excerpt(pipeline), most_files=1)


def count_files(pipeline: Pipeline, name: str) -> int:
    """How many files the newest version of a table has."""
    return len(control.read_contents(pipeline.table(name)).files)


def count_commits(pipeline: Pipeline) -> int:
    """How many commits of the ledger have to be read to open it."""
    log = pipeline.table(LEDGER).local / "_delta_log"
    checkpoints = [int(file.name[:20]) for file in log.glob("*.checkpoint.parquet")]
    last = max(checkpoints, default=-1)
    return len([file for file in log.glob("*.json") if int(file.stem) > last])


@pytest.mark.slow
def test_a_run_opens_as_many_files_after_24_runs_as_after_few(pipeline: Pipeline) -> None:
    files, marks, commits = [], [], []
    for run in range(1, 25):
        past = read_excerpt(pipeline)
        record_run(pipeline, run)
        files.append(count_files(pipeline, LEDGER))
        marks.append(count_files(pipeline, WATERMARKS))
        commits.append(count_commits(pipeline))
        compact_ledger(pipeline, past)
    # The run that finds too many files adds its own, and its compaction is a commit, too.
    assert max(files) <= MOST_FILES + 2 * ADDED
    assert max(marks) <= MOST_FILES / ADDED + 2
    assert max(commits) <= MOST_FILES + 2 * ADDED + 1
    assert len(read_history(pipeline).entries) == 4 * 24
    assert read_excerpt(pipeline).last_run == 24


@pytest.mark.parametrize("runs", [20, 2_000])
def test_a_run_makes_as_many_entries_plain_values_of_2000_runs_as_of_20(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, runs: int
) -> None:
    entries = []
    for run in range(1, runs + 1):
        entries += [entry for commit in steps_of_run(run) for entry in commit]
    record_entries(pipeline, LedgerHistory(), entries)
    made = []
    to_rows = control.to_rows

    def counted(found: object) -> list[control.Row]:
        rows = to_rows(found)
        made.append(len(rows))
        return rows

    monkeypatch.setattr(control, "to_rows", counted)
    excerpt = read_excerpt(pipeline)
    assert excerpt.next_seq == 4 * runs
    assert sum(made) <= 16


def test_a_story_read_before_a_compaction_can_be_continued(pipeline: Pipeline) -> None:
    for run in range(1, 4):
        record_run(pipeline, run)
    excerpt, history = read_excerpt(pipeline), read_history(pipeline)
    compact_now(pipeline)
    longer = record_entries(pipeline, excerpt, [LedgerEntry(OPEN, run=4)])
    assert longer.open_run is not None
    with pytest.raises(Busy, match="another writer has recorded a step"):
        record_entries(pipeline, history, [LedgerEntry(OPEN, run=4)])
    assert [entry.seq for entry in read_history(pipeline).entries] == list(range(13))


@pytest.mark.parametrize("nth", [1, 2])
def test_a_compaction_that_is_killed_leaves_both_tables_right(pipeline: Pipeline, nth: int) -> None:
    for run in range(1, 4):
        record_run(pipeline, run)
    before = read_history(pipeline)
    ends_at(Crasher("ledger.compacted", nth), lambda: compact_now(pipeline))
    assert read_history(pipeline) == before
    assert count_files(pipeline, WATERMARKS) == (3 if nth == 1 else 1)
    # The run was closed before, so its row is there, and repeating it adds none.
    record_watermark(pipeline, 3, before.entries[-1], 3)
    record_run(pipeline, 4)
    compact_now(pipeline)
    assert read_excerpt(pipeline).last_run == 4
    rows = control.read_rows(pipeline.table(WATERMARKS))
    assert sorted(row["run"] for row in rows) == [1, 2, 3, 4]


@pytest.mark.parametrize("restored", [0, 1, 2, 5, 6], ids=lambda runs: f"to {runs} runs")
def test_watermarks_restored_alone_are_made_from_the_ledger_again(
    pipeline: Pipeline, tmp_path: Path, restored: int
) -> None:
    """The table was restored to so many runs when the ledger had four."""
    home, kept = pipeline.table(WATERMARKS).local, tmp_path / "kept"
    for run in range(1, 7):
        if run == 5:
            shutil.copytree(pipeline.table(LEDGER).local, tmp_path / "ledger")
        record_run(pipeline, run)
        if run == restored:
            shutil.copytree(home, kept)
    shutil.rmtree(home)
    if restored:
        shutil.copytree(kept, home)
    shutil.rmtree(pipeline.table(LEDGER).local)
    shutil.copytree(tmp_path / "ledger", pipeline.table(LEDGER).local)
    record_run(pipeline, 5)
    rows = sorted(control.read_rows(pipeline.table(WATERMARKS)), key=lambda row: row["run"])
    found = [(row["run"], row["watermark"], row["max_event_time"]) for row in rows]
    assert found == [(run, run, run) for run in range(1, 6)]


def read_by_spark(spark: SparkSession, pipeline: Pipeline) -> list[list[object]]:
    """Some columns of the ledger, in order."""
    columns = ("seq", "step", "run", "unix_micros(arrival)", "versions")
    rows = delta.read(spark, pipeline.table(LEDGER)).selectExpr(*columns)
    return [[*row] for row in rows.orderBy("seq").collect()]


def test_spark_and_this_process_read_what_the_other_has_compacted(
    pipeline: Pipeline, spark: SparkSession
) -> None:
    """Spark reads files and log checkpoints of delta-rs, and writes times as INT96."""
    for run in range(1, 4):
        record_run(pipeline, run)
    written = read_history(pipeline)
    expected = [[e.seq, e.step, e.run, e.arrival, dict(e.versions)] for e in written.entries]
    compact_now(pipeline)
    log = pipeline.table(LEDGER).local / "_delta_log"
    newest = control.read_version(Location(str(log.parent)))
    for version in range(newest):
        (log / f"{version:020}.json").unlink()
    assert read_by_spark(spark, pipeline) == expected
    record_run(pipeline, 4)
    longer = read_history(pipeline)
    spark.sql(f"optimize delta.`{pipeline.table(LEDGER)}`")
    assert count_files(pipeline, LEDGER) == 1
    assert read_history(pipeline) == longer
    record_run(pipeline, 5)
    longest = read_history(pipeline)
    compact_now(pipeline)
    assert read_history(pipeline) == longest
    assert len(read_by_spark(spark, pipeline)) == 20
