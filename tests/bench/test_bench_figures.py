"""Figures know which side of their target is the good one, and every theme makes its own."""

import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from bench.__main__ import THEMES
from bench.before import BEFORE, NOW, make_before_figure, measure_in_turn
from bench.charts import CHARTS, draw_charts
from bench.contenders import RECOMPUTE, STREAMING, TIDEMARK
from bench.crossover import DUCKDB, FIXED_ROWS, SHARES, count_new_rows, describe_phase
from bench.crossover import make_points as make_crossover_points
from bench.figures import (
    Figure,
    Point,
    Result,
    Times,
    Took,
    at_least,
    at_most,
    read_result,
    store_result,
)
from bench.large_runs import (
    LATE,
    LOAD,
    ON_TIME,
    make_arrival_figure,
    make_load_figures,
    make_streaming_figures,
)
from bench.late_runs import SHARES as LATE_SHARES
from bench.late_runs import make_late_figure
from bench.late_runs import make_points as make_late_points
from bench.many_runs import BARE, make_age_figure, pay_share
from bench.many_runs import make_points as make_age_points
from bench.memory import make_memory_figure, parse_peak_gib
from bench.rounds import compare_times, gather_times
from bench.session_runs import make_session_figure
from bench.sliding_runs import OVERLAPS, describe_overlap, make_window_figure
from bench.sliding_runs import make_points as make_overlap_points
from bench.themes import describe_count
from bench.window_counts import (
    COLD_FIRST,
    COLD_NEXT,
    FIFTEEN,
    ONE,
    TWELVE,
    WARM,
    make_cold_figures,
    make_warm_figures,
)

SMALL, GOOD, BAD = 5_000_000, "target", "missed"


def timed(phase: str, **cpu: Sequence[float]) -> list[Times]:
    """Times with these CPU seconds in each round, and twice as many wall seconds."""
    names = {"ours": TIDEMARK, "streaming": STREAMING, "recompute": RECOMPUTE}
    return [
        Times(phase, names.get(name, name), tuple(Took(2 * each, each) for each in rounds))
        for name, rounds in cpu.items()
    ]


@pytest.mark.parametrize(
    ("value", "small_is_good", "large_is_good"),
    [(0.9, "target", "missed"), (1.5, "floor", "floor"), (2.5, "missed", "target")],
)
def test_a_verdict_knows_which_side_is_good(
    value: float, small_is_good: str, large_is_good: str
) -> None:
    assert at_most("f", value, 1, 2).verdict == small_is_good
    assert at_least("f", value, 2, 1).verdict == large_is_good


def test_a_figure_at_its_target_reaches_it() -> None:
    assert [make("f", 3.0, 3, 3).verdict for make in (at_most, at_least)] == [GOOD, GOOD]


def test_a_value_that_is_no_number_reaches_nothing() -> None:
    assert [make("f", math.nan, 3, 3).verdict for make in (at_most, at_least)] == [BAD, BAD]


def test_a_result_is_read_as_it_was_stored(tmp_path: Path) -> None:
    figures = (at_most("small", 1.5, 1, 2, "wall 3.00"), at_least("large", 1, 2, 1.5))
    points = (Point("history", "line", 10, Took(2, 1)),)
    stored = Result("t", "python -m bench.t", figures, tuple(timed("p", ours=[1, 2])), points)
    store_result(stored, tmp_path / "new" / "t.json")
    assert read_result(tmp_path / "new" / "t.json") == stored


def test_stored_results_can_be_read() -> None:
    for file in (Path(__file__).parents[2] / "bench" / "results").glob("*.json"):
        result = read_result(file)
        assert result.figures or result.points
        assert result.theme in THEMES


def test_rounds_are_compared_one_by_one() -> None:
    # The machine was three times as slow in the last round, for both of them.
    times = timed("p", ours=[1, 2, 3], recompute=[2, 4, 30])
    ratio = compare_times(times, "p", RECOMPUTE, TIDEMARK)
    assert (ratio.cpu, ratio.wall) == (2, 2)
    rounds = [{"a": Took(1, 1), "b": Took(2, 2)}, {"a": Took(3, 3), "b": Took(4, 4)}]
    assert [each.median.cpu for each in gather_times("p", rounds)] == [2, 3]


def large_times(ours: float, peers: float) -> list[Times]:
    """Times of all phases of large runs."""
    phases = (f"{LOAD} of 5 M", f"{ON_TIME} on 5 M", f"{LATE} on 5 M")
    times: list[Times] = []
    for phase in phases:
        times += timed(phase, ours=[ours], streaming=[peers], recompute=[peers])
    return times


