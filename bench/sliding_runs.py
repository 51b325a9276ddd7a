"""Overlapping windows beside Spark's window(), which copies each event into every window.

    python -m bench.sliding_runs [--events 1000000] [--rounds 3] [--to FILE]

An hour every minute by user over one day, to Delta: first loads, and for the chart runs with 1 %
more rows in windows that overlap once, 12 times and 60 times.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench.contenders import (
    COUNT,
    DAY_US,
    MAX,
    RECOMPUTE,
    START_US,
    SUM,
    TIDEMARK,
    Lake,
    Work,
    bind_contenders,
    check_tables,
    digest_rows,
    read_table,
    run_tidemark,
)
from bench.figures import Figure, Point, Result, Times, Took, at_least, report_result
from bench.rounds import compare_times, gather_times, time_in_turn
from bench.themes import (
    add_rounds,
    add_size,
    describe_command,
    describe_count,
    make_parser,
    temporary_directory,
)
from jobs.session import spark_session

THEME = "sliding_runs"
CHART = "overlap"
KEYS = 5_000
LARGE_HEAP = {"spark.driver.memory": "8g"}
"""With the usual heap Spark's window() often has to sort the 60 copies of each event on disk, and
takes three times as long. Here both contenders have enough of it."""
WARM_UP_EVENTS = 250_000
WARM_UP_ROUNDS = 3
"""As in large runs, so that the rounds of the median do not measure the JVM's compilers."""
ARRIVAL_US = DAY_US // 100
OVERLAPS = (1, 12, 60)
OVERLAP_PART = 4
"""The chart is measured with a fourth of the events, because it has all overlaps in every round."""
DISTINCT = {"different": ("count_distinct(amount)", "approx_count_distinct(amount)")}
TOLERANCE = 0.02
"""Both estimate how many values differ, by sketches of different kinds."""
BOTH = (TIDEMARK, RECOMPUTE)
ASKED: Mapping[str, tuple[Mapping[str, tuple[str, str]], float, float]] = {
    "sum and count": ({**COUNT, **SUM}, 6, 3.5),
    "max": (MAX, 4, 2),
    "distinct": (DISTINCT, 4, 2.5),
}
"""The aggregates of a window, and the target and floor of their figure."""


def main() -> int:
    """Prints and stores the figures."""
    parser = make_parser(THEME, "overlapping windows, beside Spark's window()")
    add_size(parser, "--events", 1_000_000, "events of one day")
    add_rounds(parser)
    options = parser.parse_args()
    spark = spark_session(THEME, **LARGE_HEAP)
    command = describe_command(THEME, options)
    with temporary_directory(THEME) as root:
        result = measure_sliding_runs(spark, root, command, options.events, options.rounds)
    report_result(result, options.to)
    return 0


def measure_sliding_runs(
    spark: SparkSession, root: Path, command: str, events: int, rounds: int
) -> Result:
    """First loads of each aggregate, then the line of overlaps, after both ran on fewer rows."""
    warm_up = Lake(spark, root / "few", root / "warm_up", KEYS)
    warm_up.land(0, min(events, WARM_UP_EVENTS), START_US, DAY_US)
    lake = Lake(spark, root / "source", root, KEYS)
    lake.land(0, events, START_US, DAY_US)
    times: list[Times] = []
    figures: list[Figure] = []
    for name, (aggregates, target, floor) in ASKED.items():
        work = make_work(60, aggregates)
        measure_loads(warm_up.written_in(name), work, WARM_UP_ROUNDS)
        phase = f"first load of {describe_count(events)}, 1 hour every minute, {name}"
        times += gather_times(phase, measure_loads(lake.written_in(name), work, rounds))
        figures.append(make_window_figure(times, phase, target, floor))
    few = max(events // OVERLAP_PART, 10)
    part = Lake(spark, root / "part", root / "overlaps", KEYS)
    part.land(0, few, START_US, DAY_US)
    overlaps = measure_overlaps(part, few, rounds)
    return Result(THEME, command, tuple(figures), (*times, *overlaps), make_points(overlaps))


def make_window_figure(times: Sequence[Times], phase: str, target: float, floor: float) -> Figure:
    """Spark's window() beside Tidemark."""
    ratio = compare_times(times, phase, RECOMPUTE, TIDEMARK)
    return at_least(f"{phase}: Spark window() to Tidemark", ratio.cpu, target, floor, ratio.beside)


def make_work(overlap: int, aggregates: Mapping[str, tuple[str, str]]) -> Work:
    """An hour that begins so often that `overlap` windows have each event."""
    slide = f"{60 // overlap} minutes"
    return Work(
        {"kind": "sliding", "size": "1 hour", "slide": slide},
        f"window(at, '1 hour', '{slide}')",
        aggregates,
    )


def measure_loads(lake: Lake, work: Work, rounds: int) -> list[dict[str, Took]]:
    """First loads into a directory for each round."""
    took = []
    for number in range(rounds):
        there = lake.written_in(f"round{number}")
        took.append(time_in_turn(lake.spark, bind_contenders(there, work, BOTH), number))
        compare_tables(there, work)
    return took


def compare_tables(lake: Lake, work: Work) -> None:
    """Ends the program where tables differ: estimates in sum, everything else row by row."""
    if work.aggregates != DISTINCT:
        check_tables(lake, work, BOTH)
        return
    (estimate,) = work.aggregates
    keys = [name for name in work.columns if name != estimate]
    tables = [read_table(lake, name) for name in BOTH]
    digests = [digest_rows(rows, keys) for rows in tables]
    ours, theirs = (rows.agg(F.sum(estimate)).collect()[0][0] for rows in tables)
    if digests[0] != digests[1] or abs(ours - theirs) > TOLERANCE * ours:
        raise SystemExit(f"the tables differ: {digests}, estimates {ours} and {theirs}")


def measure_overlaps(lake: Lake, events: int, rounds: int) -> list[Times]:
    """Runs with 1 % more rows, all on time, in pipelines that read the same source."""
    rows = max(events // 100, 10)
    works = {overlap: make_work(overlap, {**COUNT, **SUM}) for overlap in OVERLAPS}
    for overlap, work in works.items():
        run_tidemark(lake.written_in(str(overlap)), work)
    measured: dict[int, list[dict[str, Took]]] = {overlap: [] for overlap in OVERLAPS}
    for number in range(rounds):
        now_us = START_US + DAY_US + number * ARRIVAL_US
        lake.land(events + number * rows, rows, now_us, ARRIVAL_US)
        for overlap, work in works.items():
            there = lake.written_in(str(overlap))
            took = time_in_turn(lake.spark, bind_contenders(there, work, BOTH), number)
            measured[overlap].append(took)
            check_tables(there, work, BOTH)
    times: list[Times] = []
    for overlap, of_rounds in measured.items():
        times += gather_times(describe_overlap(overlap, events), of_rounds)
    return times


def describe_overlap(overlap: int, events: int) -> str:
    """The phase of one overlap."""
    return f"1 % more on {describe_count(events)}, size / slide {overlap}"


def make_points(times: Sequence[Times]) -> tuple[Point, ...]:
    """The lines of the chart: overlaps."""
    lines = {TIDEMARK: "Tidemark, a run with 1 % more", RECOMPUTE: "Spark window(), all again"}
    return tuple(
        Point(CHART, lines[each.contender], float(each.phase.rpartition(" ")[2]), each.median)
        for each in times
    )


if __name__ == "__main__":
    sys.exit(main())
