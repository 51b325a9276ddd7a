"""The standard run of this checkout beside that of an older one, in the same hour.

    python -m bench.before --before PATH [--history 1000000] [--rounds 3] [--to FILE]

PATH is a checkout whose product runs in this environment. Each round starts a process for either,
and each process measures its fifth warm run: two windows, rows with ids, 1,000 new ones of which
100 are late.
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.figures import Figure, Result, Times, Took, at_most, report_result
from bench.processes import ROOT, run_process
from bench.rounds import compare_times, order_of_round
from bench.themes import (
    add_rounds,
    add_size,
    describe_command,
    describe_count,
    make_parser,
    temporary_directory,
)
from jobs.console import Printer

THEME = "before"
NOW, BEFORE = "this checkout", "the older one"
ALONE = Path(__file__).with_name("standard_run_alone.py")
SKIPPED = "The standard run is not compared with an older commit, because --before names none."


def main() -> int:
    """Prints and stores the figure, or says that there is none."""
    parser = make_parser(THEME, "the standard run beside that of an older commit")
    parser.add_argument("--before", type=Path, metavar="PATH", help="a checkout of the older one")
    add_size(parser, "--history", 1_000_000, "rows that are there before")
    add_rounds(parser)
    options = parser.parse_args()
    if options.before is None:
        Printer(as_json=False).line(SKIPPED)
        return 0
    command = describe_command(THEME, options) + " --before PATH"
    checkout = options.before.resolve()
    result = measure_before(checkout, command, options.history, options.rounds)
    report_result(result, options.to)
    return 0


def measure_before(checkout: Path, command: str, history: int, rounds: int) -> Result:
    """The standard runs of both checkouts in turn."""
    places = {NOW: ROOT, BEFORE: checkout}
    took = measure_in_turn(places, rounds, lambda place: run_alone(place, history))
    phase = f"standard run on {describe_count(history)}"
    times = [Times(phase, name, tuple(of_rounds)) for name, of_rounds in took.items()]
    return Result(THEME, command, (make_before_figure(times, phase),), tuple(times))


def make_before_figure(times: Sequence[Times], phase: str) -> Figure:
    """The run of this checkout beside that of the older one."""
    ratio = compare_times(times, phase, NOW, BEFORE)
    return at_most(f"{phase}: this checkout to an older one", ratio.cpu, 0.3, 0.5, ratio.beside)


def measure_in_turn(
    places: dict[str, Path], rounds: int, measure: Callable[[Path], Took]
) -> dict[str, list[Took]]:
    """Every place in every round; each round begins with another one."""
    took: dict[str, list[Took]] = {name: [] for name in places}
    for number in range(rounds):
        for name in order_of_round(places, number):
            took[name].append(measure(places[name]))
    return took


def run_alone(checkout: Path, history: int) -> Took:
    """The standard run of one checkout in a process of its own."""
    with temporary_directory("standard-run") as root:
        printed = run_process(
            sys.executable, ALONE, root, str(history), environment={"PYTHONPATH": str(checkout)}
        )
    found = json.loads(printed.splitlines()[-1])
    if Path(found["product"]) != checkout:
        raise SystemExit(f"{found['product']} was measured in place of {checkout}")
    return Took(found["wall"], found["cpu"])


if __name__ == "__main__":
    sys.exit(main())