def ratio_figures(ours: float, peers: float) -> list[Figure]:
    """Every figure that compares Tidemark with a peer, or a costly case with a cheap one."""
    large = large_times(ours, peers)
    cases = timed("p", ours=[ours], streaming=[peers], recompute=[peers])
    turns = [("all late", "all on time"), ("run 200", "run 10"), (NOW, BEFORE)]
    late, age, before = ([*timed("p", **{a: [ours], b: [peers]})] for a, b in turns)
    age += timed(BARE, **{"run 200": [1.0], "run 10": [1.0]})
    warm = timed(WARM, **{ONE: [peers], TWELVE: [ours]})
    cold: list[Times] = []
    for phase in (COLD_FIRST, COLD_NEXT):
        cold += timed(phase, **{ONE: [peers], TWELVE: [ours], FIFTEEN: [ours]})
    return [
        *make_warm_figures(warm, jobs=round(ours)),
        *make_cold_figures(cold),
        *make_load_figures(large, SMALL),
        make_arrival_figure(large, SMALL, 3, 1.5),
        *make_streaming_figures(large, SMALL),
        make_session_figure(cases, "p"),
        make_window_figure(cases, "p", 6, 3.5),
        make_late_figure(late, "p"),
        make_age_figure(age, "p", "run 200", "run 10"),
        make_before_figure(before, "p"),
    ]


def test_every_theme_is_content_where_we_are_cheap_and_not_where_we_are_dear() -> None:
    assert {each.verdict for each in ratio_figures(ours=1, peers=100)} == {GOOD}
    assert {each.verdict for each in ratio_figures(ours=100, peers=1)} == {BAD}


def test_figures_say_what_else_was_measured() -> None:
    figure = make_arrival_figure(large_times(2, 8), SMALL, 3, 1.5)
    assert figure.beside == "wall 4.00; a tenth of it up to a day late: 4.00, wall 4.00"


def test_maintenance_is_paid_by_the_runs_before_it() -> None:
    assert pay_share(Took(2, 1), Took(100, 50), 100) == Took(3, 1.5)


def test_the_peak_of_a_process_is_what_linux_recorded() -> None:
    peak = parse_peak_gib("Name:\tjava\nVmPeak:\t9999999 kB\nVmHWM:\t 6291456 kB\n")
    assert make_memory_figure("load", peak, Took(10, 20)).verdict == BAD
    assert make_memory_figure("load", peak / 2, Took(10, 20)).verdict == GOOD


def test_checkouts_take_turns() -> None:
    seen: list[str] = []

    def measure(place: Path) -> Took:
        seen.append(place.name)
        return Took(1, 1)

    measure_in_turn({"a": Path("a"), "b": Path("b")}, 2, measure)
    assert seen == ["a", "b", "b", "a"]


def test_counts_are_written_in_few_letters() -> None:
    assert [describe_count(n) for n in (12, 1_234, 10_000, 2_500_000)] == [
        "12",
        "1,234",
        "10 k",
        "2.5 M",
    ]


def every_point() -> list[Point]:
    """Points of all charts."""
    points: list[Point] = []
    for history in (100_000, 1_000_000):
        sizes = {count_new_rows(history, share) for share in SHARES} | {FIXED_ROWS}
        times: list[Times] = []
        for rows in sizes:
            phase = describe_phase(history, rows)
            times += timed(phase, ours=[rows / 1e3]) + timed(phase, **{DUCKDB: [history / 1e5]})
        points += make_crossover_points(times, history)
    overlaps: list[Times] = []
    for overlap in OVERLAPS:
        overlaps += timed(describe_overlap(overlap, SMALL), ours=[1], recompute=[overlap])
    points += make_overlap_points(overlaps)
    late = timed("p", **{name: [1 + share] for name, share in LATE_SHARES.items()})
    points += make_late_points(late)
    return points + list(make_age_points([Took(1, 1)] * 25))


def test_every_chart_is_drawn_from_stored_points_alone(tmp_path: Path) -> None:
    assert draw_charts(tmp_path) == []
    points = every_point()
    store_result(Result("t", "command", points=tuple(points)), tmp_path / "t.json")
    drawn = draw_charts(tmp_path)
    assert len(drawn) == len(CHARTS)
    for file in drawn:
        dots = [each for each in Xml.parse(file).iter() if each.tag.endswith("circle")]
        chosen = [point for point in points if file.stem == point.chart.replace(" ", "_")]
        assert len(dots) == len(chosen)
        for dot in dots:
            assert 0 <= float(dot.get("cx", "-1")) <= 700
            assert 0 <= float(dot.get("cy", "-1")) <= 300


def test_every_theme_has_a_file_and_sizes() -> None:
    folder = Path(__file__).parents[2] / "bench"
    for theme, sizes in THEMES.items():
        assert (folder / f"{theme}.py").is_file()
        for arguments in sizes.values():
            assert all(word.startswith("--") or word.isdigit() for word in shlex.split(arguments))
