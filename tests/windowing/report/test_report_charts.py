"""Axes of the report's charts."""

import pytest

from windowing.report.charts import (
    TIMES,
    Series,
    break_line,
    draw_bars,
    draw_lines,
    draw_rows,
    label_apart,
)


@pytest.mark.parametrize(
    ("values", "step"),
    [([1, 4], 1), ([1, 6], None), ([0.5, 1], None), ([None, 2], 1), ([], 1)],
)
def test_few_things_are_counted_one_by_one(values: list[float | None], step: int | None) -> None:
    series, names = [Series("rows", values)], [f"run {n}" for n in range(len(values))]
    bars, lines = draw_bars(names, series, "run", "rows"), draw_lines(names, series, TIMES, "rows")
    lying = draw_rows(names, series, "rows")
    axes = (bars["layout"]["yaxis"], lines["layout"]["yaxis"], lying["layout"]["xaxis"])
    assert [axis.get("dtick") for axis in axes] == [step, step, step]


def test_bars_on_top_of_each_other_are_counted_together() -> None:
    layout = draw_bars(["a"], [Series("late", [4]), Series("bad", [3])], "run", "rows")["layout"]
    assert "dtick" not in layout["yaxis"]


def test_labels_that_are_cut_to_the_same_text_are_numbered() -> None:
    texts = ["a long begin 1", "a long begin 2", "a lon…", "short", "a lon… (2)"]
    assert label_apart(texts, 6) == ["a lon…", "a lon… (2)", "a lon… (3)", "short", "a lon… (4)"]


@pytest.mark.parametrize(
    ("starts", "drawn"),
    [
        ([], []),
        ([5], [5]),
        ([5, 100], [5, 100]),
        ([0, 10, 20, 30], [0, 10, 20, 30]),
        ([0, 10, 30, 40], [0, 10, 30, 40]),
        ([0, 10, 31, 41], [0, 10, None, 31, 41]),
        ([0, 10, 20, 90, 100, 500], [0, 10, 20, None, 90, 100, None, 500]),
    ],
    ids=str,
)
def test_a_line_is_broken_where_the_next_start_is_more_than_twice_as_far_as_usual(
    starts: list[int], drawn: list[int | None]
) -> None:
    places, series = break_line(starts, [Series("same", starts), Series("also", starts)])
    assert places == sorted(places)
    assert [places[place] for place, start in enumerate(drawn) if start is not None] == starts
    for each in series:
        assert list(each.values) == drawn
