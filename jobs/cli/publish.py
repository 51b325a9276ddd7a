"""The command that publishes validated versions: publish."""

from typing import TYPE_CHECKING

import click

from jobs.cli.lock import probe_lock
from jobs.cli.options import common
from jobs.console import Printer
from windowing.spec.words import join_names

if TYPE_CHECKING:
    from windowing.spec.pipeline import Pipeline


@click.command()
@common
@click.option(
    "--accept",
    metavar="REASON",
    help="Publish although expectations failed, and record the reason.",
)
def publish(pipeline: "Pipeline", *, printer: Printer, accept: str | None) -> None:
    """Publish the newest validated versions of all outputs.

    Readers use the published versions until the next publish. Exit 3 if expectations failed or were
    not evaluated. Where the spec says `publish: each`, only outputs that fail are held back, and
    the exit code is 3 if all of them do.
    """
    if accept is not None and not accept.strip():
        raise click.UsageError(
            "--accept needs a reason, such as 'the airport was closed that day'",
            click.get_current_context(),
        )
    from jobs.publish import publish as publish_newest

    probe_lock(pipeline)
    published = publish_newest(pipeline, accept)
    if not published.run:
        printer.line(f"{pipeline.name}: nothing is published, because there is no run yet")
        printer.finish(published.as_json())
        return
    rows = [[name, shown["version"], shown["rows"]] for name, shown in published.outputs.items()]
    title = f"{pipeline.name}, published run {published.run}"
    printer.table(["window", "version", "rows"], rows, title)
    for window, broken in published.held.items():
        shown = published.outputs.get(window)
        seen = f"run {shown['run']}" if shown else "nothing of it"
        printer.line(
            f"{window} is held back, because it fails {join_names(broken)}; readers see {seen}"
        )
    printer.finish(published.as_json())
