"""Commands that read, on a pipeline whose spec was changed since its last run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.read import read
from jobs.run import run
from jobs.validate import validate
from tests.oracle import Event, Tumbling
from tests.support.command_line import run_command
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, ends_at
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab
from windowing.errors import StateRefused
from windowing.grid.zone import moment
from windowing.spec.load import load_pipeline

HOURLY = Tumbling("hourly", 60 * MINUTE)
DAILY = {"kind": "tumbling", "size": "1 day"}


def new_lab(spark: SparkSession, root: Path) -> Lab:
    """A pipeline with one window, which has not run."""
    return Lab(spark, root, (HOURLY,), shows=FEW)


def respecify(lab: Lab, spec: dict[str, Any]) -> None:
    """The pipeline has this spec from now on."""
    file = lab.root / "lab.yaml"
    file.write_text(json.dumps(spec))
    lab.pipeline = load_pipeline(file)


def with_daily(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with one window more."""
    return spec | {"windows": spec["windows"] | {"daily": DAILY}}


def events(*minutes: int) -> list[Event]:
    """An event of one key at each of these minutes."""
    return [Event("a", BASE + minute * MINUTE, 1, str(minute)) for minute in minutes]


def by_arrival(lab: Lab) -> None:
    """A window is added to a pipeline whose events have the time of their arrival."""
    spec = lab.spec()
    spec["source"]["event_time"] = "arrival"
    respecify(lab, spec)
    lab.land(events(1))
    lab.go()
    respecify(lab, with_daily(spec))


def of_removed(lab: Lab) -> None:
    """A window is added under the name of another one that was removed."""
    respecify(lab, with_daily(lab.spec()))
    lab.land(events(1))
    lab.go()
    respecify(lab, lab.spec())
    lab.go()
    spec = with_daily(lab.spec())
    spec["windows"]["daily"] = DAILY | {"size": "2 days"}
    respecify(lab, spec)


def in_open_run(lab: Lab) -> None:
    """A window is added while a run is open."""
    respecify(lab, lab.spec())
    lab.land(events(1))
    ends_at(Crasher("batch.processed"), lab.go)
    respecify(lab, with_daily(lab.spec()))


def in_open_backfill(lab: Lab) -> None:
    """A window is added while a backfill is open."""
    respecify(lab, lab.spec())
    lab.run(events(1))
    ends_at(Crasher("backfill.intended"), lambda: lab.backfill(BASE, BASE + 60 * MINUTE))
    respecify(lab, with_daily(lab.spec()))


def changed(lab: Lab) -> None:
    """A window has another size than when it was computed."""
    respecify(lab, lab.spec())
    lab.run(events(1))
    spec = lab.spec()
    spec["windows"]["hourly"]["size"] = "2 hours"
    respecify(lab, spec)


REFUSED: dict[Callable[[Lab], None], str] = {
    by_arrival: "changed, but events whose time is their arrival can't be reprocessed",
    of_removed: "windows.daily differ from what made the state",
    in_open_run: "the spec has changed and run 1: the next run finishes it",
    in_open_backfill: "the spec has changed and the backfill of ",
    changed: "windows.hourly differ from what made the state",
}
"""How the spec changes, and why the next run is refused."""


CASES = [
    pytest.param(change, marks=() if change in (by_arrival, changed) else pytest.mark.deep)
    for change in REFUSED
]


@pytest.mark.parametrize("change", CASES, ids=lambda change: change.__name__)
def test_explain_reports_that_the_run_will_be_refused_and_why(
    change: Callable[[Lab], None], spark: SparkSession, tmp_path: Path
) -> None:
    lab = new_lab(spark, tmp_path)
    change(lab)
    plan = run_command(lab, "explain")
    as_json = json.loads(run_command(lab, "explain", "--json").stdout)
    with pytest.raises(StateRefused) as refused:
        run(spark, lab.pipeline, moment(ARRIVAL))
    assert refused.value.code == "SPEC_CHANGED" and REFUSED[change] in refused.value.message
    assert plan.exit_code == 0, plan.output
    printed = " ".join(plan.stdout.split())
    assert "the run will be refused (SPEC_CHANGED): " in printed
    assert "rebuilds state" not in printed
    assert as_json["spec"]["refused"] == refused.value.message


def test_rows_that_a_spec_does_not_describe_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = new_lab(spark, tmp_path)
    respecify(lab, lab.spec())
    lab.run(events(1))
    spec = lab.spec()
    respecify(lab, spec | {"windows": {"hourly": {"kind": "count", "count": 2}}})
    for words in (["show", "hourly"], ["show", "hourly", "--as-of", "1"], ["history", "hourly"]):
        result = run_command(lab, *words)
        assert result.exit_code == 4, (words, result.output)
        assert "rows of hourly, which have no column 'window_index'" in result.stderr
    with pytest.raises(StateRefused, match="window_index"):
        read(spark, lab.pipeline, "hourly", published=False)


def test_validate_refuses_as_run_does_and_show_says_whose_rows_it_shows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = new_lab(spark, tmp_path)
    changed(lab)
    with pytest.raises(StateRefused) as refused:
        run(spark, lab.pipeline, moment(ARRIVAL))
    with pytest.raises(StateRefused) as validated:
        validate(spark, lab.pipeline)
    assert str(validated.value) == str(refused.value)
    shown = run_command(lab, "show", "hourly", "--json")
    assert (shown.exit_code, json.loads(shown.stdout)["total"]) == (0, 1)
    assert shown.stderr.endswith(
        f"tidemark: {lab.pipeline.file}: windows.hourly differ from what made these rows, "
        f"and the next run is refused; see `tidemark explain {lab.pipeline.file}`\n"
    )
    monkeypatch.delattr("jobs.session.spark_session")
    for words in ([], ["--again"]):
        result = run_command(lab, "validate", *words)
        assert (result.exit_code, result.stdout) == (4, "")
        assert "windows.hourly differ from what made the state" in result.stderr


@pytest.mark.deep
def test_explain_reports_a_rebuild_where_the_run_makes_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = new_lab(spark, tmp_path)
    respecify(lab, lab.spec())
    lab.run(events(1))
    respecify(lab, with_daily(lab.spec()))
    printed = " ".join(run_command(lab, "explain").stdout.split())
    assert "adds windows.daily, so the run rebuilds state first" in printed
    as_json = json.loads(run_command(lab, "explain", "--json").stdout)
    assert as_json["spec"]["refused"] is None
    assert "windows.daily" in lab.go().evolved
