"""The command that evaluates the expectations of the newest run: validate."""

from typing import TYPE_CHECKING, Any

import click

from jobs.cli.options import common
from jobs.cli.spark import open_to_write
from jobs.console import Printer
from windowing.errors import ExpectationsFailed
from windowing.report.text import count

if TYPE_CHECKING:
    from expectations.outcome import Validation
    from windowing.spec.pipeline import Pipeline


@click.command()
@common
@click.option(
    "--again",
    is_flag=True,
    help="Evaluate all expectations, also if the outcomes are recorded already.",
)
def validate(pipeline: "Pipeline", *, as_json: bool, again: bool) -> None:
    """Evaluate the expectations of the newest run; exit 3 if it fails.

    A run fails if a critical expectation does. Outcomes are recorded in the table _quality and
    shown in Data Docs, whose path is printed. Outcomes that are recorded already, as `run
    --validate` does, are printed as they are.
    """
    from jobs.locking.lock_file import probe
    from jobs.validation.validated import find_validation

    probe(pipeline)
    recorded = None if again else find_validation(pipeline)
    found = recorded or _evaluate(pipeline)
    printer = Printer(as_json=as_json)
    if not found.run:
        printer.line(f"{pipeline.name}: nothing is evaluated, because there is no run yet")
        printer.finish(found.as_json())
        return
    columns = ["window", "suite", "expectation", "severity", "holds", "observed", "detail"]
    failed_first = sorted(found.outcomes, key=lambda outcome: outcome.success)
    rows = [
        [o.window, o.suite, o.expectation, o.severity, o.success, o.observed, o.detail]
        for o in failed_first
    ]
    printer.table(columns, rows, f"{pipeline.name}, run {found.run}")
    printer.line(f"Data Docs: {found.docs}")
    printer.finish(found.as_json())
    if not found.passed:
        failed = [o for o in found.outcomes if o.severity == "critical" and not o.success]
        raise ExpectationsFailed(_describe_failure(pipeline, found.run, failed))


def _evaluate(pipeline: "Pipeline") -> "Validation":
    from expectations.library import preload

    preload()
    from jobs.sessions.profiles import choose_for_tables

    session = open_to_write(pipeline, choose_for_tables(pipeline))
    from jobs.validate import validate as validate_newest

    return validate_newest(session, pipeline)


def _describe_failure(pipeline: "Pipeline", run: int, failed: list[Any]) -> str:
    broken = "none could be judged"
    if failed:
        broken = f"{failed[0].expectation} of {failed[0].window}"
    if len(failed) > 1:
        broken += f" and {count(len(failed) - 1, 'other')}"
    return (
        f"{pipeline.name}: run {run} breaks {broken}; nothing is published until it holds "
        "or `publish --accept REASON` is given"
    )
