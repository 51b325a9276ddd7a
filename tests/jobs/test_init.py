"""A new pipeline's folder: what `init` writes runs as it is, on files of each format."""

import gzip
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from expectations.places import check_suite
from jobs.ingest import ingest
from jobs.init import Project, check_free, propose_project, write_project
from jobs.init_sample import FileSample, TableSample, find_sample, sample_file
from jobs.run import run
from jobs.transcripts import play_transcripts
from tests.support.managed_table import become_managed
from windowing.errors import SpecError, UsageError
from windowing.ingest import example
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.storage import delta, delta_log
from windowing.transcripts.load import load_plays

LINES = [f"{n};{'ab'[n % 2]};2026-03-02 10:{n % 60:02}:00;1.{n % 1000:03},50" for n in range(7000)]
EURO = "id;shop;when;Total €\n" + "\n".join(LINES) + "\n"


def play(spark: SparkSession, project: Project, folder: Path) -> None:
    """The folder runs as it is written: files taken, a run, its suite, its transcript if any."""
    pipeline = load_pipeline(folder / f"{project.name}.yaml")
    check_suite(pipeline)
    taken = ingest(spark, pipeline)
    assert taken.read >= project.read
    assert taken.columns is None
    report = run(spark, pipeline)
    assert report.read == taken.appended
    assert report.accepted > 0
    if (folder / "transcripts").exists():
        play_transcript(spark, folder)


def play_transcript(spark: SparkSession, folder: Path) -> None:
    """The transcript that comes along agrees."""
    verdicts = list(play_transcripts(spark, load_plays((str(folder / "transcripts"),))))
    assert [verdict.agrees for verdict in verdicts] == [True]


@pytest.mark.slow
def test_the_folder_of_the_example_runs(spark: SparkSession, tmp_path: Path) -> None:
    content = example.CONTENT.encode()
    sample = FileSample(example.NAME, content, {})
    project = propose_project(spark, "shop", sample)
    # One order is there twice; each shop has orders in two hours.
    assert (project.read, project.report.accepted, project.windows.total) == (9, 8, 4)
    folder = tmp_path / "shop"
    write_project(project, folder, sample)
    assert not (folder / "lake").exists()
    assert (folder / "transcripts").exists()
    play(spark, project, folder)


