"""The demo: real flights land in a Delta table, and Airflow runs the pipeline on each arrival.

Late flights then correct what was published. Rows that are no flights are deleted from the source,
and a backfill takes them out of the outputs and accepts the flights that were too late.

    python -m jobs.local.demo [--home build/demo]
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from expectations.docs import list_sites
from expectations.places import docs_of
from jobs.console import Printer, redirected_stdio
from jobs.local.flights import (
    EXERCISE,
    Arrival,
    delete_exercise,
    land_arrival,
    land_exercise,
    load_flights,
)
from jobs.read import read
from jobs.session import spark_session
from jobs.sessions.process import stay_on_utc
from jobs.sessions.profiles import TINY
from windowing.errors import TidemarkError, UsageError
from windowing.ledger.table import read_history
from windowing.report.frame import records
from windowing.report.text import interval
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.storage import own_tables

ROOT = Path(__file__).parents[2]
AIRFLOW = ROOT / ".venv-airflow" / "bin" / "airflow"
TIDEMARK = ROOT / ".venv" / "bin" / "tidemark"
HOME = ROOT / "build" / "demo"
"""The directory of the demo unless --home names another."""
LOG = "commands.log"
MARK = ".demo"
"""The file that marks the directory of a demo, so that no other directory is deleted."""
HOUR = timedelta(hours=1)
ZONE = "America/New_York"
"""The clock of the windows."""
FIRST = datetime(2013, 3, 9, 5, tzinfo=UTC)
"""Midnight in New York on the eve of the change to daylight saving time."""
CUTS = (
    FIRST,
    datetime(2013, 3, 10, tzinfo=UTC),
    datetime(2013, 3, 10, 16, tzinfo=UTC),
    datetime(2013, 3, 11, 6, tzinfo=UTC),
)
EXERCISE_START = datetime(2013, 3, 9, 13, 30, tzinfo=UTC)
"""From when on rows happen for an hour that are no flights."""
_INTERRUPTED = 130
"""The exit code of what Ctrl-C has ended, as shells have it."""
PRINTER = Printer(as_json=False)
CONSOLE = PRINTER.console


def print_rows(title: str, rows: DataFrame, columns: Sequence[str]) -> None:
    """Prints a table of a few rows; the bounds of windows become one column, [start, end)."""
    found = records(rows, 30)
    if not {"window_start", "window_end"} <= set(columns):
        lines = [[row[name] for name in columns] for row in found]
        PRINTER.data(columns, lines, title)
        return
    for row in found:
        row["window"] = interval(row["window_start"], row["window_end"], ZONE)
    heads = []
    for name in columns:
        if name == "window_start":
            heads.append("window")
        elif name != "window_end":
            heads.append(name)
    lines = [[row[name] for name in heads] for row in found]
    PRINTER.data(heads, lines, title)


@dataclass(frozen=True)
class Demo:
    """One demo: its directory with a copy of the spec, a lake and Airflow, and its session.

    `variables` are the environment of its commands.
    """

    home: Path
    variables: Mapping[str, str]
    spark: SparkSession
    pipeline: Pipeline

    def rows(self, window: str) -> DataFrame:
        """The published rows of one output."""
        return read(self.spark, self.pipeline, window)


@contextmanager
def variables_for_commands() -> Iterator[dict[str, str]]:
    """The environment of the demo's commands, in which they share a warm engine of their own.

    It is made before there is a session, because that sets variables of its own, and commands use
    an engine only where those are the same. The engine ends with the demo.
    """
    with TemporaryDirectory(prefix="tidemark-") as place:
        variables = {"TIDEMARK_ENGINE": "auto", **os.environ, "XDG_RUNTIME_DIR": place}
        try:
            yield variables
        finally:
            _run_engine(variables, "stop")


def _run_engine(variables: Mapping[str, str], word: str) -> None:
    """Starts or stops the engine; without one, each task starts a JVM of its own."""
    command = [str(TIDEMARK), "engine", word]
    subprocess.run(command, env=variables, capture_output=True, check=False)


def run_airflow(home: Path, variables: Mapping[str, str], *words: str) -> None:
    """Runs one Airflow command with the database of the demo, whatever `variables` say of it."""
    others = {name: value for name, value in variables.items() if not _is_of_airflow(name)}
    settings = {
        "AIRFLOW_HOME": str(home / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow/airflow.db",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        "TIDEMARK_PIPELINES": str(home / "pipelines"),
        "TIDEMARK_BIN": str(TIDEMARK),
    }
    run_command(home, {**others, **settings}, AIRFLOW, *words)


def _is_of_airflow(variable: str) -> bool:
    """Whether a variable sets up an Airflow, or names a file that does."""
    return variable == "AIRFLOW_CONFIG" or variable.startswith("AIRFLOW__")


def run_command(home: Path, variables: Mapping[str, str], *words: str | Path) -> None:
    """Runs one command; its output goes to a log, whose end is printed when it fails."""
    log = home / LOG
    with log.open("a", encoding="utf-8") as file:
        done = subprocess.run(
            list(words), env=variables, stdout=file, stderr=subprocess.STDOUT, check=False
        )
    if done.returncode:
        last_lines = log.read_text(encoding="utf-8").splitlines()[-25:]
        CONSOLE.print("\n".join(last_lines), style="red", markup=False)
        command = " ".join([Path(words[0]).name, *map(str, words[1:])])
        sys.exit(f"{command} ended with {done.returncode}; its log is {log}")


def main() -> int:
    """Runs the demo from the first arrival to the backfill; returns 0 when every run succeeded.

    Otherwise it is the exit code of the error, or 130 after Ctrl-C.
    """
    parser = argparse.ArgumentParser(
        description="the demo of Tidemark: real flights, Airflow, Spark, Delta"
    )
    parser.add_argument("--home", type=Path, default=HOME)
    home = parser.parse_args().home.resolve()
    begun = time.monotonic()
    try:
        with variables_for_commands() as variables:
            play(prepare_demo(home, variables))
    except TidemarkError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("\ninterrupted; the next demo begins anew", file=sys.stderr)
        return _INTERRUPTED
    CONSOLE.print(f"\n{time.monotonic() - begun:.0f} seconds in all.")
    return 0


def play(demo: Demo) -> None:
    """Plays the arrivals, then the backfill, and prints what there is then."""
    all_flights = load_flights()
    ranges = zip(CUTS, CUTS[1:], strict=False)
    for number, (start, end) in enumerate(ranges, 1):
        # Later arrivals repeat some rows, so that duplicates can be seen.
        repeated = 0 if number == 1 else 15
        if number == 1:
            land_exercise(demo.spark, all_flights, EXERCISE_START, demo.pipeline.source.table)
        play_arrival(demo, all_flights, number, Arrival(start, end, repeated))
    play_repair(demo)
    print_results(demo)


def prepare_demo(home: Path, variables: Mapping[str, str]) -> Demo:
    """Makes an empty lake, a copy of the shipped spec and Airflow's embedded database."""
    CONSOLE.rule("Tidemark: windows that stay right")
    _refuse_other_directory(home)
    for name in ("lake", "pipelines", LOG):
        path = home / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    spec = home / "pipelines" / "departures.yaml"
    spec.parent.mkdir(parents=True)
    (home / MARK).touch()
    shutil.copy(ROOT / "pipelines" / "departures.yaml", spec)
    pipeline = load_pipeline(spec)
    CONSOLE.print(
        "Airflow's embedded database (SQLite, nothing listens) and a warm engine, which the tasks "
        "share, are made ready ..."
    )
    # They and Spark's session are made at the same time.
    with ThreadPoolExecutor(2) as others, redirected_stdio():
        migrated = others.submit(run_airflow, home, variables, "db", "migrate")
        started = others.submit(_run_engine, variables, "start")
        stay_on_utc()
        session = spark_session("demo", **TINY, **{"spark.driver.memory": "1g"})
    migrated.result()
    started.result()
    return Demo(home, variables, session, pipeline)


