"""What small runs cost, warm in one session and cold as commands, beside bare Spark.

    python -m bench.small_runs [--history 1000000] [--rounds 3] [--to FILE]

Prints a table and writes the figures as JSON. Times are medians. A round measures each contender
once, so that a busy machine slows all of them.
"""

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path

import yaml
from pyspark.sql import SparkSession

from bench.figures import Figure, Result, at_most, report_result
from bench.meter import Cost, metered
from bench.processes import run_process, run_python
from bench.standard_runs import (
    HOURLY,
    ROLLING,
    append_twice,
    land,
    make_pipeline,
    make_spec,
    many_events,
    one_event,
)
from bench.themes import (
    add_rounds,
    add_size,
    describe_command,
    make_parser,
    temporary_directory,
)
from jobs.run import run
from jobs.session import spark_session

THEME = "small_runs"
COMMAND = Path(sys.executable).with_name("tidemark")
BARE = (
    "import sys; from jobs.session import spark_session; "
    "print(spark_session().read.format('delta').load(sys.argv[1]).count())"
)
_WARM_UP = 4
_WARM_UP_ENGINE = 2
_ROWS = 1_000


def main() -> int:
    """Prints and stores the figures."""
    parser = make_parser(THEME, "what small runs cost")
    add_size(parser, "--history", 1_000_000, "rows that the standard run finds")
    add_rounds(parser)
    options = parser.parse_args()
    command = describe_command(THEME, options)
    with temporary_directory(THEME) as root:
        # Cold commands come first, while this process has no JVM that takes memory and time.
        figures = _measure_commands(root / "cold", options.rounds)
        spark = spark_session("small-runs")
        figures += _measure_standard_run(spark, root / "standard", options.history)
        figures += _measure_single_events(spark, root / "single", options.rounds)
    report_result(Result(THEME, command, tuple(figures)), options.to)
    return 0


def _measure_standard_run(spark: SparkSession, root: Path, history: int) -> list[Figure]:
    """Two windows with ids, 1,000 new rows of which 100 are late, the last of some warm runs."""
    pipeline = make_pipeline(root, {**HOURLY, **ROLLING}, event_id="id")
    land(spark, root, many_events(0, history, low=0, hours=120))
    run(spark, pipeline)
    cost = Cost()
    for number in range(_WARM_UP + 1):
        low = (120 + number) * 3600
        land(spark, root, many_events(history + number * _ROWS, _ROWS, low, late=7200))
        with metered(spark, root / "lake") as meter:
            meter.start()
            report = run(spark, pipeline)
            cost = meter.stop()
        if report.accepted != _ROWS or not report.windows["rolling"].updated:
            raise SystemExit(f"the standard run did something else: {report}")
    return [
        at_most("standard run: Spark jobs", cost.jobs, 25, 45),
        at_most("standard run: calls over the bridge", cost.calls, 2_500, 5_000),
        at_most("standard run: generated classes", cost.classes, 20, 80),
    ]


def _measure_single_events(spark: SparkSession, root: Path, rounds: int) -> list[Figure]:
    """One event that adds a window, and one that corrects one, beside two bare appends."""
    pipeline = make_pipeline(root, HOURLY)
    land(spark, root, one_event(0))
    land(spark, root, one_event(3600))
    run(spark, pipeline)
    append_twice(spark, root)
    adds: list[float] = []
    corrects: list[float] = []
    appends: list[float] = []
    for number in range(_WARM_UP + rounds):
        land(spark, root, one_event(7200 + 3600 * number))
        appends.append(_time(lambda: append_twice(spark, root)))
        adds.append(_time(lambda: run(spark, pipeline)))
        land(spark, root, one_event(1 + number))
        append_twice(spark, root)
        corrects.append(_time(lambda: run(spark, pipeline)))
    bare = statistics.median(appends[_WARM_UP:])
    return [
        at_most(
            "one event that adds a window, to two bare appends",
            statistics.median(adds[_WARM_UP:]) / bare,
            1.5,
            2.5,
        ),
        at_most(
            "one event that corrects a window, to two bare appends",
            statistics.median(corrects[_WARM_UP:]) / bare,
            2.5,
            4,
        ),
    ]


