"""How much a run has to read, and with which settings its session then starts."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from jobs.cli.main import main
from jobs.sessions.profiles import SHORT, TINY
from jobs.shortcuts import run_size
from jobs.shortcuts.run_size import RunSize, estimate_next_run, stores_little
from tests.oracle import Event, Tumbling
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, ends_at
from tests.support.pipeline_under_test import FEW, Lab
from tests.support.refused_session import refuse_sessions
from tests.support.session_settings import setting_changed
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


@pytest.mark.slow
def test_new_rows_are_counted(lab: Lab) -> None:
    size = estimate_next_run(lab.pipeline)
    assert size is not None
    assert size.new_rows == 3
    assert 1_000 < size.stored_bytes < 1_000_000


@pytest.mark.parametrize(
    ("size", "classes"),
    [
        (RunSize(20_000, 4_000_000), ["short", "small", "tiny"]),
        (RunSize(20_001, 0), ["short"]),
        (RunSize(0, 4_000_001), ["short", "small"]),
        (RunSize(20_000, 64_000_000), ["short", "small"]),
        (RunSize(20_000, 64_000_001), ["short"]),
        (RunSize(500_000, 256_000_000), ["short"]),
        (RunSize(500_001, 0), []),
        (RunSize(0, 256_000_001), []),
    ],
)
def test_limits_are_inside(size: RunSize, classes: list[str]) -> None:
    found = {"short": size.is_short, "small": size.is_small, "tiny": size.is_tiny}
    assert [name for name, is_in_it in found.items() if is_in_it] == classes


def test_another_spec_may_rebuild_everything(lab: Lab) -> None:
    windows = {**lab.spec()["windows"], "daily": {"kind": "tumbling", "size": "1 day"}}
    assert estimate_next_run(load_pipeline({**lab.spec(), "windows": windows})) is None


def test_a_table_of_the_catalog_is_not_known(lab: Lab) -> None:
    source = {**lab.spec()["source"], "table": "db.events"}
    assert estimate_next_run(load_pipeline({**lab.spec(), "source": source})) is None


def test_a_first_run_reads_the_whole_source(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, (HOURLY,), shows=FEW)
    lab.land([event("first", 1)])
    lab.land([event("second", 2), event("third", 3)])
    assert estimate_next_run(lab.pipeline) == RunSize(new_rows=3, stored_bytes=0)


def test_a_long_log_is_read_as_far_as_it_matters(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_size, "MANY_ROWS", 1)
    size = estimate_next_run(lab.pipeline)
    assert size is not None
    # The commit of two rows is the first one that is new.
    assert size.new_rows == 2
    assert not size.is_short


def land_without_statistics(lab: Lab) -> None:
    """A commit that does not record how many rows it added."""
    with setting_changed(lab.spark, "spark.databricks.delta.stats.collect", "false"):
        lab.land_by_spark([event("fifth", 5)])


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


def damage_commit(lab: Lab) -> None:
    """A commit of the source that is no JSON any more."""
    (lab.root / "source" / "_delta_log" / f"{2:020}.json").write_text("{not json")


def damage_output(lab: Lab) -> None:
    """An output whose log only tells that something is wrong."""
    for commit in (lab.root / "lake" / "lab" / "hourly" / "_delta_log").glob("*.json"):
        commit.write_text("{not json")


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(land_without_statistics, marks=pytest.mark.deep),
        pytest.param(rewrite, marks=pytest.mark.deep),
        lose_commit,
        interrupt,
        damage_commit,
        damage_output,
    ],
)
def test_whatever_is_in_doubt_takes_the_usual_session(
    spark: SparkSession, tmp_path: Path, change: Callable[[Lab], None]
) -> None:
    lab = make_lab(spark, tmp_path)
    assert estimate_next_run(lab.pipeline) is not None
    change(lab)
    assert estimate_next_run(lab.pipeline) is None


@pytest.mark.parametrize(
    ("size", "settings"),
    [
        (RunSize(1, 0), TINY),
        (RunSize(1, 4_000_001), SHORT),
        (RunSize(500_000, 0), SHORT),
        (RunSize(500_001, 0), {}),
        (None, {}),
    ],
)
def test_the_command_starts_as_it_will_be_used(
    lab: Lab,
    size: RunSize | None,
    settings: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = refuse_sessions(monkeypatch)
    monkeypatch.setattr(run_size, "estimate_next_run", lambda pipeline: size)
    CliRunner().invoke(main, ["run", str(lab.root / "lab.yaml")], prog_name="tidemark")
    assert asked == [settings]


@pytest.mark.parametrize(
    "words",
    ["show SPEC hourly", "validate SPEC --again", "maintain SPEC", "erase SPEC --key a --yes"],
)
@pytest.mark.parametrize(("limit", "settings"), [(1_000_000, SHORT), (1, {})])
def test_a_command_that_reads_tables_starts_as_they_are_large(
    lab: Lab,
    words: str,
    limit: int,
    settings: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = refuse_sessions(monkeypatch)
    monkeypatch.setattr(run_size, "MANY_BYTES", limit)
    spec = str(lab.root / "lab.yaml")
    line = [spec if word == "SPEC" else word for word in words.split()]
    CliRunner().invoke(main, line, prog_name="tidemark")
    assert asked == [settings]


def test_tables_whose_logs_cannot_be_read_are_not_known_to_be_small(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = make_lab(spark, tmp_path)
    assert stores_little(lab.pipeline)
    damage_output(lab)
    assert not stores_little(lab.pipeline)
