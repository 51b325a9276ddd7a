"""`tidemark ingest` as a command: what it says, without a JVM where there is nothing to take."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from jobs.cli.main import main
from tests.support.drop_folder import DropFolder
from windowing.location import Location
from windowing.storage.store import store_of

CANARY = "canary-4711"


def command(drop: DropFolder, *words: str) -> Result:
    spec = drop.root / "trips.yaml"
    spec.write_text(json.dumps(drop.spec))
    return CliRunner().invoke(main, ["ingest", str(spec), *words], prog_name="tidemark")


@pytest.fixture
def no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts a session here fails."""

    def refuse(_: object) -> None:
        pytest.fail("a session was started")

    monkeypatch.setattr("jobs.cli.ingest.start_session", refuse)


@pytest.mark.usefixtures("no_jvm")
def test_an_empty_folder_needs_no_jvm(tmp_path: Path) -> None:
    drop = DropFolder(tmp_path)
    (drop.folder / "read me.md").write_text("hello")
    said = command(drop)
    assert said.exit_code == 0
    assert said.output == (
        f"trips: nothing new in {drop.folder}\n"
        "passed over, because their names do not end in .csv .tsv .txt: read me.md\n"
    )
    assert not (tmp_path / "bronze").exists()


@pytest.mark.usefixtures("no_jvm")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"folder": "missing"},
            "{root}/trips.yaml: source.files.folder: {root}/missing is no directory; make it",
        ),
        (None, "the spec has no source.files; write there in which folder files land"),
    ],
)
def test_what_is_missing_is_one_sentence(
    change: dict[str, Any] | None, says: str, tmp_path: Path
) -> None:
    drop = DropFolder(tmp_path)
    spec = drop.spec
    if change is None:
        del spec["source"]["files"]
    else:
        spec["source"]["files"] |= change
    file = tmp_path / "trips.yaml"
    file.write_text(json.dumps(spec))
    said = CliRunner().invoke(main, ["ingest", str(file)], prog_name="tidemark")
    assert said.exit_code == 2
    assert says.format(root=tmp_path) in said.stderr
    assert len(said.stderr.splitlines()) == 1


@pytest.mark.usefixtures("no_jvm")
def test_a_folder_on_hdfs_has_to_be_there(hdfs_home: Location, tmp_path: Path) -> None:
    store, folder = store_of(hdfs_home), hdfs_home / "drop"
    drop = DropFolder(tmp_path, {"folder": folder.text})
    missing = (
        f"tidemark: {tmp_path}/trips.yaml: source.files.folder: {folder} is no directory; make it\n"
    )
    assert command(drop).stderr == missing
    store.write(folder, b"a file")
    said = command(drop)
    assert (said.stderr, said.exit_code) == (missing, 2)
    store.delete(folder)
    store.write(folder / "read me.md", b"hello")
    assert "nothing new in" in command(drop).output


def test_figures_are_told_and_values_are_not(spark: SparkSession, tmp_path: Path) -> None:
    drop = DropFolder(tmp_path)
    drop.pin(id="bigint", place="string")
    drop.land("1.csv", f"id,place\n1,{CANARY}\n{CANARY},2\n")
    said = command(drop, "--json")
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["quarantined"] == 1
    table = drop.pipeline.source.table
    assert said.stderr.splitlines() == [
        f"trips: 1 file, 2 records read, 1 row appended to {table}",
        f"1 record quarantined in {table}/_ingest/quarantine",
    ]
    (drop.folder / "1.csv").write_text(f"{CANARY}\n")
    changed = command(drop)
    assert changed.exit_code == 4
    assert "FILE_CHANGED: 1.csv" in changed.stderr
    assert f"run `tidemark ingest {tmp_path}/trips.yaml --keep-taken`" in changed.stderr
    assert command(drop, "--keep-taken").output == "trips: 1.csv counts as taken\n"
    assert CANARY not in said.output + changed.output


def test_a_wrong_type_is_told_by_the_file_that_pins_it(spark: SparkSession, tmp_path: Path) -> None:
    drop = DropFolder(tmp_path)
    drop.pin(id="number")
    drop.land("1.csv", "id\n1\n")
    said = command(drop)
    assert said.exit_code == 2
    assert f"{drop.pinned}: columns.id: 'number' is no type of Spark" in said.stderr
    drop.pin(id="bigint")
    assert command(drop).exit_code == 0
    drop.pin(id="double")
    drop.land("2.csv", "id\n2\n")
    said = command(drop)
    assert said.exit_code == 2
    assert "columns.id: is double here, and id bigint in" in said.stderr


@pytest.mark.usefixtures("no_jvm")
def test_a_wrong_type_is_told_where_nothing_has_landed(tmp_path: Path) -> None:
    drop = DropFolder(tmp_path)
    drop.pin(id="bigit")
    assert drop.folder.is_dir()
    said = command(drop)
    assert said.exit_code == 2
    assert f"{drop.pinned}: columns.id: 'bigit' is no type of Spark; use string" in said.stderr


def test_each_column_that_is_not_pinned_is_named_once(spark: SparkSession, tmp_path: Path) -> None:
    drop = DropFolder(tmp_path)
    drop.pin(id="bigint")
    drop.land("1.csv", f"id,Kanal,Ort,empty\n1,{CANARY},a,\n2,b,c,\n")
    drop.land("2.csv", "id,Kanal\n3,d\n")
    said = command(drop, "--json")
    assert json.loads(said.stdout)["not_pinned"] == ["Kanal", "Ort"]
    assert said.stderr.splitlines()[-2:] == [
        "column Kanal is not pinned; its values are in rescued",
        "column Ort is not pinned; its values are in rescued",
    ]
    assert CANARY not in said.output
