"""A window that was added to the spec, before the run that fills it."""

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.publish import publish
from jobs.read import read
from jobs.validate import validate
from tests.oracle import Event, Tumbling
from tests.support.command_line import run_command
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.pipeline_under_test import FEW, Lab
from windowing.errors import StateRefused, UsageError
from windowing.spec.load import load_pipeline

NEW = "daily is new in the spec, and the next run fills it"


pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def lab(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A pipeline after one run that was published; then a window was added to its spec."""
    root = tmp_path_factory.mktemp("added")
    found = Lab(spark, root, (Tumbling("hourly", 60 * MINUTE),), shows=FEW)
    found.run([Event("a", BASE, 1, "first")])
    validate(spark, found.pipeline)
    publish(found.pipeline)
    spec = found.spec()
    spec["windows"]["daily"] = {"kind": "tumbling", "size": "1 day"}
    (root / "lab.yaml").write_text(json.dumps(spec))
    found.pipeline = load_pipeline(root / "lab.yaml")
    return found


@pytest.mark.parametrize("more", [[], ["--published"], ["--as-of", "1"]], ids=" ".join)
def test_show_reports_that_a_window_is_new(more: list[str], lab: Lab) -> None:
    result = run_command(lab, "show", "daily", *more)
    assert (result.exit_code, result.stdout) == (0, f"lab: no rows, because {NEW}\n")
    found = json.loads(run_command(lab, "show", "daily", *more, "--json").stdout)
    assert (found["version"], found["total"]) == (None, 0)


@pytest.mark.parametrize("published", [True, False])
def test_a_new_window_can_not_be_read_before_the_next_run(published: object, lab: Lab) -> None:
    with pytest.raises(UsageError) as refused:
        read(lab.spark, lab.pipeline, "daily", published=bool(published))
    assert str(refused.value) == f"lab: daily has no table, because {NEW}; `tidemark run` first"


def test_a_table_that_was_lost_is_not_taken_for_a_new_window(lab: Lab) -> None:
    table = lab.root / "lake" / "lab" / "hourly"
    table.rename(lab.root / "kept")
    try:
        shown = run_command(lab, "show", "hourly")
        with pytest.raises(StateRefused, match="TABLE_LOST: .*hourly does not exist any more"):
            read(lab.spark, lab.pipeline, "hourly", published=False)
    finally:
        shutil.move(lab.root / "kept", table)
    assert (shown.exit_code, shown.stdout) == (4, "")
    assert "TABLE_LOST" in shown.stderr and "hourly does not exist any more" in shown.stderr
    assert run_command(lab, "show", "hourly").exit_code == 0


def test_before_the_first_run_nothing_can_be_read(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, (Tumbling("hourly", 60 * MINUTE),), shows=FEW)
    lab.land([Event("a", BASE, 1, "first")])
    for published in (True, False):
        with pytest.raises(UsageError, match="hourly has no table, because there is no run yet"):
            read(spark, lab.pipeline, "hourly", published=published)
