"""The demo: real flights land in a Delta table, Airflow runs the pipeline on each arrival, late flights correct what was published.

python -m jobs.local.demo [--home build/demo]
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.backfill import backfill
from jobs.console import Printer, aside
from jobs.local.flights import Arrival, flights, land
from jobs.publish import publish
from jobs.read import read
from jobs.session import spark_session
from jobs.validate import validate
from windowing import delta
from windowing.ledger.table import story
from windowing.report.frame import records
from windowing.report.text import interval
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline

ROOT = Path(__file__).parents[2]
AIRFLOW = ROOT / ".venv-airflow" / "bin" / "airflow"
HOME, MARK = ROOT / "build" / "demo", ".demo"
"""Where it lives unless someone says otherwise, and the file by which a directory is known as a demo's."""
DAY = timedelta(days=1)
FIRST = datetime(2013, 3, 9, 5, tzinfo=UTC)
"""Midnight in New York on the eve of the change to daylight saving time."""
CUTS = (
    FIRST,
    datetime(2013, 3, 10, tzinfo=UTC),
    datetime(2013, 3, 10, 16, tzinfo=UTC),
    datetime(2013, 3, 11, 6, tzinfo=UTC),
)
OUT = Printer(as_json=False)
out = OUT.console


def shown(title: str, rows: DataFrame, columns: Sequence[str]) -> None:
    """A table of a few rows; where a window's bounds are among the columns they stand as one, [start, end)."""
    found = records(rows, 30)
    whole = {"window_start", "window_end"} <= set(columns)
    names = [n for n in columns if n != "window_end"] if whole else list(columns)
    heads = ["window" if whole and n == "window_start" else n for n in names]
    cells = [
        [interval(r[n], r["window_end"]) if whole and n == "window_start" else r[n] for n in names]
        for r in found
    ]
    OUT.data(heads, cells, title)


@dataclass(frozen=True)
class Demo:
    """Where one demo lives: its own copy of the spec, its lake and its Airflow."""

    home: Path
    spark: SparkSession
    pipeline: Pipeline

    def rows(self, window: str) -> DataFrame:
        """The published rows of one output."""
        return read(self.spark, self.pipeline, window)


