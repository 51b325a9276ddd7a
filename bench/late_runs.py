"""What late rows cost: runs with as many new rows, of which none, a tenth, half or all are late.

    python -m bench.late_runs [--events 1000000] [--rounds 3] [--to FILE]

Hourly count, sum and maximum by user over seven days. Late rows are spread over all of them.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from bench.contenders import (
    DAY_US,
    HOURLY,
    RECOMPUTE,
    START_US,
    TIDEMARK,
    Lake,
    bind_contenders,
    check_tables,
    recompute_all,
    run_tidemark,
)
from bench.figures import Figure, Point, Result, Times, Took, at_most, report_result
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

THEME = "late_runs"
CHART = "late share"
KEYS = 20_000
SPAN_US = 7 * DAY_US
ARRIVAL_US = SPAN_US // 100
SHARES = {"all on time": 0.0, "a tenth late": 0.1, "half late": 0.5, "all late": 1.0}


def main() -> int:
    """Prints and stores the figure."""
    parser = make_parser(THEME, "what late rows cost")
    add_size(parser, "--events", 1_000_000, "events of each lake")
    add_rounds(parser)
    options = parser.parse_args()
    spark = spark_session(THEME)
    command = describe_command(THEME, options)
    with temporary_directory(THEME) as root:
        result = measure_late_runs(spark, root, command, options.events, options.rounds)
    report_result(result, options.to)
    return 0


def measure_late_runs(
    spark: SparkSession, root: Path, command: str, events: int, rounds: int
) -> Result:
    """One lake for each share; the first arrival in each of them does not count."""
    lakes = {}
    for name in SHARES:
        there = root / name.replace(" ", "_")
        lakes[name] = Lake(spark, there / "source", there, KEYS)
    for lake in lakes.values():
        lake.land(0, events, START_US, SPAN_US)
        run_tidemark(lake, HOURLY)
    measured = [measure_round(lakes, events, number) for number in range(rounds + 1)]
    for lake in lakes.values():
        recompute_all(lake, HOURLY)
        check_tables(lake, HOURLY, (TIDEMARK, RECOMPUTE))
    phase = f"1 % more on {describe_count(events)} over 7 days"
    times = gather_times(phase, measured[1:])
    figure = make_late_figure(times, phase)
    return Result(THEME, command, (figure,), tuple(times), make_points(times))


def make_late_figure(times: Sequence[Times], phase: str) -> Figure:
    """A run whose new rows are all late beside one with none."""
    ratio = compare_times(times, phase, "all late", "all on time")
    return at_most(f"{phase}: all late to all on time", ratio.cpu, 1.5, 2, ratio.beside)


def measure_round(lakes: dict[str, Lake], events: int, number: int) -> dict[str, Took]:
    """One arrival in each lake."""
    rows = max(events // 100, 10)
    for name, lake in lakes.items():
        late = round(rows * SHARES[name])
        first = events + number * rows
        # On time rows continue at the rate of the history, a hundredth of its span.
        now_us = START_US + SPAN_US + number * ARRIVAL_US
        if late < rows:
            lake.land(first, rows - late, now_us, ARRIVAL_US)
        if late:
            lake.land(first + rows - late, late, START_US, SPAN_US)
    spark = next(iter(lakes.values())).spark
    contenders = {
        name: bind_contenders(lake, HOURLY, [TIDEMARK])[TIDEMARK] for name, lake in lakes.items()
    }
    return time_in_turn(spark, contenders, number)


def make_points(times: Sequence[Times]) -> tuple[Point, ...]:
    """The line of the chart: percent of late rows."""
    return tuple(
        Point(CHART, "a run with 1 % more", 100 * SHARES[each.contender], each.median)
        for each in times
    )


if __name__ == "__main__":
    sys.exit(main())
