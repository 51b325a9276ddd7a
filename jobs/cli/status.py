"""The command that says how pipelines stand: status."""

from typing import TYPE_CHECKING

import click

from jobs.cli.errors import Failure
from jobs.cli.exit_codes import ATTENTION
from jobs.cli.options import debug, json_option
from jobs.cli.pipeline_argument import PipelineType, load_many, target_option
from jobs.cli.spark_extra import require_spark_extra
from jobs.console import Printer
from windowing.errors import StateRefused
from windowing.report.text import count, instant
from windowing.spec.words import join_names

if TYPE_CHECKING:
    from datetime import datetime

    from windowing.report.status import Status
    from windowing.spec.pipeline import Pipeline


@click.command()
@click.argument(
    "texts",
    nargs=-1,
    metavar="[PIPELINE]...",
    shell_complete=PipelineType().shell_complete,
)
@target_option
@json_option
@debug
@click.pass_context
def status(ctx: click.Context, texts: tuple[str, ...], *, printer: Printer) -> None:
    """Say how pipelines stand, without Spark; exit 5 for attention.

    PIPELINE may be a directory, too, which stands for its *.yaml and *.yml files. Without one, all
    pipelines of the project are meant, and without a project those of the current directory.

    A pipeline needs attention where it is stale by `freshness` of its spec, where a step was begun
    and not finished and nobody is at work on it, or where its newest validation failed.
    """
    pipelines = load_many(texts, ctx)
    require_spark_extra()
    from datetime import UTC, datetime

    # All of them are judged at one time.
    found, refused = _read_all(pipelines, datetime.now(UTC))
    _print_table(printer, found)
    for each in found:
        for reason in each.reasons:
            printer.line(f"{each.pipeline}: {reason}")
        if each.closed_until is not None:
            until = instant(each.closed_until)
            printer.line(f"{each.pipeline}: closed until {until}: {each.closed_reason}")
    _print_places(printer, pipelines)
    needing = [each for each in found if each.needs_attention]
    printer.finish(
        {
            "needs_attention": bool(needing or refused),
            "pipelines": [each.as_json() for each in found],
            "refused": [{"pipeline": name, "code": e.code} for name, e in refused.items()],
        }
    )
    if refused:
        raise Failure("; ".join(each.message for each in refused.values()), StateRefused.exit_code)
    if needing:
        needs = "needs" if len(needing) == 1 else "need"
        names = join_names(each.pipeline for each in needing)
        raise Failure(f"{count(len(needing), 'pipeline')} {needs} attention: {names}", ATTENTION)


def _read_all(
    pipelines: "list[Pipeline]", now: "datetime"
) -> "tuple[list[Status], dict[str, StateRefused]]":
    """The status of each pipeline, and the error of each whose ledger can't be read."""
    from jobs.status import status as read_status

    found: list[Status] = []
    refused: dict[str, StateRefused] = {}
    for pipeline in pipelines:
        try:
            found.append(read_status(pipeline, now))
        except StateRefused as error:
            refused[pipeline.name] = error
    return found, refused


def _print_table(printer: Printer, found: "list[Status]") -> None:
    """Prints one line for each pipeline, in at most 100 columns where names are short."""
    columns = ["pipeline", "state", "watermark", "behind", "run", "ran", "published", "rows"]
    rows = []
    for each in found:
        row = [each.pipeline, each.state, _minute(each.watermark), each.lag]
        rows.append([*row, each.run, each.ran, each.published_run, each.totals.get("read")])
    if rows:
        printer.table(columns, rows)


def _print_places(printer: Printer, pipelines: "list[Pipeline]") -> None:
    """Prints which targets give places to the pipelines, where any does."""
    placed: dict[tuple[str, str], list[str]] = {}
    for pipeline in pipelines:
        if (by := pipeline.placed_by) is not None:
            placed.setdefault((by.target, by.project), []).append(pipeline.name)
    for (target, project), names in placed.items():
        printer.line(f"by target {target} of {project}: {join_names(names)}")


def _minute(at: "datetime | None") -> str:
    return instant(None if at is None else at.replace(second=0, microsecond=0))
