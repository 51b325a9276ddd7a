"""Where a suite is looked for, and that one which is nowhere is named, all without Spark."""

import subprocess
import sys
from pathlib import Path

import pytest

from expectations.places import SUITES, check_suite, suites_of
from windowing.errors import SpecError
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline

SPEC = """
name: trips
lake: lake
source: {table: lake/bronze/trips, event_time: at, key: [place]}
aggregates: {n: count()}
windows: {hourly: {kind: tumbling, size: 1 hour}}
"""


def pipeline(folder: Path, suite: str) -> Pipeline:
    file = folder / "trips.yaml"
    file.write_text(f"{SPEC}expectations: {{suite: {suite}}}\n")
    return load_pipeline(file)


def test_the_suite_beside_the_spec_comes_before_the_shipped_one(tmp_path: Path) -> None:
    shipped = pipeline(tmp_path, "departures")
    check_suite(shipped)
    assert suites_of(shipped) == SUITES
    (tmp_path / "expectations").mkdir()
    (tmp_path / "expectations" / "departures.yaml").touch()
    check_suite(shipped)
    assert suites_of(shipped) == tmp_path / "expectations"


def test_no_suite_is_fine(tmp_path: Path) -> None:
    (tmp_path / "trips.yaml").write_text(SPEC)
    check_suite(load_pipeline(tmp_path / "trips.yaml"))


def test_a_suite_that_is_nowhere_is_named_with_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "expectations").mkdir()
    (tmp_path / "expectations" / "trips.yaml").touch()
    with pytest.raises(SpecError) as caught:
        check_suite(pipeline(tmp_path, "tripz"))
    assert caught.value.file == str(tmp_path / "trips.yaml")
    assert caught.value.field == "expectations.suite"
    assert caught.value.message == (
        f"'tripz' is not there: no file {tmp_path}/expectations/tripz.yaml or {SUITES}/tripz.yaml; "
        "suites there are: departures, planes, trips, did you mean 'trips'; "
        "name one of them, or write that file"
    )


def test_a_mapping_has_the_shipped_suites_alone() -> None:
    spec = {
        "name": "trips",
        "lake": "/lake",
        "source": {"table": "/t", "event_time": "at", "key": ["place"]},
        "aggregates": {"n": "count()"},
        "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
        "expectations": {"suite": "nowhere"},
    }
    sentence = "expectations.suite: 'nowhere' is not there: no file .*; suites there are"
    with pytest.raises(SpecError, match=sentence):
        check_suite(load_pipeline(spec))


def test_looking_for_a_suite_imports_neither_spark_nor_great_expectations() -> None:
    heavy = "{'pyspark', 'pandas', 'great_expectations'}"
    script = f"import sys, expectations.places; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
