"""Whether a run has little to do, and with which settings its session then starts."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import jobs.cli.spark
from jobs.cli.main import main
from jobs.preflight import little_new
from jobs.preflight.little_new import has_little_to_do
from jobs.session import LIGHT
from tests.oracle import Event, Tumbling
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, ends_at
from tests.support.pipeline_under_test import FEW, Lab
from windowing.errors import UsageError
from windowing.spec.load import load_pipeline

HOURLY = Tumbling("hourly", size=60 * MINUTE)


def event(name: str, minute: int) -> Event:
    """An event of value 1, so many minutes after the beginning."""
    return Event("a", BASE + minute * MINUTE, 1, name)


def make_lab(spark: SparkSession, root: Path) -> Lab:
    """One run, and three rows that are new in two commits."""
    lab = Lab(spark, root, (HOURLY,), shows=FEW)
    lab.run([event("first", 1)])
    lab.land([event("second", 2), event("third", 3)])
    lab.land([event("fourth", 4)])
    (root / "lab.yaml").write_text(json.dumps(lab.spec()))
    return lab


@pytest.fixture(scope="module")
def lab(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A pipeline whose next run has little to do."""
    return make_lab(spark, tmp_path_factory.mktemp("little"))


def test_new_rows_are_counted(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_little_to_do(lab.pipeline)
    monkeypatch.setattr(little_new, "_FEW_ROWS", 3)
    assert has_little_to_do(lab.pipeline)
    monkeypatch.setattr(little_new, "_FEW_ROWS", 2)
    assert not has_little_to_do(lab.pipeline)


def test_tables_are_measured(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(little_new, "_SMALL_BYTES", 1_000)
    assert not has_little_to_do(lab.pipeline)


def test_another_spec_may_rebuild_everything(lab: Lab) -> None:
    windows = {**lab.spec()["windows"], "daily": {"kind": "tumbling", "size": "1 day"}}
    assert not has_little_to_do(load_pipeline({**lab.spec(), "windows": windows}))


def test_a_table_of_the_catalog_is_not_known(lab: Lab) -> None:
    source = {**lab.spec()["source"], "table": "db.events"}
    assert not has_little_to_do(load_pipeline({**lab.spec(), "source": source}))


def test_before_the_first_run_nothing_is_known(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, (HOURLY,), shows=FEW)
    lab.land([event("first", 1)])
    assert not has_little_to_do(lab.pipeline)


def land_without_statistics(lab: Lab) -> None:
    """A commit that does not record how many rows it added."""
    lab.spark.conf.set("spark.databricks.delta.stats.collect", "false")
    try:
        lab.land([event("fifth", 5)])
    finally:
        lab.spark.conf.unset("spark.databricks.delta.stats.collect")


def rewrite(lab: Lab) -> None:
    """A commit that removes a row, so that ranges are reprocessed or the run is refused."""
    lab.spark.sql(f"delete from delta.`{lab.root / 'source'}` where id = 'first'")


def lose_commit(lab: Lab) -> None:
    """A commit that was cleaned up."""
    (lab.root / "source" / "_delta_log" / f"{1:020}.json").unlink()


def interrupt(lab: Lab) -> None:
    """A run that was begun and not finished."""
    ends_at(Crasher("run.marked"), lab.go)
    lab.land([event("fifth", 5)])


@pytest.mark.parametrize("change", [land_without_statistics, rewrite, lose_commit, interrupt])
def test_whatever_is_in_doubt_takes_the_usual_session(
    spark: SparkSession, tmp_path: Path, change: Callable[[Lab], None]
) -> None:
    lab = make_lab(spark, tmp_path)
    assert has_little_to_do(lab.pipeline)
    change(lab)
    assert not has_little_to_do(lab.pipeline)


@pytest.mark.parametrize(("few", "settings"), [(3, LIGHT), (2, {})])
def test_the_command_starts_as_it_will_be_used(
    lab: Lab, few: int, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def refuse(**conf: str) -> None:
        asked.append(conf)
        raise UsageError("no session here")

    monkeypatch.setattr(jobs.cli.spark, "command_session", refuse)
    monkeypatch.setattr(little_new, "_FEW_ROWS", few)
    CliRunner().invoke(main, ["run", str(lab.root / "lab.yaml")], prog_name="tidemark")
    assert asked == [settings]
