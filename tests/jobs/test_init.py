"""A new pipeline's folder: what `init` writes runs as it is, on files of each format."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from expectations.places import check_suite
from jobs.ingest import ingest
from jobs.init import Project, Sample, check_free, propose_project, sample_file, write_project
from jobs.run import run
from jobs.transcripts import play_transcripts
from windowing.errors import UsageError
from windowing.ingest import example
from windowing.spec.load import load_pipeline
from windowing.transcripts.load import load_plays

LINES = [f"{n};{'ab'[n % 2]};2026-03-02 10:{n % 60:02}:00;1.{n % 1000:03},50" for n in range(7000)]
EURO = "id;shop;when;Total €\n" + "\n".join(LINES) + "\n"


def play(spark: SparkSession, project: Project, folder: Path) -> None:
    """The folder runs as it is written: files taken, a run, its suite, its transcript."""
    pipeline = load_pipeline(folder / f"{project.name}.yaml")
    check_suite(pipeline)
    taken = ingest(spark, pipeline)
    assert taken.read >= project.read
    assert taken.columns is None
    report = run(spark, pipeline)
    assert report.read == taken.appended
    assert report.accepted > 0
    verdicts = list(play_transcripts(spark, load_plays((str(folder / "transcripts"),))))
    assert [verdict.agrees for verdict in verdicts] == [True]


def test_the_folder_of_the_example_runs(spark: SparkSession, tmp_path: Path) -> None:
    content = example.CONTENT.encode()
    project = propose_project(spark, "shop", Sample(example.NAME, content, {}))
    assert (project.read, project.report.accepted, project.windows.total) == (9, 8, 8)
    folder = tmp_path / "shop"
    write_project(project, folder, content, example.NAME)
    assert not (folder / "lake").exists()
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
    write_project(project, tmp_path / "things", file, name)
    play(spark, project, tmp_path / "things")


def test_a_folder_with_something_in_it_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("kept")
    with pytest.raises(UsageError, match="is not empty"):
        check_free(tmp_path)
    check_free(tmp_path / "new")
    (tmp_path / "table.xlsx").write_bytes(b"PK")
    with pytest.raises(UsageError, match="ends in none of"):
        sample_file(tmp_path / "table.xlsx")
