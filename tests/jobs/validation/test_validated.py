"""What is printed of a validation that was recorded: only what an evaluation would find again.

The first tests share a lake, whose newest run breaks one expectation of its own suite.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import jobs.session
from expectations.outcome import NO_VALIDATION
from jobs.cli.main import main
from jobs.publish import publish
from jobs.validate import validate
from jobs.validation import validated
from jobs.validation.validated import find_validation
from tests.support.long_lived_pipeline import Crasher
from tests.support.trips_with_suite import SPEC, Trips, at, make_trips
from windowing.crash import armed
from windowing.spec.load import load_pipeline
from windowing.storage import delta


@pytest.fixture(scope="module")
def trips(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Trips:
    """One run, validated by its own process."""
    trips = make_trips(spark, tmp_path_factory.mktemp("trips"))
    ran = trips("run", "--validate", "--json")
    assert json.loads(ran.stdout)["accepted"] == 3
    assert "trips: validated run 1, 1 expectation of" in ran.stderr
    return trips


@pytest.fixture
def no_jvm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever starts a session fails."""
    with monkeypatch.context() as patched:
        patched.delattr(jobs.session, "spark_session")
        yield


def test_before_the_first_run_there_is_nothing_to_evaluate(tmp_path: Path, no_jvm: None) -> None:
    (tmp_path / "trips.yaml").write_text(SPEC.replace("expectations: {suite: trips}", ""))
    spec = str(tmp_path / "trips.yaml")
    assert find_validation(load_pipeline(spec)) == NO_VALIDATION
    result = CliRunner().invoke(main, ["validate", spec], prog_name="tidemark")
    assert result.stdout == "trips: nothing is evaluated, because there is no run yet\n"


