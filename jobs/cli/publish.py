"""The command that publishes validated versions, or earlier ones again: publish."""

from typing import TYPE_CHECKING

import click

from jobs.cli.lock import probe_lock
from jobs.cli.options import common
from jobs.console import Printer
from windowing.spec.words import join_names

if TYPE_CHECKING:
    from windowing.report.rule import Publication
    from windowing.spec.pipeline import Pipeline

_BEFORE = -1
"""Stands for the last publication of other versions; nobody can type it."""


@click.command()
@common
@click.option(
    "--accept",
    metavar="REASON",
    help="Publish the newest run although its expectations failed, and record the reason.",
)
@click.option(
    "--rollback",
    is_flag=False,
    flag_value=_BEFORE,
    type=int,
    metavar="[NUMBER]",
    help="Publish an earlier publication again: that of a number, or the last one that differs.",
)
@click.option("--reason", metavar="REASON", help="Why it is rolled back, which is recorded.")
@click.option("--list", "lists", is_flag=True, help="Only list all publications.")
def publish(
    pipeline: "Pipeline",
    *,
    printer: Printer,
    accept: str | None,
    rollback: int | None,
    reason: str | None,
    lists: bool,
) -> None:
    """Publish the newest validated versions of all outputs.

    Readers use the published versions until the next publish. Exit 3 if expectations failed or were
    not evaluated. Where the spec says `publish: each`, only outputs that fail are held back, and
    the exit code is 3 if all of them do.

    With --rollback readers use an earlier publication again, until the next publish. State and
    outputs stay as they are, so pause the schedule until the cause is repaired.
    """
    _check_options(accept, rollback, reason, lists=lists)

    if lists:
        _list(pipeline, printer)
    elif rollback is not None:
        _roll_back(pipeline, printer, None if rollback == _BEFORE else rollback, reason or "")
    else:
        _publish(pipeline, printer, accept)


def _check_options(
    accept: str | None, rollback: int | None, reason: str | None, *, lists: bool
) -> None:
    context = click.get_current_context()
    if sum((accept is not None, rollback is not None, lists)) > 1:
        raise click.UsageError("give one of --accept, --rollback and --list alone", context)
    if rollback is not None and not (reason or "").strip():
        raise click.UsageError(
            "--rollback needs --reason, such as --reason 'a price list was wrong'", context
        )
    if rollback is None and reason is not None:
        raise click.UsageError("--reason belongs to --rollback; --accept has its own", context)


def _publish(pipeline: "Pipeline", printer: Printer, accept: str | None) -> None:
    from jobs.publish import publish as publish_newest

    probe_lock(pipeline)
    published = publish_newest(pipeline, accept)
    if not published.run:
        printer.line(f"{pipeline.name}: nothing is published, because there is no run yet")
        printer.finish(published.as_json())
        return
    if published.is_new:
        _print_outputs(printer, published, f"{pipeline.name}, published run {published.run}")
    else:
        already = f"because readers see run {published.run} already"
        printer.line(f"{pipeline.name}: nothing was new to publish, {already}")
    for window, broken in published.held.items():
        shown = published.outputs.get(window)
        seen = f"run {shown['run']}" if shown else "nothing of it"
        printer.line(
            f"{window} is held back, because it fails {join_names(broken)}; readers see {seen}"
        )
    printer.finish(published.as_json())


def _print_outputs(printer: Printer, published: "Publication", title: str) -> None:
    rows = [[name, shown["version"], shown["rows"]] for name, shown in published.outputs.items()]
    printer.table(["window", "version", "rows"], rows, title)
    if published.changed_days is not None:
        from windowing.report.changed import tell_days

        printer.line(tell_days(published.changed_days))


def _roll_back(pipeline: "Pipeline", printer: Printer, to: int | None, reason: str) -> None:
    from jobs.publish import roll_back

    probe_lock(pipeline)
    done = roll_back(pipeline, to, reason)
    published = done.publication
    title = f"{pipeline.name}, publication {done.to} again: run {published.run}"
    _print_outputs(printer, published, title)
    for name in done.kept:
        printer.line(f"{name} stays as it is, because publication {done.to} did not have it")
    if not done.is_new:
        printer.line(f"nothing was recorded, because readers see publication {done.to} already")
    printer.finish(done.as_json())


def _list(pipeline: "Pipeline", printer: Printer) -> None:
    from jobs.publish import list_publications

    found = list_publications(pipeline)
    rows = []
    for each in found.found:
        outputs = ", ".join(f"{name} v{version}" for name, version in each.outputs.items())
        rows.append([each.number, each.at, each.run, each.watermark, outputs, each.why])
    if rows:
        columns = ["publication", "at", "run", "watermark", "outputs", "why"]
        printer.table(columns, rows, f"{pipeline.name}, publications")
    else:
        printer.line(f"{pipeline.name}: nothing is published yet")
    printer.finish(found.as_json())
