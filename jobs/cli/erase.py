"""The command that deletes one key from every table for good: erase."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from jobs.cli.confirm import confirm
from jobs.cli.options import common, key_option, keys_of
from jobs.cli.spark import open_to_write
from jobs.console import Printer
from windowing.errors import UsageError

if TYPE_CHECKING:
    from jobs.erase import Erased, Lifted
    from windowing.spec.pipeline import Pipeline

_LIFT = "Read the rows of an erased key again from now on; nothing is deleted."


@click.command()
@common
@key_option
@click.option("--lift", is_flag=True, help=_LIFT)
@click.option("--yes", is_flag=True, help="Delete without asking.")
def erase(
    pipeline: "Pipeline", *, as_json: bool, keys: tuple[str, ...], lift: bool, yes: bool
) -> None:
    """Delete one key from every table for good, after asking.

    Its rows are deleted from state, outputs and refused rows, together with the files of older
    versions. Rows of it that the source still has, or gets, are counted as erased and stored
    nowhere: by runs, backfills and changes of the spec. The source itself is not changed. Rerun the
    command if it was interrupted.
    """
    key = _read_key(pipeline, keys)
    if not lift and not yes:
        confirm(
            "erase would delete all rows of one key and every older version of all tables",
            "Delete the key and all older versions?",
        )
    from jobs.sessions.profiles import choose_for_tables

    session = open_to_write(pipeline, choose_for_tables(pipeline))
    from jobs.erase import erase as erase_now
    from jobs.erase import lift_erasure

    printer = Printer(as_json=as_json)
    if lift:
        lifted = lift_erasure(session, pipeline, key)
        printer.line(_describe_lifted(pipeline, lifted))
        printer.finish({"pipeline": pipeline.name, **lifted.as_json()})
        return
    done = erase_now(session, pipeline, key)
    rows = [[table, n] for table, n in done.rows.items()]
    printer.table(["table", "rows deleted"], rows, pipeline.name)
    for sentence in _describe_erased(done):
        printer.line(sentence)
    printer.finish({"pipeline": pipeline.name, **done.as_json()})


def _read_key(pipeline: "Pipeline", keys: tuple[str, ...]) -> Mapping[str, str]:
    """One value by key column; UsageError where there are none or several."""
    chosen = keys_of(pipeline, keys)
    several = [column for column, values in chosen.items() if len(values) > 1]
    if several or not chosen:
        raise UsageError(
            f"erase takes one value for each key column of {pipeline.name}: --key COLUMN=VALUE"
        )
    return {column: values[0] for column, values in chosen.items()}


def _describe_erased(done: "Erased") -> list[str]:
    sentences = ["Rows of this key are kept out from now on; --lift with the key ends that."]
    if done.resumed:
        sentences.append("This erase also finished one that was interrupted.")
    if done.unknown:
        sentences.append("If that was for another key, erase that key again.")
    return sentences


def _describe_lifted(pipeline: "Pipeline", done: "Lifted") -> str:
    if not done.lifted:
        return f"{pipeline.name}: this key was not erased, so nothing was changed"
    return (
        f"{pipeline.name}: rows of this key count again if they are read from now on; "
        "those that were read before count after a backfill of their times"
    )
