"""What `init` says of files with broken records, with nested fields and without any record."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from jobs.ingest import ingest
from jobs.init import propose_project, write_project
from jobs.init_sample import FileSample, sample_file
from jobs.run import run
from windowing.errors import UsageError
from windowing.spec.load import load_pipeline

AT = datetime(2026, 3, 27, 22, tzinfo=UTC)


@pytest.mark.slow
def test_broken_times_and_amounts_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    times = [f"{AT + timedelta(minutes=n):%d.%m.%Y %H:%M}" for n in range(299)]
    lines = [f"{n};{'ab'[n % 2]};{at};{n},50" for n, at in enumerate(times)]
    lines[50] = lines[50].replace(",50", ",abc")
    lines[60] = "60;a;nonsense;60,50"
    lines.append(lines[-1])
    file = tmp_path / "bestellungen.csv"
    file.write_text("Nr;Filiale;Zeit;Betrag €\n" + "\n".join(lines) + "\n")
    sample = sample_file(file)
    project = propose_project(spark, "orders", sample)
    proposal = project.proposal
    assert (project.read, project.quarantined, project.report.accepted) == (300, 2, 297)
    assert proposal.event_time.why == "a time in 298 of 299 records"
    assert proposal.delay.why == "all 298 events come in order of time"
    assert proposal.event_id is not None
    assert proposal.event_id.why.startswith("1 record has one that came before")
    assert {part.value: part.why for part in proposal.aggregates.values()} == {
        "count()": "rows of each window",
        "sum(Betrag)": "its name is that of an amount, which adds up; in 298 of 299 records it is "
        "a number",
    }
    folder = tmp_path / "orders"
    write_project(project, folder, sample)
    pinned = yaml.safe_load((folder / "columns" / "orders.yaml").read_text())["columns"]
    assert pinned["Betrag"] == {"type": "decimal(18,2)", "from": "Betrag €"}
    pipeline = load_pipeline(folder / "orders.yaml")
    taken = ingest(spark, pipeline)
    assert (taken.read, taken.quarantined) == (300, 2)


@pytest.mark.slow
def test_a_folder_of_nested_readings_runs(spark: SparkSession, tmp_path: Path) -> None:
    readings = [
        {
            "id": n,
            "ts": f"{AT + timedelta(minutes=n):%Y-%m-%dT%H:%M:%SZ}",
            "stop": n % 2 == 0,
            "device": {"id": f"d{n % 3}"},
            "reading": {"temp": n / 8},
        }
        for n in range(100)
    ]
    file = tmp_path / "readings.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in readings))
    sample = sample_file(file)
    project = propose_project(spark, "readings", sample)
    assert project.proposal.key.value == "[device_id]"
    assert project.proposal.aggregates["avg_temp"].value == "avg(reading.temp)"
    folder = tmp_path / "readings"
    write_project(project, folder, sample)
    pipeline = load_pipeline(folder / "readings.yaml")
    assert ingest(spark, pipeline).appended == 100
    assert run(spark, pipeline).accepted == 100


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("e.jsonl", "no JSON\n", "no record of e.jsonl shows which columns there are; check that"),
        ("e.csv", "a,b\n1\n", "no record of e.csv can be read as a row; check that it is what"),
        ("e.csv", "a,b\n1,2\n", "no column of e.csv has times, which events need; add one"),
        ("e.csv", "at,run\n2026-03-02T10:00:00Z,a\n2026-03-02T10:00:00Z,a\n", "from e.csv no spec"),
    ],
)
def test_no_message_names_the_folder_in_which_it_is_played(
    name: str, content: str, says: str, spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_text(content)
    with pytest.raises(UsageError) as refused:
        propose_project(spark, "things", sample_file(file))
    assert str(refused.value).startswith(says)
    assert "tidemark-init-" not in str(refused.value)


def test_a_path_in_the_folder_is_told_as_one_of_it(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object, home: Path, *__: object) -> None:
        raise UsageError(f"{home}/drop/e.csv and {home}/lake are wrong in {home}")

    monkeypatch.setattr("jobs.init._draft_from_file", refuse)
    with pytest.raises(UsageError, match=r"^e\.csv and lake are wrong in the folder$"):
        propose_project(spark, "things", FileSample("e.csv", b"", {}))
