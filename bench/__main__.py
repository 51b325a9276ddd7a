"""Measures every theme in a process of its own, and prints one table.

It also draws the charts, and writes the tables of the documentation.

    python -m bench [THEME ...] [--sizes full | small] [--before PATH] [--to DIRECTORY]

A theme alone is `python -m bench.THEME`, with its sizes as options. `--sizes small` shows in some
minutes that everything runs; its figures mean nothing.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.charts import draw_charts
from bench.figures import RESULTS, Figure, print_figures, read_result
from bench.pages import write_tables
from bench.processes import ROOT
from jobs.console import Printer

THEMES: Mapping[str, Mapping[str, str]] = {
    "small_runs": {"full": "", "small": "--history 10000 --rounds 1"},
    "window_counts": {
        "full": "--rounds 5",
        "small": "--history 2000 --rounds 1",
    },
    "before": {"full": "", "small": "--history 10000 --rounds 1"},
    "large_runs": {
        "full": "--rounds 5",
        "small": "--events 20000 --history 30000 --rounds 1",
    },
    "sliding_runs": {"full": "", "small": "--events 5000 --rounds 1"},
    "late_runs": {"full": "", "small": "--events 10000 --rounds 1"},
    "session_runs": {"full": "", "small": "--events 2000 --arrivals 2 --rounds 1"},
    "many_runs": {
        "full": "--runs 100 --maintain-every 25",
        "small": "--runs 12 --maintain-every 5 --rounds 1",
    },
    "memory": {"full": "", "small": "--events 20000"},
    "crossover": {
        "full": "--histories 100000 1000000 10000000 50000000",
        "small": "--histories 10000 20000 --rounds 1",
    },
}
"""The themes in the order in which they are measured, with the sizes that fit an hour, and small
ones."""


def main() -> int:
    """Prints all figures; exit code 1 where a theme failed."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="figures of large and small runs against their targets"
    )
    parser.add_argument("themes", nargs="*", choices=[*THEMES, []], metavar="THEME")
    parser.add_argument("--sizes", choices=("full", "small"), default="full")
    parser.add_argument("--before", type=Path, metavar="PATH", help="a checkout of an older commit")
    parser.add_argument("--to", type=Path, metavar="DIRECTORY")
    options = parser.parse_args()
    printer = Printer(as_json=False)
    # Figures of small sizes mean nothing, so they must not replace those that are committed.
    usual = RESULTS if options.sizes == "full" else ROOT / "build" / "bench"
    directory = (options.to or usual).resolve()
    figures: list[Figure] = []
    failed: list[str] = []
    for theme in options.themes or THEMES:
        file = directory / f"{theme}.json"
        arguments = [*THEMES[theme][options.sizes].split(), "--to", str(file)]
        if theme == "before" and options.before:
            arguments += ["--before", str(options.before.resolve())]
        before = time.monotonic()
        printer.line(f"measures {theme}")
        code = measure_theme(theme, arguments)
        printer.line(f"{theme} took {(time.monotonic() - before) / 60:.1f} minutes")
        if code:
            failed.append(theme)
        elif file.exists() and not (theme == "before" and options.before is None):
            figures += read_result(file).figures
    print_figures(figures)
    for file in draw_charts(directory):
        printer.line(f"drew {file.name}")
    if directory == RESULTS and not failed:
        write_tables()
    for theme in failed:
        printer.line(f"{theme} failed, so its figures are missing")
    return 1 if failed else 0


def measure_theme(theme: str, arguments: Sequence[str]) -> int:
    """The exit code of a theme in a process of its own, so no JVM carries its state to the next."""
    command = [sys.executable, "-m", f"bench.{theme}", *arguments]
    return subprocess.run(command, check=False, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
