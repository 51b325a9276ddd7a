"""A table of the pipeline that was changed so that Delta refuses to write to it.

The run ends with one sentence, and is resumed once the change is undone.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.foreign_errors.table_errors import explain_table_error
from jobs.landing.look import keeper_of
from tests.oracle import Event, Tumbling
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab
from windowing.errors import StateRefused

HOURLY = Tumbling("hourly", size=60 * MINUTE)


def event(name: str, minute: int) -> Event:
    """An event of value 1, so many minutes after the beginning."""
    return Event("a", BASE + minute * MINUTE, 1, name)


@pytest.mark.slow
def test_a_write_that_delta_refuses_is_explained_and_finished_by_the_next_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, (HOURLY,), shows=FEW)
    lab.run([event("first", 1)])
    path = lab.pipeline.table("hourly")
    spark.sql(f"alter table delta.`{path}` set tblproperties ('delta.appendOnly' = 'true')")
    correcting = lab.land([event("second", 2)])
    for _ in range(2):
        with pytest.raises(StateRefused, match="takes appends only; unset its property") as refused:
            lab.go()
        assert refused.value.code == "TABLE_CHANGED"
        # Delta's own message does not name the table.
        assert f"a table in {lab.pipeline.root} takes" in str(refused.value)
        assert "\n" not in str(refused.value)
    spark.sql(f"alter table delta.`{path}` unset tblproperties ('delta.appendOnly')")
    report = lab.go()
    assert (report.read, report.accepted) == (1, 1)
    lab.truth.run(correcting, ARRIVAL)
    lab.check()


def test_the_table_is_named_and_no_value_of_a_row(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, (HOURLY,), shows=FEW)
    said = (
        "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint small (total < 5) violated by row "
        f"with values:\n - total : 10 in {lab.pipeline.table('hourly')}/part-0.parquet"
    )
    found = explain_table_error(lab.pipeline, said)
    assert str(found).startswith(
        f"TABLE_CHANGED: {lab.pipeline.table('hourly')} has a constraint that new rows violate; "
        "drop the constraint, then run again, or `tidemark reset lab`"
    )
    assert "10" not in str(found).replace(str(tmp_path), "")
    assert explain_table_error(lab.pipeline, "[DIVIDE_BY_ZERO] Division by zero") is None


def test_the_record_of_landed_files_is_not_reset(spark: SparkSession, tmp_path: Path) -> None:
    """The pipeline's `reset` leaves it alone, and the source as well."""
    lab = Lab(spark, tmp_path, (HOURLY,), shows=FEW)
    source = lab.pipeline.source.table
    found = explain_table_error(keeper_of(lab.pipeline), "[DELTA_METADATA_MISMATCH] columns")
    assert str(found).startswith(f"TABLE_CHANGED: a table in {source} ")
    assert "reset" not in str(found)
