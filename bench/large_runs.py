"""First loads, and 1 % more rows, beside a batch recompute and Spark Structured Streaming.

    python -m bench.large_runs [--events 5000000] [--history 50000000] [--rounds 3] [--to FILE]

Hourly count, sum and maximum by user. Every contender reads the same Delta table and writes one;
after each phase the tables are compared before a time counts.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from bench.contenders import (
    DAY_US,
    HOURLY,
    PEER_SETTINGS,
    RECOMPUTE,
    START_US,
    STREAMING,
    TIDEMARK,
    Lake,
    bind_contenders,
    check_tables,
)
from bench.figures import Figure, Result, Times, Took, at_least, at_most, report_result
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

THEME = "large_runs"
KEYS = 20_000
WARM_UP_EVENTS = 500_000
WARM_UP_ROUNDS = 3
"""The JVM goes on compiling what a first load of millions runs for several loads.

Without such a warm-up the rounds of the median would measure compilers, of whoever runs most code.
"""
NEW_SHARE = 0.01
ARRIVAL_US = DAY_US // 48
LOAD, ON_TIME, LATE = "first load", "1 % more", "1 % more, a tenth up to a day late"
ALL = (TIDEMARK, STREAMING, RECOMPUTE)
TWO = (TIDEMARK, RECOMPUTE)


@dataclass(frozen=True)
class Arrivals:
    """How many rows a lake has, and how many arrivals of the same size followed."""

    lake: Lake
    history: int

    @property
    def rows(self) -> int:
        """The rows of one arrival."""
        return max(int(self.history * NEW_SHARE), 10)

    def land_next(self, number: int, late: int) -> None:
        """The rows of arrival `number`, half an hour after the one before it.

        The `late` of them are spread over the day before.
        """
        first = self.history + number * self.rows
        now_us = START_US + DAY_US + number * ARRIVAL_US
        self.lake.land(first, self.rows - late, now_us, ARRIVAL_US)
        if late:
            self.lake.land(first + self.rows - late, late, now_us - DAY_US, DAY_US)


def main() -> int:
    """Prints and stores the figures."""
    parser = make_parser(THEME, "first loads and 1 % more rows, beside Spark alone")
    add_size(parser, "--events", 5_000_000, "events of the lake in which all contenders run")
    add_size(parser, "--history", 50_000_000, "events of the lake for a recompute and runs alone")
    add_rounds(parser)
    options = parser.parse_args()
    spark = spark_session(THEME, **PEER_SETTINGS)
    command = describe_command(THEME, options)
    with temporary_directory(THEME) as root:
        result = measure_large_runs(
            spark, root, command, options.events, options.history, options.rounds
        )
    report_result(result, options.to)
    return 0


def measure_large_runs(
    spark: SparkSession, root: Path, command: str, events: int, history: int, rounds: int
) -> Result:
    """The figures of both lakes, after all contenders have run some rounds on fewer rows."""
    few = min(events, WARM_UP_EVENTS)
    measure_lake(spark, root / "warm_up", few, ALL, WARM_UP_ROUNDS, others=WARM_UP_ROUNDS)
    times = measure_lake(spark, root / "events", events, ALL, rounds, others=rounds)
    figures = make_load_figures(times, events) + [make_arrival_figure(times, events, 3, 1.5)]
    figures += make_streaming_figures(times, events)
    # One first load of the large lake takes minutes, and so does an arrival with late rows.
    large = measure_lake(spark, root / "history", history, TWO, rounds, others=1)
    figures.append(make_arrival_figure(large, history, 20, 8))
    return Result(THEME, command, tuple(figures), (*times, *large))


def measure_lake(
    spark: SparkSession,
    root: Path,
    events: int,
    names: Sequence[str],
    rounds: int,
    others: int,
) -> list[Times]:
    """First loads of one lake, then arrivals: `rounds` on time, `others` of everything else.

    Each load writes to a directory of its own, and the last of them goes on with the arrivals.
    """
    lake = Lake(spark, root / "source", root, KEYS)
    lake.land(0, events, START_US, DAY_US)
    loaded: list[dict[str, Took]] = []
    there = lake
    for number in range(others):
        there = lake.written_in(f"round{number}")
        loaded.append(time_in_turn(spark, bind_contenders(there, HOURLY, names), number))
        check_tables(there, HOURLY, names)
    arrivals = Arrivals(lake, events)
    took: dict[str, list[dict[str, Took]]] = {ON_TIME: [], LATE: []}
    turns = [(turn, ON_TIME) for turn in range(rounds)] + [(turn, LATE) for turn in range(others)]
    # A round has an arrival on time and then, while there are others, one with late rows.
    for number, (turn, phase) in enumerate(sorted(turns, key=lambda each: each[0])):
        arrivals.land_next(number, arrivals.rows // 10 if phase == LATE else 0)
        actions = bind_contenders(there, HOURLY, names)
        took[phase].append(time_in_turn(spark, actions, turn))
        check_tables(there, HOURLY, names)
    size = describe_count(events)
    times = gather_times(f"{LOAD} of {size}", loaded)
    for phase, of_rounds in took.items():
        times += gather_times(f"{phase} on {size}", of_rounds)
    return times


def make_load_figures(times: Sequence[Times], events: int) -> list[Figure]:
    """The first load beside a recompute."""
    size = describe_count(events)
    ratio = compare_times(times, f"{LOAD} of {size}", TIDEMARK, RECOMPUTE)
    name = f"{LOAD} of {size}: Tidemark to batch recompute"
    return [at_most(name, ratio.cpu, 1.2, 1.5, ratio.beside)]


def make_arrival_figure(
    times: Sequence[Times], history: int, target: float, floor: float
) -> Figure:
    """A recompute beside a run with 1 % more rows."""
    size = describe_count(history)
    on_time = compare_times(times, f"{ON_TIME} on {size}", RECOMPUTE, TIDEMARK)
    late = compare_times(times, f"{LATE} on {size}", RECOMPUTE, TIDEMARK)
    beside = f"{on_time.beside}; a tenth of it up to a day late: {late.cpu:.2f}, {late.beside}"
    name = f"{ON_TIME} on {size}: batch recompute to Tidemark"
    return at_least(name, on_time.cpu, target, floor, beside)


def make_streaming_figures(times: Sequence[Times], events: int) -> list[Figure]:
    """Structured Streaming beside a first load, and beside a run with 1 % more rows."""
    size = describe_count(events)
    load = compare_times(times, f"{LOAD} of {size}", STREAMING, TIDEMARK)
    on_time = compare_times(times, f"{ON_TIME} on {size}", STREAMING, TIDEMARK)
    late = compare_times(times, f"{LATE} on {size}", STREAMING, TIDEMARK)
    beside = f"{on_time.beside}; a tenth of it up to a day late: {late.cpu:.2f}, {late.beside}"
    pair = "Structured Streaming to Tidemark"
    return [
        at_least(f"{LOAD} of {size}: {pair}", load.cpu, 1, 0.9, load.beside),
        at_least(f"{ON_TIME} on {size}: {pair}", on_time.cpu, 2, 1, beside),
    ]


if __name__ == "__main__":
    sys.exit(main())
