"""The sizes of state tables without a session, beside those that Spark finds."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import jobs.session
from jobs.cli.main import main
from jobs.show import state_tables
from tests.oracle import Count, Event, Session, Tumbling
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.pipeline_under_test import FEW, Lab
from windowing.report.state import measure_state_tables
from windowing.report.text import plain
from windowing.storage import control

WINDOWS = (
    Tumbling("hourly", size=60 * MINUTE),
    Session("visits", 10 * MINUTE),
    Count("pairs", 2),
)


@pytest.fixture(scope="module")
def lab(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Two runs: aggregates by pane, fragments, events and ids."""
    lab = Lab(spark, tmp_path_factory.mktemp("state"), WINDOWS, shows=FEW)
    lab.run([Event("a", BASE + n * MINUTE, n, f"first {n}") for n in range(7)])
    lab.run([Event("b", BASE + n * MINUTE, n, f"second {n}") for n in range(5)])
    return lab


def test_before_the_first_run_there_is_none(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, WINDOWS, shows=FEW)
    assert measure_state_tables(lab.pipeline) == state_tables(spark, lab.pipeline) == ()


@pytest.mark.slow
def test_sizes_are_those_that_spark_finds(lab: Lab) -> None:
    found = measure_state_tables(lab.pipeline)
    assert found == state_tables(lab.spark, lab.pipeline)
    assert {each.windows for each in found} > {("hourly",), ("visits",), ("pairs",)}
    assert {(each.run, each.batch) for each in found} == {(2, 1)}


def test_rows_that_a_deletion_vector_marks_are_no_state(lab: Lab) -> None:
    table = lab.pipeline.table(measure_state_tables(lab.pipeline)[0].table)
    lab.spark.sql(
        f"alter table delta.`{table}` set tblproperties ('delta.enableDeletionVectors' = 'true')"
    )
    lab.spark.sql(f"delete from delta.`{table}` where run = 2 and key = 'b'")
    found = measure_state_tables(lab.pipeline)
    assert found == state_tables(lab.spark, lab.pipeline)
    assert found[0].run == 1
    lab.spark.sql(f"delete from delta.`{table}`")
    found = measure_state_tables(lab.pipeline)
    assert found == state_tables(lab.spark, lab.pipeline)
    assert (found[0].rows, found[0].run, found[0].batch) == (0, None, None)


def test_the_command_starts_no_jvm_without_need(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = lab.root / "lab.yaml"
    spec.write_text(json.dumps(lab.spec()))
    expected = plain(state_tables(lab.spark, lab.pipeline))

    def shown() -> object:
        result = CliRunner().invoke(main, ["state", str(spec), "--json"], prog_name="tidemark")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)["tables"]

    with monkeypatch.context() as patched:
        patched.delattr(jobs.session, "spark_session")
        assert shown() == expected
    table = lab.pipeline.table(expected[1]["table"])
    lab.spark.sql(
        f"alter table delta.`{table}` set tblproperties ('delta.enableTypeWidening' = 'true')"
    )
    with pytest.raises(control.TableError, match="typeWidening"):
        measure_state_tables(lab.pipeline)
    assert shown() == plain(state_tables(lab.spark, lab.pipeline))
