"""Whether a lake stays as quick as it was: a late run of it beside the tenth run of a young one.

    python -m bench.many_runs [--runs 1000] [--maintain-every 100] [--rounds 5] [--to FILE]

Each run reads ten new rows into hourly windows. Both lakes are measured in turn in one session,
because the tenth run of a session is slower than a later one whatever the lake is. The last
maintenance is paid in: each run before it carries its share. The late runs are the last ones before
the next maintenance. Beside each run a bare stream of Spark reads the same rows, since the log of
the source grows for it, too.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from bench.contenders import Work, aggregate_events, digest_rows
from bench.figures import Figure, Point, Result, Times, Took, at_most, report_result
from bench.rounds import compare_times, gather_times, time_action, time_in_turn
from bench.standard_runs import HOURLY, append_twice, land, make_pipeline, many_events
from bench.themes import add_size, describe_command, make_parser, temporary_directory
from jobs.maintain import maintain
from jobs.run import run
from jobs.session import spark_session
from windowing.spec.pipeline import Pipeline

THEME = "many_runs"
CHART = "runs of a lake"
ROWS = 10
STEP_S = 900
YOUNG = 10
BARE = "a bare stream of the same rows"
EVERY_NTH = 10
"""The chart has the mean of that many runs."""
WORK = Work(
    {},
    "window(at, '1 hour')",
    {"n": ("count()", "count(*)"), "total": ("sum(amount)", "sum(amount)")},
)


@dataclass(frozen=True)
class Growing:
    """A lake to which tiny runs are added."""

    spark: SparkSession
    root: Path

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline of all its runs."""
        return make_pipeline(self.root, HOURLY)

    def land_next(self, number: int) -> None:
        """Lands the rows of run `number`: a quarter of an hour after those of the one before."""
        land(self.spark, self.root, many_events(number * ROWS, ROWS, low=number * STEP_S))

    def run_next(self, number: int) -> Took:
        """Lands the rows of run `number`, and what the run takes."""
        self.land_next(number)
        return time_action(self.run)

    def run(self) -> None:
        """One run of what has landed."""
        run(self.spark, self.pipeline)

    def stream_bare(self) -> None:
        """The least that reads what has landed: a stream that appends it to two tables."""
        append_twice(self.spark, self.root)

    def check(self) -> None:
        """Ends the program where the output is not what a recompute gives."""
        read = self.spark.read.format("delta")
        events = read.load(str(self.root / "events"))
        tables = [
            read.load(str(self.root / "lake" / "p" / "hourly")),
            aggregate_events(events, WORK),
        ]
        digests = [digest_rows(rows, WORK.columns) for rows in tables]
        if digests[0] != digests[1]:
            raise SystemExit(f"the tables differ: {digests}")


def main() -> int:
    """Prints and stores the figure."""
    parser = make_parser(THEME, "whether a lake of many runs stays quick")
    add_size(parser, "--runs", 1_000, "runs of the old lake")
    add_size(parser, "--maintain-every", 100, "runs between two maintenances")
    add_size(parser, "--rounds", 5, "late runs that are measured beside early ones")
    options = parser.parse_args()
    if (
        options.runs < YOUNG + options.rounds
        or options.runs - options.rounds <= options.maintain_every
    ):
        parser.error("--runs has to leave room for a maintenance and for the late runs")
    spark = spark_session(THEME)
    command = describe_command(THEME, options)
    with temporary_directory(THEME) as root:
        result = measure_many_runs(
            spark, root, command, options.runs, options.maintain_every, options.rounds
        )
    report_result(result, options.to)
    return 0


def measure_many_runs(
    spark: SparkSession, root: Path, command: str, runs: int, maintain_every: int, rounds: int
) -> Result:
    """All runs of the old lake but the last `rounds`, then those beside runs of a young lake."""
    old = Growing(spark, root / "old")
    took: list[Took] = []
    maintained = Took(0, 0)
    for number in range(runs - rounds):
        if number and number % maintain_every == 0:
            maintained = time_action(lambda: maintain(spark, old.pipeline))
        took.append(old.run_next(number))
    young = Growing(spark, root / "young")
    for number in range(YOUNG):
        young.run_next(number)
    late, early = f"run {runs:,}", f"run {YOUNG}"
    measured: list[dict[str, Took]] = []
    bare: list[dict[str, Took]] = []
    old.stream_bare()
    young.stream_bare()
    for number in range(rounds):
        old.land_next(runs - rounds + number)
        young.land_next(YOUNG + number)
        turn = time_in_turn(spark, {late: old.run, early: young.run}, number)
        paid = pay_share(turn[late], maintained, maintain_every)
        measured.append({late: paid, early: turn[early]})
        bare.append(time_in_turn(spark, {late: old.stream_bare, early: young.stream_bare}, number))
    old.check()
    young.check()
    phase = f"{ROWS} rows into a lake"
    times = [
        *gather_times(phase, measured),
        *gather_times(BARE, bare),
        Times("all rows", "maintenance", (maintained,)),
    ]
    figure = make_age_figure(times, phase, late, early)
    return Result(THEME, command, (figure,), tuple(times), make_points(took))


def pay_share(run_took: Took, maintained: Took, runs: int) -> Took:
    """A run with its share of a maintenance after so many runs."""
    return Took(run_took.wall + maintained.wall / runs, run_took.cpu + maintained.cpu / runs)


def make_age_figure(times: Sequence[Times], phase: str, late: str, early: str) -> Figure:
    """A late run beside an early one, and what a bare stream's growth was meanwhile."""
    ratio = compare_times(times, phase, late, early)
    bare = compare_times(times, BARE, late, early)
    name = f"{late} of a lake, maintenance paid in, to {early}"
    beside = f"{ratio.beside}; {BARE}: {bare.cpu:.2f}, {bare.beside}"
    return at_most(name, ratio.cpu, 1.15, 1.3, beside)


def make_points(took: Sequence[Took]) -> tuple[Point, ...]:
    """The line of the chart: means of some neighbouring runs, at the number of the last one."""
    points: list[Point] = []
    for begin in range(0, len(took) - EVERY_NTH + 1, EVERY_NTH):
        some = took[begin : begin + EVERY_NTH]
        wall = sum(each.wall for each in some) / EVERY_NTH
        cpu = sum(each.cpu for each in some) / EVERY_NTH
        points.append(Point(CHART, "a run of ten rows", begin + EVERY_NTH, Took(wall, cpu)))
    return tuple(points)


if __name__ == "__main__":
    sys.exit(main())
