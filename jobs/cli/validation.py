"""Validates in the process of a run or backfill what that has just written."""

import traceback
from typing import TYPE_CHECKING, TypeVar

import click

from jobs.cli.errors import explain_error
from jobs.cli.options import debugging
from jobs.console import Printer
from windowing.report.text import count

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from expectations.outcome import Validation
    from windowing.spec.pipeline import Pipeline

Command = TypeVar("Command", bound="Callable[..., object]")


def validate_option(command: Command) -> Command:
    """Adds --validate."""
    text = "Then validate what was written, in the same process; the exit code is that without it."
    return click.option("--validate", is_flag=True, help=text)(command)


def preload_expectations() -> None:
    """Begins to import what a validation needs, so that it is there when the session is warm."""
    from expectations.library import preload

    preload()


def validate_written(printer: Printer, session: "SparkSession", pipeline: "Pipeline") -> None:
    """Validates the newest versions, unless that was done, and prints one sentence about it.

    Whatever comes of it, the command before it has done its work. So nothing is raised here:
    `tidemark validate` reports what was recorded, or evaluates what was not.
    """
    try:
        from jobs.validate import validate
        from jobs.validation.validated import find_validation

        found = find_validation(pipeline) or validate(session, pipeline)
    except Exception as error:
        if debugging():
            traceback.print_exception(error)
        reason = explain_error(error).message
        printer.line(f"{pipeline.name}: not validated, because of this error: {reason}")
        return
    printer.line(_describe(pipeline, found))


def _describe(pipeline: "Pipeline", found: "Validation") -> str:
    if not found.run:
        return f"{pipeline.name}: nothing is validated, because there is no run yet"
    broken = count(len(found.failed), "expectation") if found.failed else "none"
    checked = count(len(found.outcomes), "expectation")
    failed = "" if found.passed else "; `tidemark publish` refuses it"
    return f"{pipeline.name}: validated run {found.run}, {broken} of {checked} broken{failed}"
