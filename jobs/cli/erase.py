"""The command that deletes one key from every table: erase."""

from typing import TYPE_CHECKING

import click

from jobs.cli.confirm import confirm
from jobs.cli.options import common, key_option, keys_of
from jobs.cli.spark import writing
from jobs.console import Printer
from windowing.errors import UsageError

if TYPE_CHECKING:
    from windowing.spec.pipeline import Pipeline


@click.command()
@common
@key_option
@click.option("--yes", is_flag=True, help="Don't ask.")
def erase(pipeline: "Pipeline", *, as_json: bool, keys: tuple[str, ...], yes: bool) -> None:
    """Delete one key from every table; asks before it does.

    Its rows go from state, outputs and refused rows, and so do the files of older versions. Erase it in the source afterwards: what is
    still there comes back with a backfill that reaches it. That is a change of the source's past, which needs source.changes: feed.
    Killed half-way, ask for it again.
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
    session = writing(pipeline)
    from jobs.erase import erase as erase_now

    done = erase_now(session, pipeline, {column: values[0] for column, values in chosen.items()})
    printer = Printer(as_json=as_json)
    printer.table(
        ["table", "rows deleted"], [[table, n] for table, n in done.rows.items()], pipeline.name
    )
    if done.resumed:
        printer.line(
            "An erasure that was left half-way is closed with this one. If its key was another, erase that one again."
        )
    printer.finish({"pipeline": pipeline.name, **done.as_json()})