def _refuse_other_directory(home: Path) -> None:
    """Raises UsageError if `home` contains files that no demo has made, so none are deleted."""
    if home.exists() and not home.is_dir():
        raise UsageError(f"--home {home} is a file; name a directory")
    is_foreign = home != HOME and home.exists() and not (home / MARK).exists()
    if is_foreign and any(home.iterdir()):
        raise UsageError(
            f"--home {home} is not empty, and no demo has made it; "
            "name a directory that is new, or one of an earlier demo"
        )


def play_arrival(demo: Demo, all_flights: pd.DataFrame, number: int, new: Arrival) -> None:
    """Lands one arrival, lets Airflow run the DAG, and prints what that changed."""
    times = interval(new.start, new.end)
    CONSOLE.rule(f"Arrival {number} of {len(CUTS) - 1}: flights that landed {times}")
    landed = land_arrival(demo.spark, all_flights, new, demo.pipeline.source.table)
    before: DataFrame | None = None
    if number > 1:
        # The published version changes below, so its rows are cached before.
        before = demo.rows("hourly").persist()
        before.count()
    again = f", {new.repeated} of them for the second time" if new.repeated else ""
    CONSOLE.print(
        f"{landed} rows landed{again}. "
        "Airflow runs the DAG: run -> validate -> publish -> announce, report ..."
    )
    took = measure_seconds(
        lambda: run_airflow(demo.home, demo.variables, "dags", "test", "departures")
    )
    CONSOLE.print(f"The DAG run succeeded after {took:.0f} s.")
    print_outcomes(demo)
    if before is not None:
        print_corrections(demo, before)


def measure_seconds(step: Any) -> float:
    """How many seconds `step` took; a terminal shows meanwhile that it goes on."""
    begun = time.monotonic()
    with CONSOLE.status("at work"):
        step()
    return time.monotonic() - begun


def print_outcomes(demo: Demo) -> None:
    """Prints the rows that each run has read, by outcome."""
    rows = own_tables.read(demo.spark, demo.pipeline.table("_watermarks")).orderBy("run")
    columns = ["run", "read", "accepted", "late", "duplicate", "quarantined", "watermark"]
    print_rows("Outcomes of the rows read", rows, columns)


