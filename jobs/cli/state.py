"""The command that shows the tables of state: state."""

from datetime import datetime
from typing import TYPE_CHECKING

import click

from jobs.cli.format import how_many
from jobs.cli.options import (
    as_of_option,
    common,
    is_limit_given,
    key_option,
    keys_of,
    limit_option,
    ordered,
    range_options,
    window_of,
)
from jobs.cli.pipeline_argument import WINDOW
from jobs.cli.spark import open_to_read
from jobs.console import Printer
from windowing.errors import UsageError
from windowing.report.text import plain, size

if TYPE_CHECKING:
    from windowing.report.rows import StateTable
    from windowing.spec.pipeline import Pipeline


@click.command()
@common
@click.option(
    "--window",
    type=WINDOW,
    metavar="WINDOW",
    help="Also show the state of this window: partial aggregates, or events where order matters.",
)
@key_option
@range_options("state")
@as_of_option("Show the state as run RUN left it; with --window.")
@limit_option
def state(
    pipeline: "Pipeline",
    *,
    printer: Printer,
    window: str | None,
    keys: tuple[str, ...],
    start: datetime | None,
    end: datetime | None,
    reverse: bool,
    as_of: str | None,
    limit: int,
) -> None:
    """Show state tables (partial aggregates). With --window, show that window's rows."""
    if window is None and (keys or start or end or reverse or as_of or is_limit_given()):
        raise UsageError(
            "--key, --from, --to, --reverse, --as-of and --limit need --window, which names the "
            "window to show"
        )
    chosen = None if window is None else window_of(pipeline, window)
    wanted_keys = keys_of(pipeline, keys)
    ordered(start, end)
    tables = _read_tables(pipeline)
    partials = None
    if chosen is not None:
        from jobs.sessions.profiles import choose_for_tables
        from jobs.show import Wanted, show_partials

        session = open_to_read(choose_for_tables(pipeline))
        wanted = Wanted(wanted_keys, start, end, not reverse, limit)
        partials = show_partials(session, pipeline, chosen, wanted, as_of)
    result: dict[str, object] = {"pipeline": pipeline.name, "tables": plain(tables)}
    if tables:
        columns = ["table", "windows", "rows", "files", "size", "newest run", "newest batch"]
        rows = [
            [t.table, ", ".join(t.windows), t.rows, t.files, size(t.bytes), t.run, t.batch]
            for t in tables
        ]
        printer.table(columns, rows)
    else:
        printer.line(f"{pipeline.name}: no state, because there is no run yet")
    if chosen is not None and partials is not None:
        if tables:
            cells = [[row[column] for column in partials.columns] for row in partials.rows]
            printer.data(partials.columns, cells, f"state of {chosen.name}")
            printer.line(how_many(partials))
        result["partials"] = partials.as_json()
    printer.finish(result)


def _read_tables(pipeline: "Pipeline") -> "tuple[StateTable, ...]":
    """The state tables; a session is started only where one of them can't be read without."""
    from windowing.report.state import measure_state_tables
    from windowing.storage.control import TableError

    try:
        return measure_state_tables(pipeline)
    except TableError:
        from jobs.sessions.profiles import choose_for_tables
        from jobs.show import state_tables

        return state_tables(open_to_read(choose_for_tables(pipeline)), pipeline)
