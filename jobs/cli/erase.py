"""The command that deletes one key from every table: erase."""

from typing import TYPE_CHECKING

import click

from jobs.cli.confirm import confirm
from jobs.cli.options import common, key_option, keys_of
from jobs.cli.spark import open_to_write
from jobs.console import Printer
from windowing.errors import UsageError

if TYPE_CHECKING:
    from windowing.spec.pipeline import Pipeline


@click.command()
@common
@key_option
@click.option("--yes", is_flag=True, help="Delete without asking.")
def erase(pipeline: "Pipeline", *, as_json: bool, keys: tuple[str, ...], yes: bool) -> None:
    """Delete one key from every table, after asking.

    Its rows are deleted from state, outputs and refused rows, together with the files of older
    versions. Erase it in the source afterwards, because a backfill accepts again what is still
    there. That changes rows of the source, so it needs source.changes: feed. Rerun the command if
    it was interrupted.
    """
    chosen = keys_of(pipeline, keys)
    several = [column for column, values in chosen.items() if len(values) > 1]
    if several or not chosen:
        raise UsageError(
            f"erase takes one value for each key column of {pipeline.name}: --key COLUMN=VALUE"
        )
    if not yes:
        confirm(
            "erase would delete all rows of one key and every older version of all tables",
            "Delete the key and all older versions?",
        )
    from jobs.sessions.profiles import choose_for_tables

    session = open_to_write(pipeline, choose_for_tables(pipeline))
    from jobs.erase import erase as erase_now

    key = {column: values[0] for column, values in chosen.items()}
    done = erase_now(session, pipeline, key)
    printer = Printer(as_json=as_json)
    rows = [[table, n] for table, n in done.rows.items()]
    printer.table(["table", "rows deleted"], rows, pipeline.name)
    if done.resumed:
        printer.line(
            "This erase resumed one that was interrupted. "
            "If that was for another key, erase that key again."
        )
    printer.finish({"pipeline": pipeline.name, **done.as_json()})
