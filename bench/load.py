"""A first load of 5 M events into three windows (tumbling, sliding, session) in a driver of 4 GiB.

python -m bench.load [--events 5000000]
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.contenders import DAY_US, START_US, Lake
from bench.rounds import time_action
from bench.themes import temporary_directory
from jobs.console import Printer
from jobs.run import run
from jobs.session import spark_session
from windowing.report.rule import RunReport
from windowing.spec.load import load_pipeline

KEYS = 20_000
WINDOWS = {
    "hourly": {"kind": "tumbling", "size": "1 hour", "zone": "Europe/Berlin"},
    "rolling": {"kind": "sliding", "size": "1 hour", "slide": "15 minutes"},
    "visits": {"kind": "session", "gap": "10 minutes"},
}


def main() -> int:
    """Prints what the load took and how many windows it made."""
    parser = argparse.ArgumentParser(description="a first load into three windows")
    parser.add_argument("--events", type=int, default=5_000_000)
    events = parser.parse_args().events
    spark = spark_session("load")
    with temporary_directory("load") as root:
        land_events(spark, root, events)
        reports: list[RunReport] = []
        took = time_action(lambda: reports.append(load_three_windows(spark, root)))
        figures: dict[str, object] = {
            "events": reports[0].read,
            "wall s": f"{took.wall:.1f}",
            "CPU s": f"{took.cpu:.1f}",
        }
        for name, change in reports[0].windows.items():
            figures[name] = change.inserted
        Printer(as_json=False).facts(figures)
    return 0


def land_events(spark: SparkSession, root: Path, events: int) -> None:
    """Events of one day in the table that `load_three_windows` reads."""
    Lake(spark, root / "events", root, KEYS).land(0, events, START_US, DAY_US)


def load_three_windows(spark: SparkSession, root: Path) -> RunReport:
    """One run that reads everything into three windows with a quantile."""
    return run(spark, load_pipeline(describe_three_windows(str(root), str(root / "events"))))


def describe_three_windows(lake: str, source: str) -> dict[str, Any]:
    """A spec of three windows with a quantile over the events of `source`."""
    return {
        "name": "load",
        "lake": lake,
        "source": {"table": source, "event_time": "at", "key": ["user"]},
        "aggregates": {
            "n": "count()",
            "total": "sum(amount)",
            "most": "max(amount)",
            "p95": "quantile(amount, 0.95)",
        },
        "windows": WINDOWS,
    }


if __name__ == "__main__":
    sys.exit(main())
