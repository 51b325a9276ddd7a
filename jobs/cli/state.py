"""The command that shows the tables that outputs are made from: state."""

from datetime import datetime
from typing import TYPE_CHECKING

import click

from jobs.cli.format import how_many
from jobs.cli.options import (
    as_of_option,
    common,
    key_option,
    keys_of,
    limit_option,
    ordered,
    range_options,
    window_of,
)
from jobs.cli.spark import spark
from jobs.console import Printer
from windowing.errors import UsageError
from windowing.report.text import size

if TYPE_CHECKING:
    from windowing.spec.pipeline import Pipeline


@click.command()
@common
@click.option(
    "--window",
    help="Also show what this window is made from: partial aggregates, or events where their order counts.",
)
@key_option
@range_options("state")
@as_of_option("As run RUN left it; with --window.")
@limit_option
def state(
    pipeline: "Pipeline",
    *,
    as_json: bool,
    window: str | None,
    keys: tuple[str, ...],
    start: datetime | None,
    end: datetime | None,
    reverse: bool,
    as_of: str | None,
    limit: int,
) -> None:
    """Tables that outputs are made from; --window: their newest rows."""
    if window is None and (keys or start or end or as_of):
        raise UsageError(
            "--key, --from, --to and --as-of need --window, which says whose state to show"
        )
    chosen, wanted_keys = (
        None if window is None else window_of(pipeline, window),
        keys_of(pipeline, keys),
    )
    ordered(start, end)
    session = spark()
    from jobs.show import Wanted, partials, state_tables

    tables = state_tables(session, pipeline)
    printer = Printer(as_json=as_json)
    result: dict[str, object] = {"pipeline": pipeline.name, "tables": [t.as_json() for t in tables]}
    columns = ["table", "windows", "rows", "files", "size", "newest run", "newest batch"]
    if tables:
        printer.table(
            columns,
            [
                [t.table, ", ".join(t.windows), t.rows, t.files, size(t.bytes), t.run, t.batch]
                for t in tables
            ],
        )
    else:
        printer.line(f"{pipeline.name}: no state, there is no run yet")
    if chosen is not None:
        found = partials(
            session, pipeline, chosen, Wanted(wanted_keys, start, end, not reverse, limit), as_of
        )
        if tables:
            printer.data(
                found.columns,
                [[row[c] for c in found.columns] for row in found.rows],
                f"what {chosen.name} is made from",
            )
            printer.line(how_many(found))
        result["partials"] = found.as_json()
    printer.finish(result)
