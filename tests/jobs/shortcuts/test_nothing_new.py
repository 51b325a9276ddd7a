"""Whether a run would find nothing to do: what is seen without Spark, and what is left to a run.

Each test of a pipeline asks this question before each run, too (`Lab.go`), and compares.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import jobs.session
from jobs.cli.main import main
from jobs.shortcuts.nothing_new import find_nothing_new
from tests.oracle import Event, Tumbling
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, ends_at
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab
from windowing.grid.zone import moment
from windowing.report.rule import RunReport
from windowing.spec.load import load_pipeline

HOUR = 60 * MINUTE
HOURLY = Tumbling("hourly", size=HOUR)


def event(name: str, minute: int) -> Event:
    """An event of value 1, so many minutes after the beginning."""
    return Event("a", BASE + minute * MINUTE, 1, name)


@pytest.fixture(scope="module")
def read(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A pipeline that has read everything there is."""
    lab = Lab(spark, tmp_path_factory.mktemp("read"), (HOURLY,), shows=FEW)
    lab.run([event("first", 1)])
    lab.run([event("second", 2)])
    (lab.root / "lab.yaml").write_text(json.dumps(lab.spec()))
    return lab


def looked(lab: Lab, arrival: int = ARRIVAL) -> RunReport | None:
    """What is seen without Spark."""
    return find_nothing_new(lab.pipeline, arrival)


@pytest.mark.slow
def test_everything_read_is_seen(read: Lab) -> None:
    report = looked(read)
    assert report is not None
    assert (report.run, report.read) == (None, 0)
    assert report.watermark == moment(BASE + 2 * MINUTE)
    assert set(report.windows) == {"hourly"}
    assert report == read.go()


def test_the_command_ends_without_a_jvm(read: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**conf: str) -> None:
        raise AssertionError("a JVM was started")

    monkeypatch.setattr(jobs.session, "spark_session", refuse)
    spec = str(read.root / "lab.yaml")
    result = CliRunner().invoke(main, ["run", spec, "--json"], prog_name="tidemark")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout.splitlines()[-1])["run"] is None
    assert "lab: nothing new; watermark" in result.stderr


def test_the_process_of_the_command_imports_no_spark(read: Lab) -> None:
    command = (
        "import atexit, sys; from jobs.__main__ import main; "
        "atexit.register(lambda: print('pyspark' in sys.modules)); "
        f"sys.argv = ['tidemark', 'run', {str(read.root / 'lab.yaml')!r}]; main()"
    )
    done = subprocess.run([sys.executable, "-c", command], check=True, capture_output=True)
    said = done.stdout.decode().splitlines()
    assert "nothing new" in said[0]
    assert said[-1] == "False"


def test_another_spec_is_left_to_a_run(read: Lab) -> None:
    for changed in (
        {"watermark": {**read.spec()["watermark"], "delay": "1 minute"}},
        {"windows": {**read.spec()["windows"], "daily": {"kind": "tumbling", "size": "1 day"}}},
        {"source": {**read.spec()["source"], "changes": "feed"}},
    ):
        pipeline = load_pipeline({**read.spec(), **changed})
        assert find_nothing_new(pipeline, ARRIVAL) is None, changed


def test_a_table_of_the_catalog_is_left_to_a_run(read: Lab) -> None:
    spec = {**read.spec(), "source": {**read.spec()["source"], "table": "db.events"}}
    assert find_nothing_new(load_pipeline(spec), ARRIVAL) is None


def test_before_the_first_run_nothing_is_known(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, (HOURLY,), shows=FEW)
    assert looked(lab) is None
    lab.land([event("first", 1)])
    assert looked(lab) is None


def change_nothing(lab: Lab) -> None:
    """A commit without another row."""
    lab.spark.sql(f"alter table delta.`{lab.root / 'source'}` set tblproperties ('k' = 'v')")


def delete_output(lab: Lab) -> None:
    """A version of an output that no run has made."""
    lab.spark.sql(f"delete from delta.`{lab.pipeline.table('hourly')}`")


def lose_ledger(lab: Lab) -> None:
    """Nothing is known of any run."""
    path = lab.pipeline.table("_ledger").local
    path.rename(path.with_name("moved"))


def damage_ledger(lab: Lab) -> None:
    """One of its files is gone."""
    file = min(lab.pipeline.table("_ledger").local.glob("*.parquet"))
    file.unlink()


def make_source_anew(lab: Lab) -> None:
    """Another table with as many versions."""
    path = lab.root / "source"
    path.rename(lab.root / "old")
    for name in ("first", "second"):
        lab.land([event(name, 1)])


def land_late(lab: Lab) -> None:
    """A row that no run has read."""
    lab.land([event("third", 3)])


@pytest.mark.parametrize(
    "change",
    [
        land_late,
        change_nothing,
        delete_output,
        lose_ledger,
        damage_ledger,
        make_source_anew,
    ],
)
def test_whatever_is_not_as_the_last_run_left_it_is_left_to_a_run(
    spark: SparkSession, tmp_path: Path, read: Lab, change: Any
) -> None:
    shutil.copytree(read.root, tmp_path, dirs_exist_ok=True)
    lab = Lab(spark, tmp_path, (HOURLY,), shows=FEW)
    assert looked(lab) is not None
    change(lab)
    assert looked(lab) is None


def test_a_run_that_was_interrupted_is_left_to_a_run(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, (HOURLY,), shows=FEW)
    lab.land([event("first", 1)])
    ends_at(Crasher("run.marked"), lab.go)
    assert looked(lab) is None
    lab.go()
    assert looked(lab) is not None


def test_a_quiet_source_moves_the_watermark_once_it_is_idle(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, (HOURLY,), shows=FEW, idle_after=10 * MINUTE)
    near = BASE + 5 * MINUTE
    lab.run([event("first", 1)], near)
    assert looked(lab, near + 10 * MINUTE - 1) is not None
    assert looked(lab, near + 10 * MINUTE) is None