def airflow(home: Path, *words: str) -> None:
    """Runs one Airflow command; its output goes to a log that is shown when it fails."""
    told = {
        "AIRFLOW_HOME": str(home / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        "TIDEMARK_PIPELINES": str(home / "pipelines"),
        "TIDEMARK_BIN": str(ROOT / ".venv" / "bin" / "tidemark"),
    }
    log = home / "airflow.log"
    with log.open("a", encoding="utf-8") as file:
        done = subprocess.run(
            [AIRFLOW, *words],
            env={**os.environ, **told},
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        out.print(
            "\n".join(log.read_text(encoding="utf-8").splitlines()[-25:]), style="red", markup=False
        )
        sys.exit(f"airflow {' '.join(words)} ended with {done.returncode}; its log is {log}")


def main() -> int:
    """Runs the demo from the first arrival to the backfill; 0 when every DAG run was green."""
    asked = argparse.ArgumentParser(
        description="the demo of Tidemark: real flights, Airflow, Spark, Delta"
    )
    asked.add_argument("--home", type=Path, default=HOME)
    begun = time.monotonic()
    demo = prepare(asked.parse_args().home.resolve())
    everything = flights()
    for number, (start, end) in enumerate(zip(CUTS, CUTS[1:], strict=False), 1):
        arrival(demo, everything, number, Arrival(start, end, 0 if number == 1 else 15))
    backfilled(demo)
    farewell(demo)
    out.print(f"\n{time.monotonic() - begun:.0f} seconds in all.")
    return 0


def prepare(home: Path) -> Demo:
    """An empty lake, the shipped spec beside it, and Airflow's embedded database."""
    out.rule("Tidemark: windows that stay right")
    if home != HOME and home.exists() and any(home.iterdir()) and not (home / MARK).exists():
        sys.exit(
            f"--home {home} is not empty, and no demo has made it; name a directory that is new, or one of an earlier demo"
        )
    for name in ("lake", "pipelines", "airflow.log"):
        path = home / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    (home / "pipelines").mkdir(parents=True)
    (home / MARK).touch()
    shutil.copy(ROOT / "pipelines" / "departures.yaml", home / "pipelines" / "departures.yaml")
    pipeline = load_pipeline(home / "pipelines" / "departures.yaml")
    out.print("Airflow's embedded database (SQLite, nothing listens) is made ready ...")
    with ThreadPoolExecutor(1) as others, aside():
        migrated = others.submit(airflow, home, "db", "migrate")
        session = spark_session("demo", **{"spark.driver.memory": "1g"})
    migrated.result()
    return Demo(home, session, pipeline)


def arrival(demo: Demo, everything: pd.DataFrame, number: int, new: Arrival) -> None:
    """Lands one arrival, lets Airflow run the DAG, and shows what that changed."""
    out.rule(f"Arrival {number}: flights that landed {interval(new.start, new.end)}")
    landed = land(demo.spark, everything, new, demo.pipeline.source.table)
    before = demo.rows("hourly").persist() if number > 1 else None
    if before is not None:
        before.count()
    again = f", {new.repeated} of them for the second time" if new.repeated else ""
    out.print(
        f"{landed} rows landed{again}. Airflow runs the DAG: run -> validate -> publish -> announce, report ..."
    )
    took = timed(lambda: airflow(demo.home, "dags", "test", "departures"))
    out.print(f"The DAG run is green after {took:.0f} s.")
    counts(demo)
    if before is not None:
        corrected(demo, before)


def timed(step: Any) -> float:
    """Seconds that `step` took."""
    begun = time.monotonic()
    step()
    return time.monotonic() - begun


def counts(demo: Demo) -> None:
    """Every row that was read, by its outcome."""
    rows = demo.spark.read.format("delta").load(demo.pipeline.table("_watermarks")).orderBy("run")
    shown(
        "What became of each row",
        rows,
        ["run", "read", "accepted", "late", "duplicate", "quarantined", "watermark"],
    )


def corrected(demo: Demo, before: DataFrame) -> None:
    """The published window that this arrival changed most, before and after."""
    after, same = demo.rows("hourly"), ["origin", "window_start", "window_end"]
    old = before.select(*same, *(F.col(c).alias(f"{c} before") for c in ("flights", "worst")))
    both = old.join(after.select(*same, "flights", "worst", "revision"), same)
    most = (
        both.where("`flights before` <> flights")
        .orderBy(F.desc(F.col("flights") - F.col("flights before")), *same)
        .limit(1)
        .cache()
    )
    changed = both.where("`flights before` <> flights").count()
    columns = [*same, "flights before", "flights", "worst before", "worst", "revision"]
    out.print(
        f"{changed} hourly windows that were published already were corrected by flights that landed later."
    )
    shown("The one that changed most, before and after", most, columns)


def backfilled(demo: Demo) -> None:
    """A backfill takes in the flights that came too late for a window."""
    missed = (
        demo.spark.read.format("delta")
        .load(demo.pipeline.table("_late"))
        .where("resolved_by is null")
    )
    kept = missed.select(
        "flight_id",
        "dest",
        "departed_at",
        "landed_at",
        F.concat_ws(", ", "missed.window").alias("missed"),
        "outcome",
    )
    out.rule("Backfill")
    out.print(
        "Flights that were in the air for longer than the allowed lateness: the windows they missed have closed."
    )
    shown("Too late for a window", kept.orderBy("departed_at").limit(8), kept.columns)
    before = demo.rows("hourly").agg(F.sum("flights")).collect()[0][0]
    took = timed(lambda: _backfill(demo))
    after = demo.rows("hourly").agg(F.sum("flights")).collect()[0][0]
    low, high = FIRST.isoformat(), (FIRST + 2 * DAY).isoformat()
    out.print(f"tidemark backfill --from {low} --to {high}, validate, publish: {took:.0f} s.")
    out.print(f"The hourly windows hold {after} flights now; before the backfill it was {before}.")


def _backfill(demo: Demo) -> None:
    """What the backfill DAG does, in this process: backfill, validate, publish."""
    backfill(demo.spark, demo.pipeline, FIRST, FIRST + 2 * DAY)
    validate(demo.spark, demo.pipeline)
    publish(demo.spark, demo.pipeline)


def farewell(demo: Demo) -> None:
    """The tables to look at, what the expectations said, and where the reports lie."""
    out.rule("What there is now")
    daily = demo.rows("daily").orderBy("window_start", "origin")
    shown(
        "daily, published",
        daily,
        [
            "origin",
            "window_start",
            "window_end",
            "flights",
            "mean_delay",
            "p95",
            "planes",
            "is_final",
        ],
    )
    bad = delta.read(demo.spark, demo.pipeline.table("_quarantine"))
    shown("Quarantine, by reason", bad.groupBy("reason").count(), ["reason", "count"])
    quality = delta.read(demo.spark, demo.pipeline.table("_quality"))
    verdict = quality.groupBy("run", "seq").agg(
        F.count("*").alias("expectations"), F.count_if(~F.col("success")).alias("failed")
    )
    shown("Great Expectations", verdict.orderBy("seq"), ["run", "expectations", "failed"])
    docs = Path(demo.pipeline.table("_docs"))
    past = story(demo.spark, demo.pipeline)
    newest = sorted(docs.glob("*/index.html"), key=lambda p: p.stat().st_mtime)
    out.print(
        f"Lake       {demo.pipeline.root}  ({len(past.entries)} ledger entries)", soft_wrap=True
    )
    out.print(f"Report     {demo.pipeline.table('_report.html')}", soft_wrap=True)
    out.print(f"Data Docs  {newest[-1] if newest else docs}", soft_wrap=True)
    spec = demo.home / "pipelines" / "departures.yaml"
    out.print(
        f"Next       .venv/bin/tidemark show {spec} hourly --key JFK --published", soft_wrap=True
    )


if __name__ == "__main__":
    sys.exit(main())
