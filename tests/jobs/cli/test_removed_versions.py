"""Older versions that an erasure or the retention of logs has removed."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs.erase import erase
from tests.oracle import Count, Event, Tumbling
from tests.support.command_line import run_command
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.pipeline_under_test import FEW, Lab
from windowing.ledger.erased import Erasing
from windowing.location import Location
from windowing.storage import delta_log

WINDOWS = (Tumbling("hourly", 60 * MINUTE), Count("pairs", 2))


@pytest.fixture(scope="module")
def lab(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Three runs, the second with a late row of each key; then one of the keys is erased."""
    found = Lab(spark, tmp_path_factory.mktemp("removed"), WINDOWS, lateness=0, shows=FEW)
    (found.root / "lab.yaml").write_text(json.dumps(found.spec()))
    for run, minutes in enumerate(([120], [0, 200], [400])):
        found.run(
            Event(key, BASE + minute * MINUTE, 1, f"{key}{run}{minute}")
            for key in "ab"
            for minute in minutes
        )
    erase(spark, found.pipeline, Erasing({"key": "b"}))
    return found


@pytest.mark.deep
@pytest.mark.parametrize(
    ("words", "which"),
    [
        (["show", "hourly", "--as-of", "2"], "the version of hourly written by run 2"),
        (["show", "hourly", "--as-of", "v2"], "version 2 of hourly"),
        (["show", "pairs", "--as-of", "2"], "the version of pairs written by run 2"),
        (["late", "--as-of", "2"], "the version of _late written by run 2"),
        (
            ["state", "--window", "hourly", "--as-of", "2"],
            "the version of _panes_1h written by run 2",
        ),
    ],
)
def test_a_version_whose_files_were_erased_has_been_removed(
    words: list[str], which: str, lab: Lab
) -> None:
    result = run_command(lab, *words)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert result.stderr == (
        f"tidemark: --as-of: {which} has been removed (its files were deleted by maintenance or "
        "an erasure); name a later one, or leave out --as-of\n"
    )


@pytest.mark.deep
def test_the_newest_version_is_shown_after_an_erasure(lab: Lab) -> None:
    for words in (["show", "hourly"], ["show", "pairs"], ["late"], ["state"]):
        assert run_command(lab, *words).exit_code == 0, words


@pytest.mark.slow
def test_a_version_whose_commit_was_cleaned_up_has_been_removed(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, WINDOWS[:1], shows=FEW)
    (lab.root / "lab.yaml").write_text(json.dumps(lab.spec()))
    for run in range(2):
        lab.run([Event("a", BASE + run * MINUTE, 1, str(run))])
    table = Location(str(tmp_path / "lake" / "lab" / "hourly"))
    DeltaTable(str(table)).create_checkpoint()
    for commit in sorted((table.local / "_delta_log").glob("*.json"))[:-1]:
        commit.unlink()
    delta_log.forget(spark, table)
    result = run_command(lab, "show", "hourly", "--as-of", "1")
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    which = "the version of hourly written by run 1"
    assert result.stderr.startswith(f"tidemark: --as-of: {which} has been removed (log retention)")
    assert result.stderr.count("\n") == 1