@pytest.mark.deep
@pytest.mark.parametrize("name", ["euro.csv.gz", "nested.jsonl", "local.parquet"])
def test_the_folder_of_any_file_runs(name: str, spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / name
    if name == "euro.csv.gz":
        file.write_bytes(gzip.compress(EURO.encode("windows-1252")))
    elif name == "nested.jsonl":
        records = [
            {
                "ts": 1_772_445_900_000 + n,
                "sensor": f"s{n % 3}",
                "payload": {"v": n},
                "value": n / 8,
            }
            for n in range(100)
        ]
        file.write_text("\n".join(map(json.dumps, records)))
    else:
        at = pa.array([1_772_445_900_000_000 + n for n in range(50)], pa.timestamp("us"))
        pq.write_table(pa.table({"at": at, "place": ["x"] * 50, "speed": [1.5] * 50}), file)
    sample = sample_file(file)
    project = propose_project(spark, "things", sample)
    assert project.quarantined == 0
    assert project.read == min(5000, {"e": 7000, "n": 100, "l": 50}[name[0]])
    write_project(project, tmp_path / "things", sample)
    # Transcripts have no structs.
    assert (tmp_path / "things" / "transcripts").exists() == (name != "nested.jsonl")
    play(spark, project, tmp_path / "things")


COLUMNS = "shop string, at timestamp, paid decimal(9,2), `what is it` string"
MINUTES = [[0, 5, 9, 14], [20, 12, 31, 29], [40, 33, 51, 70]]
"""Of each commit, at which minute its events have happened; 12 comes 2 minutes after 14."""


def land(spark: SparkSession, table: Location, commits: Sequence[Sequence[int]]) -> None:
    """Sales of two shops; names of columns are mapped, because one of them has spaces."""
    columns = delta.parse_columns(COLUMNS)
    delta.create(spark, table, columns, delta.properties(columns))
    for minutes in commits:
        values = [
            {
                "shop": "ab"[n % 2],
                "at": datetime(2026, 3, 2, 10, tzinfo=UTC) + timedelta(minutes=n),
                "paid": Decimal(n),
                "what is it": "sale",
            }
            for n in minutes
        ]
        delta.append(delta.rows(spark, values, COLUMNS), table)


def test_a_pipeline_is_proposed_from_a_table_and_its_history(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = Location(str(tmp_path / "all sales"))
    land(spark, table, MINUTES)
    sample = find_sample(table.text)
    assert sample == TableSample(table)
    project = propose_project(spark, "sales", sample)
    assert (project.read, project.report.accepted, project.quarantined) == (12, 12, 0)
    # A window of 10 minutes has closed when an event lies so far behind its end: 12 and 33 come
    # after 14 and 40, and 29 after 31, so that each of them misses nothing by 10 minutes.
    assert project.proposal.event_time.value == "at"
    assert project.proposal.key.value == "[shop]"
    assert {*project.proposal.aggregates} == {"events", "sum_paid"}
    assert "8 of 8 events would have come" in project.proposal.delay.why
    folder = tmp_path / "sales"
    write_project(project, folder, sample)
    assert sorted(path.name for path in folder.iterdir()) == [
        *(".gitignore", "README.md", "dags", "expectations", "sales.yaml", "tidemark.toml"),
        "transcripts",
    ]
    pipeline = load_pipeline(folder / "sales.yaml")
    check_suite(pipeline)
    assert pipeline.source.table == table
    report = run(spark, pipeline)
    assert (report.read, report.accepted, report.late) == (12, 12, 0)
    play_transcript(spark, folder)


def test_of_a_table_of_one_commit_no_event_is_refused_as_late(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = Location(str(tmp_path / "sales"))
    land(spark, table, MINUTES[:1])
    proposal = propose_project(spark, "sales", find_sample(table.text)).proposal
    assert (proposal.delay.value, proposal.allowed_lateness.value) == ("0 seconds", "forever")
    assert "all events arrived at once" in proposal.delay.why


def test_nothing_is_proposed_from_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    table = Location(str(tmp_path / "sales"))
    land(spark, table, [])
    with pytest.raises(UsageError, match="has no rows from which a pipeline could be proposed"):
        propose_project(spark, "sales", find_sample(table.text))


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("at timestamp, value double", "is text or a whole number, so windows have no key"),
        ("`the time` timestamp, shop string", "has times, which events need \\(those whose names"),
        ("`the time` timestamp", "has a name that a spec has without quotes"),
        ("at timestamp, shop struct<`the name`: string>", "so windows have no key"),
    ],
)
def test_a_table_without_what_events_need_is_one_sentence(
    columns: str, says: str, spark: SparkSession, tmp_path: Path
) -> None:
    table = Location(str(tmp_path / "sales"))
    kinds = delta.parse_columns(columns)
    delta.create(spark, table, kinds, delta.properties(kinds))
    values = {"at": datetime(2026, 3, 2, tzinfo=UTC), "the time": datetime(2026, 3, 2, tzinfo=UTC)}
    row = {name: values.get(name) for name in kinds.names}
    delta.append(delta.rows(spark, [row], columns), table)
    with pytest.raises(UsageError, match=says):
        propose_project(spark, "sales", find_sample(table.text))


def test_a_table_that_no_pipeline_reads_is_named(spark: SparkSession, tmp_path: Path) -> None:
    table = Location(str(tmp_path / "sales"))
    delta.append(delta.rows(spark, [{"shop": "a"}], "shop string"), table)
    become_managed(table.local, "catalogManaged")
    delta_log.forget_all(spark)
    with pytest.raises(SpecError, match="^source.table: .*/sales is managed by a catalog"):
        propose_project(spark, "sales", find_sample(table.text))


def test_a_folder_with_something_in_it_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("kept")
    with pytest.raises(UsageError, match="is not empty"):
        check_free(tmp_path)
    check_free(tmp_path / "new")
    (tmp_path / "table.xlsx").write_bytes(b"PK")
    with pytest.raises(UsageError, match="ends in none of"):
        sample_file(tmp_path / "table.xlsx")