@pytest.mark.slow
def test_what_was_recorded_is_printed_as_an_evaluation_prints_it(
    trips: Trips, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.delattr(jobs.session, "spark_session")
        recorded = trips("validate", "--json", code=3), trips("validate", code=3)
    again = trips("validate", "--again", "--json", code=3), trips("validate", "--again", code=3)
    for before, after in zip(recorded, again, strict=True):
        assert (before.stdout, before.stderr) == (after.stdout, after.stderr)
    assert json.loads(recorded[0].stdout)["failed"][0]["window"] == "hourly"
    assert "run 1 breaks expect_column_values_to_be_between(n) of hourly" in recorded[0].stderr
    # Of those that hold it is said how many they are.
    found = find_validation(trips.pipeline)
    assert found is not None
    held = [each.expectation for each in found.outcomes if each.success]
    said = recorded[1].stdout
    assert "expect_column_values_to_be_between(n)" in said
    assert len(held) > 3 and not [each for each in held if each in said]
    counts = [int(number) for number in re.findall(r"(\d+) expectations?\b", said)]
    assert sum(counts) == len(held)


def test_outcomes_keep_their_order(trips: Trips) -> None:
    found = validate(trips.spark, trips.pipeline)
    assert found == find_validation(trips.pipeline)
    assert len({outcome.expectation for outcome in found.outcomes}) > 3
    path = trips.pipeline.table("_quality")
    # Whoever rewrites the table may leave its rows in another order.
    turned = delta.read(trips.spark, path).orderBy("expectation").coalesce(1).localCheckpoint()
    turned.write.format("delta").mode("overwrite").save(path.text)
    assert found == find_validation(trips.pipeline)


def edit_suite(trips: Trips) -> Callable[[], None]:
    """A suite that the outputs meet."""
    trips.expect(9)
    return lambda: trips.expect(1)


def edit_spec(trips: Trips) -> Callable[[], None]:
    """Another spec, of which state and outputs know nothing yet."""
    trips.spec.write_text(SPEC.replace("sum(fare)", "sum(fare), most: max(fare)"))
    return lambda: put(trips.spec, SPEC)


def put(file: Path, text: str) -> None:
    file.write_text(text)


def hide(name: str) -> Callable[[Trips], Callable[[], None]]:
    """A table or a directory that is gone."""

    def hide_it(trips: Trips) -> Callable[[], None]:
        path = trips.pipeline.table(name).local
        hidden = path.rename(path.with_name("hidden"))
        return lambda: put_back(hidden, path)

    hide_it.__name__ = f"hide{name}"
    return hide_it


def put_back(hidden: Path, path: Path) -> None:
    hidden.rename(path)


def damage_table(trips: Trips) -> Callable[[], None]:
    """A table that lost its files."""
    files = list(trips.pipeline.table("_quality").local.glob("*.parquet"))
    for file in files:
        file.rename(file.with_suffix(".lost"))
    return lambda: [file.with_suffix(".lost").rename(file) for file in files] and None


CHANGES = [edit_suite, edit_spec, hide("_docs"), hide("_quality"), damage_table]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_whatever_is_not_as_it_was_is_evaluated_again(trips: Trips, change: Any) -> None:
    assert find_validation(trips.pipeline) is not None
    undo = change(trips)
    try:
        assert find_validation(trips.pipeline) is None
    finally:
        undo()
    assert find_validation(trips.pipeline) is not None


def test_another_version_of_what_judges_evaluates_again(
    trips: Trips, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validated, "version", lambda name: f"{name} 99")
    assert find_validation(trips.pipeline) is None


def test_only_the_last_validation_counts(trips: Trips) -> None:
    """`publish` takes the last one, so an older one must not be printed in its place."""
    trips.expect(9)
    assert json.loads(trips("validate", "--json").stdout)["passed"] is True
    assert find_validation(trips.pipeline) is not None
    trips.expect(1)
    assert find_validation(trips.pipeline) is None
    trips("validate", code=3)
    assert find_validation(trips.pipeline) is not None


def test_outcomes_without_a_basis_are_those_of_an_earlier_release(trips: Trips) -> None:
    path = trips.pipeline.table("_quality")
    table = delta.read(trips.spark, path).drop("basis", "place").localCheckpoint()
    writer = table.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.save(path.text)
    assert find_validation(trips.pipeline) is None
    trips("validate", code=3)
    assert find_validation(trips.pipeline) is not None


@pytest.mark.slow
def test_each_run_is_validated_and_what_was_validated_is_published(
    spark: SparkSession, tmp_path: Path
) -> None:
    trips = make_trips(spark, tmp_path)
    trips.expect(9)
    trips("run")
    assert find_validation(trips.pipeline) is None, "the option was not given"
    with armed(Crasher("validate.evaluated")):
        trips.land(("d", "EWR", at(4), 5))
        ran = trips("run", "--validate", "--json")
    assert json.loads(ran.stdout)["run"] == 2, "the run did succeed"
    assert "trips: not validated, because of this error: unexpected Crash" in ran.stderr
    assert find_validation(trips.pipeline) is None
    with armed(Crasher("validate.recorded")):
        trips.land(("e", "EWR", at(5), 5))
        trips("run", "--validate")
    assert find_validation(trips.pipeline) is not None
    assert publish(trips.pipeline).run == 3
    published = find_validation(trips.pipeline)
    assert published is not None
    assert published.passed
    hour = ("--from", "2013-01-01T06:00Z", "--to", "2013-01-01T07:00Z")
    chunk = trips("backfill", *hour, "--validate", "--json")
    assert "trips: validated run 3, none of" in chunk.stderr
    found = find_validation(trips.pipeline)
    assert found is not None
    assert found.seq > published.seq


def test_a_suite_that_is_wrong_fails_the_validation_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    trips = make_trips(spark, tmp_path)
    (tmp_path / "expectations" / "trips.yaml").write_text("hourli: []")
    ran = trips("run", "--validate", "--json")
    assert json.loads(ran.stdout)["run"] == 1
    assert "not validated, because of this error" in ran.stderr
    assert "hourli" in trips("validate", code=2).stderr


def test_a_backfill_that_writes_nothing_validates_nothing(tmp_path: Path) -> None:
    trips = Trips(None, tmp_path)
    trips.spec.write_text(SPEC)
    trips.expect(1)
    words = ("--from", "2013-01-01", "--to", "2013-01-02", "--validate")
    for how in ("--dry-run", "--check"):
        refused = trips("backfill", *words, how, code=2)
        assert "--validate needs a backfill that writes" in refused.stderr
