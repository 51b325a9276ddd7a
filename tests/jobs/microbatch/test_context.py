"""What a batch and the end of a run know: which windows W had passed, and whether to reread."""

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.microbatch.context import Closing, RunContext
from tests.support.small_lake import at, rows_of, us
from windowing.location import Location
from windowing.panes.table import Stamp
from windowing.spec.pipeline import EventTime, Pipeline, Source, Watermark
from windowing.storage import delta

SOURCE = Source(Location("/source"), EventTime("ts"), ("key", "lane"))
PIPELINE = Pipeline("small", Location("/lake"), SOURCE, Watermark(0, 0, 0), ())


def batch(spark: SparkSession) -> RunContext:
    return RunContext(spark, PIPELINE, Stamp(1, 0, None), 0)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, None, [(10, True, False), (20, True, False), (30, True, False)]),
        (None, 20, [(10, True, True), (20, True, True), (30, True, False)]),
        (10, 20, [(10, False, True), (20, True, True), (30, True, False)]),
        (20, 20, [(10, False, True), (20, False, True), (30, True, False)]),
    ],
)
def test_a_window_is_closed_when_w_has_reached_its_end(
    spark: SparkSession,
    before: float | None,
    after: float | None,
    expected: list[tuple[float, bool, bool]],
) -> None:
    """`since`: it had not ended by W before the run; `closed`: it has ended by W after it.

    A window that ends at W has ended.
    """
    closing = Closing(batch(spark), us(before), us(after), None)
    ends = delta.rows(spark, [{"end": at(minute)} for minute in (10, 20, 30)], "end timestamp")
    end = F.col("end")
    found = ends.withColumns({"since": closing.since(end), "closed": closing.closed(end)})
    assert rows_of(found, "end", "since", "closed") == expected


def test_keys_are_those_of_the_source(spark: SparkSession) -> None:
    assert batch(spark).keys == ("key", "lane")


def test_a_source_may_change_where_it_has_a_feed_or_was_rewritten(spark: SparkSession) -> None:
    here = batch(spark)
    feed = replace(PIPELINE, source=replace(SOURCE, changes="feed"))
    assert not here.source_may_change
    assert replace(here, pipeline=feed).source_may_change
    assert replace(here, source_was_rewritten=True).source_may_change
