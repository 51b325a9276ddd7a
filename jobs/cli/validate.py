"""The command that evaluates the expectations of the newest run: validate."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from jobs.cli.format import how_many
from jobs.cli.lock import probe_lock
from jobs.cli.options import common, is_limit_given, limit_option
from jobs.cli.spark import open_to_write
from jobs.console import Printer
from windowing.errors import ExpectationsFailed, UsageError
from windowing.report.text import count, list_others, plain, row_cells

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from expectations.outcome import Outcome, Validation
    from windowing.report.facts import FailingRows
    from windowing.spec.pipeline import Pipeline


@click.command()
@common
@click.option(
    "--again",
    is_flag=True,
    help="Evaluate all expectations, also if the outcomes are recorded already.",
)
@click.option(
    "--failing",
    is_flag=True,
    help="List the rows that fail, with their keys and windows. They are stored nowhere.",
)
@limit_option
def validate(
    pipeline: "Pipeline", *, printer: Printer, again: bool, failing: bool, limit: int
) -> None:
    """Evaluate the expectations of the newest run; exit 3 if it fails.

    A run fails if a critical expectation does. What was published with `publish --accept` stays
    accepted as long as the same rows fail. Outcomes are recorded in the table _quality and shown in
    Data Docs, whose path is printed. Outcomes that are recorded already, as `run --validate` does,
    are printed as they are.
    """
    if not failing and is_limit_given():
        raise UsageError("--limit needs --failing, which lists the rows that fail")
    from jobs.validation.validated import find_validation

    probe_lock(pipeline)
    # Also with --again: it refuses a changed spec before a JVM starts.
    known = find_validation(pipeline)
    recorded = None if again else known
    session = None
    if recorded is None or (failing and recorded.failed):
        session = _open_session(pipeline)
    found = recorded or _evaluate(session, pipeline)
    listed = _list_failing(session, pipeline, found, limit) if failing and found.failed else ()
    result = found.as_json()
    if failing:
        result |= {"failing": plain(listed)}
    if not found.run:
        printer.line(f"{pipeline.name}: nothing is evaluated, because there is no run yet")
        printer.finish(result)
        return
    _print_outcomes(printer, pipeline, found)
    for outcome, each in zip(found.failed if listed else (), listed, strict=True):
        _print_failing(printer, pipeline, outcome, each)
    printer.line(f"Data Docs: {found.docs}")
    printer.finish(result)
    if not found.passed:
        raise ExpectationsFailed(_describe_failure(pipeline, found))


def _open_session(pipeline: "Pipeline") -> "SparkSession":
    from expectations.library import preload

    preload()
    from jobs.sessions.profiles import choose_for_tables

    return open_to_write(pipeline, choose_for_tables(pipeline))


def _evaluate(session: Any, pipeline: "Pipeline") -> "Validation":
    from jobs.validate import validate as validate_newest

    return validate_newest(session, pipeline)


def _list_failing(
    session: Any, pipeline: "Pipeline", found: "Validation", limit: int
) -> "tuple[FailingRows, ...]":
    from jobs.failing import list_failing

    return list_failing(session, pipeline, found, limit)


def _print_outcomes(printer: Printer, pipeline: "Pipeline", found: "Validation") -> None:
    """Prints each expectation that fails or was accepted, and of the others how many hold."""
    columns = ["window", "suite", "expectation", "severity", "holds", "observed", "detail"]
    rows = []
    for o in (outcome for outcome in found.outcomes if not outcome.success):
        holds = False if o.accepted is None else "accepted"
        detail = o.detail if o.accepted is None else f"{o.detail}; accepted: {o.accepted}"
        rows.append([o.window, o.suite, o.expectation, o.severity, holds, o.observed, detail])
    held = Counter((o.window, o.suite, o.severity) for o in found.outcomes if o.success)
    for (window, suite, severity), many in held.items():
        rows.append([window, suite, count(many, "expectation"), severity, True, "", ""])
    printer.table(columns, rows, f"{pipeline.name}, run {found.run}")


def _print_failing(
    printer: Printer, pipeline: "Pipeline", outcome: "Outcome", failing: "FailingRows"
) -> None:
    """Prints the rows that fail one expectation: key, window, and what it is about."""
    found = failing.failing
    title = f"{failing.window} fails {failing.expectation}"
    if found is None:
        why = "for which no single row is to blame"
        if outcome.is_unknown:
            why = f"which {outcome.detail}"
        printer.line(f"{title}, {why}")
        return
    # As the title of a table it would be folded to the table's width.
    printer.line(f"{title}: {how_many(found)}")
    keys, window = pipeline.source.key, pipeline.window(failing.window)
    others = list_others(found.columns, keys)
    rows = [row_cells(row, keys, window, others) for row in found.rows]
    printer.data([*keys, "window", *others], rows)


def _describe_failure(pipeline: "Pipeline", found: "Validation") -> str:
    blocking = [outcome for outcome in found.outcomes if outcome.blocks]
    broken = f"{blocking[0].expectation} of {blocking[0].window}"
    if len(blocking) > 1:
        broken += f" and {count(len(blocking) - 1, 'other')}"
    return (
        f"{pipeline.name}: run {found.run} breaks {broken}; nothing is published until it holds "
        "or `publish --accept REASON` is given"
    )
