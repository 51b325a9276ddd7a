"""A table of the pipeline that lost a file, or whose log was truncated.

Every command that reads it is refused as a run is, and a diagnosis reports it as a finding.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from jobs.foreign_errors.control_errors import control_errors_explained
from jobs.read import read
from jobs.run import run
from tests.oracle import Event, Tumbling
from tests.support.command_line import run_command
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.pipeline_under_test import FEW, Lab
from windowing.errors import StateRefused
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.storage import control

RUNS = pa.schema([("run", pa.int64())])
DAMAGED = "is damaged or has lost files; restore it, then run again, or `tidemark reset "
COMMANDS = (
    ["run"],
    ["publish"],
    ["show", "hourly"],
    ["explain"],
    ["late", "--as-of", "1"],
    ["state", "--window", "hourly", "--as-of", "1"],
    ["backfill", "--from", "2020-01-01", "--to", "2020-01-02", "--dry-run"],
    ["report"],
    ["recover"],
)


@pytest.fixture(scope="module")
def lab(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A pipeline after one run of two events in one window; `whole` is a copy of its directory."""
    root = tmp_path_factory.mktemp("damaged")
    found = Lab(spark, root, (Tumbling("hourly", 60 * MINUTE),), shows=FEW)
    (found.root / "lab.yaml").write_text(json.dumps(found.spec()))
    found.pipeline = load_pipeline(found.root / "lab.yaml")
    found.run([Event("a", BASE + n * MINUTE, 1, str(n)) for n in range(2)])
    shutil.copytree(found.root / "lake" / "lab", found.root / "whole")
    return found


def table_of(lab: Lab, name: str) -> Path:
    """The directory of a table."""
    return lab.root / "lake" / "lab" / name


def restore(lab: Lab, name: str) -> None:
    """The table is what it was after the run."""
    shutil.rmtree(table_of(lab, name))
    shutil.copytree(lab.root / "whole" / name, table_of(lab, name))


def lose_file(table: Path) -> None:
    """A data file is deleted."""
    next(table.glob("*.parquet")).unlink()


def truncate_log(table: Path) -> None:
    """Half of the newest commit is missing."""
    newest = max((table / "_delta_log").glob("*.json"))
    newest.write_text(newest.read_text()[: newest.stat().st_size // 2])


@pytest.mark.parametrize("damage", [lose_file, truncate_log])
def test_every_command_that_reads_a_damaged_ledger_is_refused_as_a_run_is(
    damage: Callable[[Path], None], lab: Lab
) -> None:
    damage(table_of(lab, "_ledger"))
    sentence = f"TABLE_CHANGED: {table_of(lab, '_ledger')} {DAMAGED}{lab.root / 'lab.yaml'}`"
    try:
        for name, *words in COMMANDS:
            result = run_command(lab, name, *words)
            assert result.exit_code == 4, (name, result.output)
            assert result.stderr.startswith(f"tidemark: {sentence}"), (name, result.stderr)
        for published in (False, True):
            with pytest.raises(StateRefused) as refused:
                read(lab.spark, lab.pipeline, "hourly", published)
            assert str(refused.value).startswith(sentence)
    finally:
        restore(lab, "_ledger")


def findings(lab: Lab) -> list[tuple[str, str]]:
    """Code and text of what the doctor finds; it exits with 4 where that is anything."""
    result = run_command(lab, "doctor", "--json")
    assert result.stdout, result.output
    found = json.loads(result.stdout)["findings"]
    assert result.exit_code == (4 if found else 0)
    return [(each["code"], each["found"]) for each in found]


def test_a_damaged_ledger_is_a_finding(lab: Lab) -> None:
    assert findings(lab) == []
    lose_file(table_of(lab, "_ledger"))
    try:
        [(code, found)] = findings(lab)
    finally:
        restore(lab, "_ledger")
    assert code == "TABLE_CHANGED"
    assert found.startswith(f"{table_of(lab, '_ledger')} {DAMAGED}{lab.root / 'lab.yaml'}`")


def test_every_table_with_a_damaged_log_is_a_finding(lab: Lab) -> None:
    names = ("_seen", "hourly")
    for name in names:
        truncate_log(table_of(lab, name))
    try:
        found = findings(lab)
        with pytest.raises(StateRefused) as refused:
            run(lab.spark, lab.pipeline)
        recovery = run_command(lab, "recover")
    finally:
        for name in names:
            restore(lab, name)
    assert [code for code, _ in found] == ["TABLE_CHANGED", "TABLE_CHANGED"]
    texts = sorted(text for _, text in found)
    for name, text in zip(names, texts, strict=True):
        assert text.startswith(f"{table_of(lab, name)} {DAMAGED}{lab.root / 'lab.yaml'}`")
    assert refused.value.code == "TABLE_CHANGED" and refused.value.message in texts
    assert recovery.exit_code == 4 and "TABLE_CHANGED" in recovery.stderr


@pytest.mark.parametrize(
    "folder",
    [
        "star_schema",
        "append-only",
        "failed validation check",
        "Cast error",
        "100 % is not supported",
    ],
)
@pytest.mark.parametrize("lost", ["a file", "a commit"])
def test_the_path_of_the_lake_does_not_decide_what_is_wrong_with_a_table(
    lost: str, folder: str, tmp_path: Path
) -> None:
    lake = tmp_path / folder
    lake.mkdir()
    # Where a symlink names the lake, the library names the directory itself.
    (tmp_path / "link").symlink_to(lake)
    pipeline = load_pipeline(
        {
            "name": "trips",
            "lake": str(tmp_path / "link"),
            "source": {"table": str(lake / "source"), "event_time": "at", "key": ["place"]},
            "watermark": {"delay": "0 seconds"},
            "aggregates": {"n": "count()"},
            "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
        }
    )
    for root in (lake, tmp_path / "link"):
        path = root / "trips" / "_ledger"
        control.append_rows(Location(str(path)), RUNS, [{"run": 1}], -1)
        if lost == "a file":
            next(path.glob("*.parquet")).unlink()
        else:
            control.append_rows(Location(str(path)), RUNS, [{"run": 2}], 1)
            (path / "_delta_log" / f"{1:020}.json").unlink()
        with pytest.raises(StateRefused) as refused, control_errors_explained(pipeline):
            control.read_rows(Location(str(path)))
        assert f"{path} is damaged or has lost files" in str(refused.value)
        shutil.rmtree(path)
