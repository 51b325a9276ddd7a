"""The peak memory of the driver in a first load into three windows with a quantile.

    python -m bench.memory [--events 50000000] [--to FILE]

The three windows are those of `bench.load`, and the session has its usual settings. The peak is
what Linux recorded as the most resident memory that the JVM ever had. The events are landed by a
process of its own, because the JVM would keep the memory of that.
"""

import re
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from bench.contenders import TIDEMARK
from bench.figures import Figure, Result, Times, Took, at_most, report_result
from bench.load import load_three_windows
from bench.processes import run_python
from bench.rounds import time_action
from bench.themes import (
    add_size,
    describe_command,
    describe_count,
    make_parser,
    temporary_directory,
)
from jobs.session import spark_session
from windowing.report.rule import RunReport

THEME = "memory"
GIB_KIB = 1024 * 1024
PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)
LAND = (
    "import sys; from pathlib import Path; from bench.load import land_events; "
    "from jobs.session import spark_session; "
    "land_events(spark_session(), Path(sys.argv[1]), int(sys.argv[2]))"
)


def main() -> int:
    """Prints and stores the figure."""
    parser = make_parser(THEME, "the peak memory of the driver in a first load")
    add_size(parser, "--events", 50_000_000, "events of the load")
    options = parser.parse_args()
    command = describe_command(THEME, options)
    with temporary_directory(THEME) as root:
        run_python(LAND, root, str(options.events))
        result = measure_memory(spark_session(THEME), root, command, options.events)
    report_result(result, options.to)
    return 0


def measure_memory(spark: SparkSession, root: Path, command: str, events: int) -> Result:
    """One load of events that have landed."""
    reports: list[RunReport] = []
    took = time_action(lambda: reports.append(load_three_windows(spark, root)))
    if reports[0].accepted != events:
        raise SystemExit(f"the load accepted {reports[0].accepted:,} of {events:,} events")
    phase = f"first load of {describe_count(events)} into three windows"
    figure = make_memory_figure(phase, read_peak_gib(spark), took)
    return Result(THEME, command, (figure,), (Times(phase, TIDEMARK, (took,)),))


def make_memory_figure(phase: str, peak_gib: float, took: Took) -> Figure:
    """The peak beside what the load took."""
    beside = f"{took.cpu:.0f} CPU s, {took.wall:.0f} wall s"
    return at_most(f"peak memory of the JVM, {phase}, GiB", peak_gib, 4, 4, beside)


def read_peak_gib(spark: SparkSession) -> float:
    """The most resident memory that the JVM of the session ever had."""
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    return parse_peak_gib(Path(f"/proc/{pid}/status").read_text())


def parse_peak_gib(status: str) -> float:
    r"""The peak in the status that Linux gives of a process.

    >>> parse_peak_gib("Name: java\nVmHWM:\t 2097152 kB\n")
    2.0
    """
    found = PEAK.search(status)
    if found is None:
        raise SystemExit("this system does not record the peak memory of processes")
    return int(found[1]) / GIB_KIB


if __name__ == "__main__":
    sys.exit(main())
