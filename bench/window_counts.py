"""What further windows of a pipeline cost, compared with one: in one session, and as commands.

    python -m bench.window_counts [--history 20000] [--rounds 5] [--to FILE]

Pipelines with one window and with many read the same source. Each round appends 100 rows, of which
ten are late, and runs every pipeline once, another one first each time.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import SparkSession

from bench.figures import Figure, Result, Times, Took, at_most, report_result
from bench.meter import metered
from bench.processes import adopt_orphans, run_process, run_python, wait_for_orphans
from bench.rounds import (
    Ratio,
    compare_times,
    gather_times,
    order_of_round,
    time_action,
    time_in_turn,
)
from bench.standard_runs import HOURLY, ROLLING, land, make_spec, many_events
from bench.themes import (
    add_rounds,
    add_size,
    describe_command,
    make_parser,
    temporary_directory,
)
from jobs.run import run
from jobs.session import spark_session
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline

THEME = "window_counts"
COMMAND = Path(sys.executable).with_name("tidemark")
ONE, TWELVE, FIFTEEN = "1 window", "12 windows", "15 windows in 12 zones"
WARM = "100 more rows, warm"
COLD_FIRST, COLD_NEXT = "first run of 74 rows, cold", "100 more rows, cold"
_WARM_UP = 4
_ROWS, _FEW_ROWS = 100, 74
_HOURS = 120
Windows = Mapping[str, Mapping[str, Any]]

_ZONES = (
    *("America/Los_Angeles", "America/Denver", "America/Chicago", "America/New_York"),
    *("America/Sao_Paulo", "Europe/London", "Europe/Berlin", "Europe/Istanbul", "Asia/Kolkata"),
    *("Asia/Shanghai", "Asia/Tokyo", "Australia/Sydney"),
)
OF_TWELVE: Windows = {
    **HOURLY,
    **ROLLING,
    "quarters": {"kind": "tumbling", "size": "15 minutes"},
    "days": {"kind": "tumbling", "size": "1 day"},
    "weeks": {"kind": "tumbling", "size": "1 week"},
    "days_berlin": {"kind": "tumbling", "size": "1 day", "zone": "Europe/Berlin"},
    "days_new_york": {"kind": "tumbling", "size": "1 day", "zone": "America/New_York"},
    "shifts": {"kind": "tumbling", "size": "8 hours"},
    "rolling_shift": {"kind": "sliding", "size": "8 hours", "slide": "1 hour"},
    "rolling_day": {"kind": "sliding", "size": "1 day", "slide": "1 hour"},
    "so_far": {"kind": "cumulate", "max_size": "1 day", "step": "1 hour"},
    "rolling_two_days": {"kind": "sliding", "size": "2 days", "slide": "6 hours"},
}
OF_FIFTEEN: Windows = {
    **{
        f"days_{number}": {"kind": "tumbling", "size": "1 day", "zone": zone}
        for number, zone in enumerate(_ZONES)
    },
    "hours": {"kind": "tumbling", "size": "1 hour", "zone": _ZONES[0]},
    "weeks": {"kind": "tumbling", "size": "1 week", "zone": _ZONES[6]},
    "rolling_day": {"kind": "sliding", "size": "1 day", "slide": "6 hours", "zone": _ZONES[11]},
}


def main() -> int:
    """Prints and stores the figures."""
    parser = make_parser(THEME, "what further windows cost")
    add_size(parser, "--history", 20_000, "rows that warm runs find")
    add_rounds(parser)
    options = parser.parse_args()
    command = describe_command(THEME, options)
    with temporary_directory(THEME) as root:
        # Cold commands come first, while this process has no JVM that takes memory and time.
        times = measure_cold_runs(root / "cold", options.rounds)
        spark = spark_session(THEME)
        warm, jobs = measure_warm_runs(spark, root / "warm", options.history, options.rounds)
    figures = (*make_warm_figures(warm, jobs), *make_cold_figures(times))
    report_result(Result(THEME, command, figures, (*warm, *times)), options.to)
    return 0


def measure_warm_runs(
    spark: SparkSession, root: Path, history: int, rounds: int
) -> tuple[list[Times], int]:
    """Each pipeline in every round, and the Spark jobs of the one with many windows."""
    pipelines = {
        ONE: load_pipeline(_make_spec(root, "one", HOURLY)),
        TWELVE: load_pipeline(_make_spec(root, "twelve", OF_TWELVE)),
    }
    land(spark, root, many_events(0, history, low=0, hours=_HOURS))
    for pipeline in pipelines.values():
        run(spark, pipeline)
    measured = []
    for number in range(_WARM_UP + rounds):
        _land_arrival(spark, root, history, number)
        runs = {name: partial(_run_checked, spark, each) for name, each in pipelines.items()}
        measured.append(time_in_turn(spark, runs, number))
    _land_arrival(spark, root, history, _WARM_UP + rounds)
    with metered(spark, root / "twelve") as meter:
        meter.start()
        _run_checked(spark, pipelines[TWELVE])
        jobs = meter.stop().jobs
    return gather_times(WARM, measured[_WARM_UP:]), jobs


def _land_arrival(spark: SparkSession, root: Path, history: int, number: int) -> None:
    low = (_HOURS + number) * 3600
    land(spark, root, many_events(history + number * _ROWS, _ROWS, low, late=7200))


def _run_checked(spark: SparkSession, pipeline: Pipeline) -> None:
    report = run(spark, pipeline)
    changed = {name: counts.inserted + counts.updated for name, counts in report.windows.items()}
    if report.accepted != _ROWS or not all(changed.values()):
        raise SystemExit(f"the run did something else: {report}")


def measure_cold_runs(root: Path, rounds: int) -> list[Times]:
    """Commands that start a JVM of their own: the first run of a lake, and one after it."""
    adopt_orphans()
    first: list[dict[str, Took]] = []
    later: list[dict[str, Took]] = []
    for number in range(rounds):
        there = root / str(number)
        there.mkdir(parents=True)
        commands = {
            name: _make_command(there, label, windows)
            for name, label, windows in (
                (ONE, "one", HOURLY),
                (TWELVE, "twelve", OF_TWELVE),
                (FIFTEEN, "fifteen", OF_FIFTEEN),
            )
        }
        _land_in_a_process(there, many_events(0, _FEW_ROWS, low=0, hours=_HOURS))
        first.append(_time_commands(commands, number))
        _land_in_a_process(there, many_events(_FEW_ROWS, _ROWS, _HOURS * 3600, late=7200))
        later.append(_time_commands(commands, number))
    return gather_times(COLD_FIRST, first) + gather_times(COLD_NEXT, later)


def _make_command(root: Path, name: str, windows: Windows) -> Callable[[], object]:
    spec = root / f"{name}.yaml"
    spec.write_text(yaml.safe_dump(_make_spec(root, name, windows)))

    def command() -> None:
        run_process(COMMAND, "run", spec)
        wait_for_orphans()

    return command


def _time_commands(commands: Mapping[str, Callable[[], object]], number: int) -> dict[str, Took]:
    took = {name: time_action(commands[name]) for name in order_of_round(commands, number)}
    return {name: took[name] for name in commands}


def _make_spec(root: Path, name: str, windows: Windows) -> dict[str, Any]:
    """The standard spec with a lake of its own."""
    spec = make_spec(root, {each: dict(given) for each, given in windows.items()})
    return {**spec, "name": name, "lake": str(root / name)}


def _land_in_a_process(root: Path, query: str) -> None:
    """Appends rows from a process of its own, whose JVM ends with it."""
    code = (
        "import sys; from pathlib import Path; from bench.standard_runs import land; "
        "from jobs.session import spark_session; "
        "land(spark_session(), Path(sys.argv[1]), sys.argv[2])"
    )
    run_python(code, root, query)
    wait_for_orphans()


def make_warm_figures(times: Sequence[Times], jobs: int) -> tuple[Figure, ...]:
    """Many windows compared with one in a session that has made some runs."""
    return (
        _compare(times, WARM, TWELVE, 1.8, 2.2),
        at_most(f"{WARM}: Spark jobs of {TWELVE}", jobs, 25, 30),
    )


def make_cold_figures(times: Sequence[Times]) -> tuple[Figure, ...]:
    """Many windows compared with one in processes of their own."""
    return (
        _compare(times, COLD_FIRST, TWELVE, 2, 2.5),
        _compare(times, COLD_FIRST, FIFTEEN, 2, 2.5),
        _compare(times, COLD_NEXT, TWELVE, 2, 2.5),
        _compare(times, COLD_NEXT, FIFTEEN, 2, 2.5),
    )


def _compare(times: Sequence[Times], phase: str, many: str, target: float, floor: float) -> Figure:
    ratio: Ratio = compare_times(times, phase, many, ONE)
    return at_most(f"{phase}: {many} to {ONE}", ratio.cpu, target, floor, ratio.beside)


if __name__ == "__main__":
    sys.exit(main())
