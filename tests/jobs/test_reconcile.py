"""Comparing two versions of an output: what is a difference, and how the first ones are shown.

The copy that a check compares with goes, whatever becomes of the check.
"""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs.locking.lease_note import State
from jobs.locking.lock_file import held_here
from jobs.reconcile import _copy_of, _delete_copy, compare_outputs, drop_leftover_copy
from tests.support.leased_process import describe_trips, note_of
from windowing.errors import UsageError
from windowing.location import Location
from windowing.merge.rule import output_table
from windowing.report.difference import lines
from windowing.report.rule import Changed
from windowing.spec.load import load_pipeline
from windowing.storage.store import store_of

SPEC = {
    "name": "p",
    "lake": "/lake",
    "source": {"table": "/t", "event_time": "at", "key": ["k"]},
    "aggregates": {
        "n": "count()",
        "paid": "sum(a)",
        "ratio": "avg(b)",
        "middle": "quantile(b, 0.5)",
        "usual": "top_k(b, 1)",
        "kinds": "collect(b, 3)",
    },
    "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
}
COLUMNS = {
    "k": "string",
    "window_start": "timestamp",
    "window_end": "timestamp",
    "n": "bigint",
    "paid": "decimal(10,2)",
    "ratio": "double",
    "middle": "double",
    "usual": "array<struct<value:double,count:bigint>>",
    "kinds": "array<double>",
}
BOUNDS = "timestamp'2026-01-05 00:00', timestamp'2026-01-05 01:00'"
SAME = f"'same', {BOUNDS}, 3, 12.50, 0.1D, 5D, array((5D, 2)), array(1D)"
NULLS = f"null, {BOUNDS}, null, null, null, null, null, null"


def rows(spark: SparkSession, *values: str) -> DataFrame:
    """Rows of an output, each as SQL values."""
    casts = ", ".join(f"cast({name} as {kind}) {name}" for name, kind in COLUMNS.items())
    body = ", ".join(f"({row})" for row in values)
    return spark.sql(f"select {casts} from values {body} as t({', '.join(COLUMNS)})")


def test_rounding_and_estimates_are_no_difference_all_else_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    pipeline = load_pipeline(SPEC)
    window = pipeline.window("hourly")
    more, less, paid, other, nothing = (
        SAME.replace("same", key) for key in ("more", "less", "paid", "list", "nothing")
    )
    found = rows(spark, SAME, NULLS, more, paid, other, nothing)
    wanted = rows(
        spark,
        SAME.replace("0.1D", "0.10000000000000002D").replace("(5D, 2)", "(6D, 3)"),
        NULLS,
        less,
        paid.replace("12.50", "12.51"),
        other.replace("array(1D)", "array(2D)").replace("5D, array((5D", "6D, array((5D"),
        nothing.replace("0.1D", "null"),
    )
    changed, example = compare_outputs(found, wanted, window, output_table(pipeline, window))
    assert changed == Changed(inserted=1, updated=3, deleted=1)
    assert example is not None
    told = "\n".join(lines(example))
    assert "paid: expected 12.51, found 12.50" in told or "paid: expected 12.51, found 12.5" in told
    assert "hourly: {k: less, window_start: 2026-01-05 00:00Z" in told and "is missing" in told
    assert "{k: more," in told and "was not expected" in told
    assert "middle: expected 6" in told
    assert "usual" not in told and "same" not in told
    assert compare_outputs(found, found, window, output_table(pipeline, window)) == (
        Changed(),
        None,
    )


def test_what_is_no_number_differs_from_every_number(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = load_pipeline(SPEC)
    window = pipeline.window("hourly")
    target = output_table(pipeline, window)
    for odd in ("double('nan')", "double('inf')", "double('-inf')"):
        found, wanted = (rows(spark, SAME.replace("0.1D", value)) for value in (odd, "5D"))
        for one, other in ((found, wanted), (wanted, found)):
            assert compare_outputs(one, other, window, target)[0] == Changed(updated=1)
        assert compare_outputs(found, found, window, target)[0] == Changed()


def test_an_error_of_a_check_is_told_behind_the_end_of_its_copy(shared_home: Location) -> None:
    """Without its lock, whoever holds that would be told that it was lost, and not what failed."""
    trips = load_pipeline(describe_trips(shared_home))
    copy, no_session = _copy_of(trips), Any
    store = store_of(copy.root)
    with pytest.raises(UsageError, match="made up"), held_here(copy):
        store.write(copy.table("hourly") / "part-0.parquet", b"1")
        _delete_copy(no_session, trips)
        raise UsageError("made up")
    assert [*store.list_files(copy.root)] == ["_lock"]
    assert note_of(copy).state is State.FREE
    drop_leftover_copy(no_session, trips)
    assert note_of(copy).epoch == 1, "nothing was left"
