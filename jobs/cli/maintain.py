"""The command that keeps a pipeline small: maintain."""

from typing import TYPE_CHECKING

import click

from jobs.cli.options import common
from jobs.cli.spark import writing
from jobs.console import Printer
from windowing.report.text import size

if TYPE_CHECKING:
    from windowing.spec.pipeline import Pipeline


@click.command()
@common
def maintain(pipeline: "Pipeline", *, as_json: bool) -> None:
    """Compact state and files, and delete what retention keeps no more.

    No number changes. Older versions of outputs can be read for 30 days, or for as long as a table's own properties say, and for
    longer while readers are pointed at one.
    """
    session = writing(pipeline)
    from jobs.maintain import maintain as maintain_now

    done = maintain_now(session, pipeline)
    printer = Printer(as_json=as_json)
    if not done.tables:
        printer.line(f"{pipeline.name}: nothing to maintain, there is no finished run yet")
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
            [t.name, t.merged, t.expired, *t.files, *(size(n) for n in t.size)] for t in done.tables
        ]
        printer.table(columns, rows, pipeline.name)
    printer.finish({"pipeline": pipeline.name, "tables": done.as_json()})
