"""A first load of 5 M events into three windows (tumbling, sliding, session) in a driver of 4 GiB.

python -m bench.load [--events 5000000]
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from bench.__main__ import DAY_US, START_US, Bench, cpu_seconds
from jobs.console import Printer
from jobs.run import run
from jobs.session import spark_session
from windowing.spec.load import load_pipeline

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
    spark = spark_session("load", **{"spark.driver.memory": "4g"})
    root = Path(tempfile.mkdtemp(prefix="load-"))
    try:
        bench = Bench(spark, root, events)
        bench.land(0, events, START_US, DAY_US)
        spec = {
            "name": "load",
            "lake": str(root),
            "source": {"table": bench.source, "event_time": "at", "key": ["user"]},
            "aggregates": {
                "n": "count()",
                "total": "sum(amount)",
                "most": "max(amount)",
                "p95": "quantile(amount, 0.95)",
            },
            "windows": WINDOWS,
        }
        wall_before = time.monotonic()
        cpu_before = cpu_seconds(spark)
        report = run(spark, load_pipeline(spec))
        figures: dict[str, object] = {
            "events": report.read,
            "wall s": f"{time.monotonic() - wall_before:.1f}",
            "CPU s": f"{cpu_seconds(spark) - cpu_before:.1f}",
        }
        for name, change in report.windows.items():
            figures[name] = change.inserted
        Printer(as_json=False).facts(figures)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
