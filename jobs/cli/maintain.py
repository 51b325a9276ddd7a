"""The command that compacts and cleans up the tables of a pipeline: maintain."""

from typing import TYPE_CHECKING

import click

from jobs.cli.options import common
from jobs.cli.spark import open_to_write
from jobs.console import Printer, show_progress
from windowing.report.text import size

if TYPE_CHECKING:
    from windowing.spec.pipeline import Pipeline


@click.command()
@common
def maintain(pipeline: "Pipeline", *, printer: Printer) -> None:
    """Compact state and files, and delete data past its retention.

    No value of an output changes. Older versions of outputs can be read for 30 days, or for as long
    as the properties of a table say, and for longer while readers use one.
    """
    from jobs.maintain import Maintenance, has_begun
    from jobs.maintain import maintain as maintain_now
    from jobs.sessions.profiles import choose_for_tables

    done = Maintenance(())
    if has_begun(pipeline):
        session = open_to_write(pipeline, choose_for_tables(pipeline))
        with show_progress(f"{pipeline.name} maintain", "table") as progress:
            done = maintain_now(session, pipeline, progress=progress)
    if not done.tables:
        printer.line(f"{pipeline.name}: nothing to maintain, because there is no run yet")
    else:
        columns = [
            "table",
            "rows merged",
            "rows expired",
            "files before",
            "after",
            "size before",
            "after",
        ]
        rows = [
            [t.name, t.merged, t.expired, *t.files, size(t.size[0]), size(t.size[1])]
            for t in done.tables
        ]
        printer.table(columns, rows, pipeline.name)
    printer.finish({"pipeline": pipeline.name, "tables": done.as_json()})
