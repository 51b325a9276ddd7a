"""A range that is widened is still reprocessed for the same cause."""

from dataclasses import replace

import pytest

from jobs.recompute.time_range import TimeRange, widen_to_panes
from windowing.grid.range import Range
from windowing.grid.rule import Grid
from windowing.panes.rule import Family

TENS = Family("_panes", (Grid(10),), ())
CAUSES = {
    "asked for": TimeRange(12, 31, 5, asked=(0, 100)),
    "the source has changed": TimeRange(12, 31, 5, batch=3),
    "the spec has changed": TimeRange(12, 31, 5, is_everything=True),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_range_is_widened_to_whole_panes_and_keeps_its_cause(cause: str) -> None:
    chunk = CAUSES[cause]
    wide = widen_to_panes(TENS, chunk)
    assert wide == replace(chunk, start_us=10, end_us=40)
    assert wide.is_asked_for == (cause == "asked for")


def test_the_times_of_a_range_are_inside_at_both_ends() -> None:
    chunk = TimeRange(12, 31, 5, batch=3)
    assert chunk.times == Range(12, 30)
    assert chunk.move_to(chunk.times) == chunk
    assert chunk.move_to(Range(10, 39)) == replace(chunk, start_us=10, end_us=40)


def test_a_range_covers_another_and_is_widened_on_both_sides() -> None:
    assert Range(5, 9).cover(Range(7, 20)) == Range(5, 20)
    assert Range(7, 20).cover(Range(5, 9)) == Range(5, 20)
    assert Range(5, 9).widen(3) == Range(2, 12)