def print_corrections(demo: Demo, before: DataFrame) -> None:
    """Prints the published window that this arrival changed most, before and after."""
    window = ["origin", "window_start", "window_end"]
    old_values = [F.col(name).alias(f"{name} before") for name in ("flights", "worst")]
    old = before.select(*window, *old_values)
    new = demo.rows("hourly").select(*window, "flights", "worst", "revision")
    changed = old.join(new, window).where("`flights before` <> flights")
    added = F.col("flights") - F.col("flights before")
    most = changed.orderBy(F.desc(added), *window).limit(1).cache()
    CONSOLE.print(
        f"{changed.count()} hourly windows that were published already were corrected "
        "by flights that landed later."
    )
    columns = [*window, "flights before", "flights", "worst before", "worst", "revision"]
    print_rows("The window that changed most, before and after", most, columns)


def play_repair(demo: Demo) -> None:
    """Takes rows that are no flights out of the source, and lets the outputs follow it.

    A flight that was too late for a window of that time is accepted, as by any backfill.
    """
    late = own_tables.read(demo.spark, demo.pipeline.table("_late"))
    unresolved = late.where("resolved_by is null").select(
        "flight_id",
        "dest",
        "departed_at",
        "landed_at",
        F.concat_ws(", ", "missed.window").alias("missed"),
        "outcome",
    )
    CONSOLE.rule("Repair: bad rows are taken out, a late one is let in")
    CONSOLE.print(
        "Flights that were in the air for longer than the allowed lateness "
        "are late for windows that have closed."
    )
    print_rows("Late for a window", unresolved.orderBy("departed_at").limit(8), unresolved.columns)
    source = demo.pipeline.source.table
    no_flights = own_tables.read(demo.spark, source).where(F.col("flight_id").startswith(EXERCISE))
    CONSOLE.print(
        f"{no_flights.count()} rows that landed with the first arrival and were published are no "
        "flights but an exercise. They are deleted from the source."
    )
    before = _show_exercise(demo).persist()
    before.count()
    delete_exercise(demo.spark, source)
    flights_before = _count_flights(demo)
    took = measure_seconds(lambda: _run_repair(demo))
    flights_after = _count_flights(demo)
    CONSOLE.print(f"tidemark backfill --source newest --validate, publish: {took:.0f} s.")
    CONSOLE.print(
        f"The hourly windows contain {flights_after} flights now; "
        f"before the repair it was {flights_before}."
    )
    places = ["origin", "window_start", "window_end"]
    after = _show_exercise(demo).withColumnRenamed("flights", "flights after")
    hours = before.withColumnRenamed("flights", "flights before").join(after, places)
    columns = [*places, "flights before", "flights after"]
    print_rows("The hours of the exercise, before and after", hours.orderBy(*places), columns)


def _show_exercise(demo: Demo) -> DataFrame:
    is_of_exercise = F.col("window_start").between(EXERCISE_START - HOUR, EXERCISE_START + HOUR)
    columns = ("origin", "window_start", "window_end", "flights")
    return demo.rows("hourly").where(is_of_exercise).select(*columns)


def _count_flights(demo: Demo) -> Any:
    return demo.rows("hourly").agg(F.sum("flights")).collect()[0][0]


def _run_repair(demo: Demo) -> None:
    """What the backfill DAG does: backfill and validate, publish."""
    spec = demo.home / "pipelines" / "departures.yaml"
    newest = ("--source", "newest", "--validate")
    run_command(demo.home, demo.variables, TIDEMARK, "backfill", spec, *newest)
    run_command(demo.home, demo.variables, TIDEMARK, "publish", spec)


def print_results(demo: Demo) -> None:
    """Prints the outputs, the outcomes of expectations, and where lake and reports are."""
    CONSOLE.rule("What there is now")
    daily = demo.rows("daily").orderBy("window_start", "origin")
    windows = ["origin", "window_start", "window_end"]
    aggregates = ["flights", "mean_delay", "p95", "planes"]
    print_rows("daily, published", daily, [*windows, *aggregates, "is_final"])
    quarantine = own_tables.read(demo.spark, demo.pipeline.table("_quarantine"))
    print_rows("Quarantine, by reason", quarantine.groupBy("reason").count(), ["reason", "count"])
    quality = own_tables.read(demo.spark, demo.pipeline.table("_quality"))
    verdicts = quality.groupBy("run", "seq").agg(
        F.count("*").alias("expectations"), F.count_if(~F.col("success")).alias("failed")
    )
    print_rows("Great Expectations", verdicts.orderBy("seq"), ["run", "expectations", "failed"])
    entries = len(read_history(demo.pipeline).entries)
    sites = list_sites(docs_of(demo.pipeline))
    spec = demo.home / "pipelines" / "departures.yaml"
    lines = [
        f"Lake       {demo.pipeline.root}  ({entries} ledger entries)",
        f"Report     {demo.pipeline.table('_report.html')}",
        f"Data Docs  {sites[0] / 'index.html' if sites else 'none'}",
        f"Next       .venv/bin/tidemark show {spec} hourly --key JFK --published",
    ]
    for line in lines:
        CONSOLE.print(line, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
