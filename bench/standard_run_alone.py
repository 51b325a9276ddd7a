"""One standard run, printed as JSON: what the fifth warm run of a process takes.

    PYTHONPATH=CHECKOUT python bench/standard_run_alone.py LAKE HISTORY

It imports the product from the checkout that PYTHONPATH names, so it can measure an older one. Of
this checkout it needs only the pipeline and the rows of `standard_runs`.
"""

import json
import sys
import time
from pathlib import Path

import psutil
from standard_runs import HOURLY, ROLLING, land, make_pipeline, many_events  # type: ignore

import windowing
from jobs.run import run
from jobs.session import spark_session

ROWS = 1_000
RUNS = 5
HOURS = 120


def main() -> int:
    """Prints wall and CPU seconds of the last run, and where the product was imported from."""
    root, history = Path(sys.argv[1]), int(sys.argv[2])
    spark = spark_session("standard-run")
    pipeline = make_pipeline(root, {**HOURLY, **ROLLING}, event_id="id")
    land(spark, root, many_events(0, history, low=0, hours=HOURS))
    run(spark, pipeline)
    wall = cpu = 0.0
    for number in range(RUNS):
        low = (HOURS + number) * 3600
        land(spark, root, many_events(history + number * ROWS, ROWS, low, late=7200))
        cpu_before, wall_before = read_cpu_seconds(), time.monotonic()
        report = run(spark, pipeline)
        wall, cpu = time.monotonic() - wall_before, read_cpu_seconds() - cpu_before
        if report.accepted != ROWS or not report.windows["rolling"].updated:
            raise SystemExit(f"the standard run did something else: {report}")
    place = str(Path(str(windowing.__file__)).parents[1])
    print(json.dumps({"wall": wall, "cpu": cpu, "product": place}))
    return 0


def read_cpu_seconds() -> float:
    """CPU seconds so far of this process and its JVM.

    The checkout that is measured may have no such function.
    """
    this = psutil.Process()
    used = [each.cpu_times() for each in (this, *this.children(recursive=True))]
    return float(sum(each.user + each.system for each in used))


if __name__ == "__main__":
    sys.exit(main())