def _measure_commands(root: Path, rounds: int) -> list[Figure]:
    """Commands on 1,000 new rows, and with nothing new, beside a bare Spark process."""
    root.mkdir(parents=True)
    spec = root / "p.yaml"
    spec.write_text(yaml.safe_dump(make_spec(root, {**HOURLY, **ROLLING})))
    arrivals = count()
    _land_in_a_process(root, next(arrivals))
    _run_command("run", spec)
    return _measure_cold_commands(root, spec, arrivals, rounds) + _measure_warm_commands(
        root, spec, arrivals, rounds
    )


def _measure_cold_commands(
    root: Path, spec: Path, arrivals: Iterator[int], rounds: int
) -> list[Figure]:
    """Each command starts a JVM of its own, if it needs one."""
    bare: list[float] = []
    nothing: list[float] = []
    cold: list[float] = []
    all_four: list[float] = []
    for _ in range(rounds):
        bare.append(_time(lambda: run_python(BARE, root / "events")))
        nothing.append(_time(lambda: _run_command("run", spec)))
        _land_in_a_process(root, next(arrivals))
        cold.append(_time(lambda: _run_command("run", spec)))
        _land_in_a_process(root, next(arrivals))
        all_four.append(_time_dag_run(spec))
    least = statistics.median(bare)
    return [
        at_most(
            "run with nothing new, to a bare process", statistics.median(nothing) / least, 0.1, 0.2
        ),
        at_most(
            "cold run of 1,000 rows, to a bare process", statistics.median(cold) / least, 1.5, 2
        ),
        at_most(
            "the four commands of a DAG run, to a bare process",
            statistics.median(all_four) / least,
            2,
            3,
        ),
    ]


def _measure_warm_commands(
    root: Path, spec: Path, arrivals: Iterator[int], rounds: int
) -> list[Figure]:
    """The commands of a DAG run use an engine that has carried out some before."""
    # An engine of the user's own is left alone.
    engine = {"TIDEMARK_ENGINE": "", "XDG_RUNTIME_DIR": str(root)}
    _run_command("engine", "start", environment=engine)
    bare: list[float] = []
    warm: list[float] = []
    try:
        for _ in range(_WARM_UP_ENGINE):
            _land_in_a_process(root, next(arrivals))
            _time_dag_run(spec, engine)
        for _ in range(rounds):
            bare.append(_time(lambda: run_python(BARE, root / "events")))
            _land_in_a_process(root, next(arrivals))
            warm.append(_time_dag_run(spec, engine))
    finally:
        _run_command("engine", "stop", environment=engine)
    return [
        at_most(
            "the four commands of a DAG run with a warm engine, to a bare process",
            statistics.median(warm) / statistics.median(bare),
            0.5,
            0.8,
        )
    ]


def _time_dag_run(spec: Path, environment: Mapping[str, str] | None = None) -> float:
    """The seconds of run, validate, publish and report."""
    commands = (("run", "--validate"), ("validate",), ("publish",), ("report",))
    return sum(
        _time(partial(_run_command, name, spec, *options, environment=environment))
        for name, *options in commands
    )


def _land_in_a_process(root: Path, number: int) -> None:
    """Appends the rows of arrival `number` from a process of its own, whose JVM ends with it."""
    query = many_events(number * _ROWS, _ROWS, low=number * 3600, late=7200 if number else 0)
    code = (
        "import sys; from pathlib import Path; from bench.standard_runs import land; "
        "from jobs.session import spark_session; "
        "land(spark_session(), Path(sys.argv[1]), sys.argv[2])"
    )
    run_python(code, root, query)


def _run_command(*words: Path | str, environment: Mapping[str, str] | None = None) -> None:
    run_process(COMMAND, *words, environment=environment)


def _time(action: Callable[[], object]) -> float:
    before = time.monotonic()
    action()
    return time.monotonic() - before


if __name__ == "__main__":
    sys.exit(main())
