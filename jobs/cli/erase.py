"""The command that deletes a key, or a value, from every table for good: erase."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from jobs.cli.confirm import confirm
from jobs.cli.format import print_changes
from jobs.cli.options import common, key_option, keys_of
from jobs.cli.spark import open_to_write
from jobs.console import Printer
from windowing.errors import UsageError
from windowing.ingest.rule import HOME, QUARANTINE
from windowing.ledger.erased import Erasing
from windowing.report.text import count
from windowing.spec.words import join_names, quote_value

if TYPE_CHECKING:
    from jobs.erase import Erased, Lifted
    from windowing.spec.pipeline import Pipeline

_WHERE = (
    "COLUMN=VALUE instead of --key: a value of any other column of the source. "
    "State and outputs are rebuilt from the source without its rows."
)
_LIFT = "Read the rows of an erased key or value again from now on; nothing is deleted."


@click.command()
@common
@key_option
@click.option("--where", "conditions", multiple=True, metavar="COLUMN=VALUE", help=_WHERE)
@click.option("--lift", is_flag=True, help=_LIFT)
@click.option("--yes", is_flag=True, help="Delete without asking.")
def erase(
    pipeline: "Pipeline",
    *,
    printer: Printer,
    keys: tuple[str, ...],
    conditions: tuple[str, ...],
    lift: bool,
    yes: bool,
) -> None:
    """Delete one key or value from every table for good, after asking.

    Rows of a key are deleted from state, outputs and refused rows, together with the files of older
    versions. With --where it is the rows with a value in another column: they are deleted from
    refused rows, and state and outputs are rebuilt from the source without them. Such rows that the
    source still has, or gets, are counted as erased and stored nowhere: by runs, backfills and
    changes of the spec. The source itself is not changed. Rerun the command if it was interrupted.
    """
    asked = _read_asked(pipeline, keys, conditions)
    what = "key" if asked.column is None else "value"
    if not lift and not yes:
        confirm(
            f"erase would delete all rows of one {what} and every older version of all tables",
            f"Delete the {what} and all older versions?",
        )
    from jobs.sessions.profiles import FULL, choose_for_tables

    # What is rebuilt from the source may be much more than the tables contain.
    profile = choose_for_tables(pipeline) if asked.column is None else FULL
    session = open_to_write(pipeline, profile)
    from jobs.erase import erase as erase_rows
    from jobs.erase import lift_erasure

    if lift:
        lifted = lift_erasure(session, pipeline, asked)
        printer.line(_describe_lifted(pipeline, what, lifted))
        printer.finish({"pipeline": pipeline.name, **lifted.as_json()})
        return
    done = erase_rows(session, pipeline, asked)
    rows = [[table, n] for table, n in done.rows.items()]
    printer.table(["table", "rows deleted"], rows, pipeline.name)
    if done.windows:
        print_changes(printer, done)
    for sentence in _describe_erased(pipeline, what, done):
        printer.line(sentence)
    printer.finish({"pipeline": pipeline.name, **done.as_json()})


def _read_asked(
    pipeline: "Pipeline", keys: tuple[str, ...], conditions: tuple[str, ...]
) -> Erasing:
    """The column and the value of --where; the key where that is given instead."""
    if not conditions:
        return Erasing(_read_key(pipeline, keys))
    column, equals, value = conditions[0].partition("=")
    if keys or len(conditions) > 1:
        raise UsageError(
            f"erase takes one key or one value of {pipeline.name}: "
            "--key COLUMN=VALUE or --where COLUMN=VALUE"
        )
    if not equals:
        raise UsageError(f"--where {quote_value(column)} names no value; write COLUMN=VALUE")
    return Erasing({column: value}, column)


def _read_key(pipeline: "Pipeline", keys: tuple[str, ...]) -> Mapping[str, str]:
    """One value by key column; UsageError where there are none or several."""
    chosen = keys_of(pipeline, keys)
    several = [column for column, values in chosen.items() if len(values) > 1]
    if several or not chosen:
        raise UsageError(
            f"erase takes one value for each key column of {pipeline.name}: --key COLUMN=VALUE"
        )
    return {column: values[0] for column, values in chosen.items()}


def _describe_erased(pipeline: "Pipeline", what: str, done: "Erased") -> list[str]:
    sentences = []
    if not any(done.rows.values()) and not done.source_rows:
        sentences.append(f"No row of the pipeline had this {what}.")
    sentences.append(f"Rows of this {what} are kept out from now on; --lift with it ends that.")
    if done.windows:
        sentences.append(
            "Readers of what is published see the windows without it; "
            "`tidemark validate` judges these."
        )
    if done.source_rows:
        sentences.append(
            f"Not erased: {count(done.source_rows, 'row')} with it in {pipeline.source.table}, "
            "because the source is never changed."
        )
    if pipeline.source.files is not None:
        broken = pipeline.source.table / HOME / QUARANTINE
        sentences.append(
            f"Not erased: files with it in {pipeline.source.files.folder}, and broken records of "
            f"these in {broken}; delete them by hand."
        )
    if done.left_tables:
        sentences.append(
            f"Not erased: what {join_names(done.left_tables)} counted of it, because the spec no "
            "longer has these windows; delete the tables if nobody reads them."
        )
    if done.dropped_tables:
        sentences.append(
            f"Deleted: {join_names(done.dropped_tables)}, because the spec no longer has these "
            "windows, and their outputs are gone or have other rows."
        )
    if done.resumed:
        sentences.append("This erase also finished one that was interrupted.")
    if done.unknown:
        sentences.append("If that was for another key, erase that key again.")
    return sentences


def _describe_lifted(pipeline: "Pipeline", what: str, done: "Lifted") -> str:
    if not done.lifted:
        return f"{pipeline.name}: this {what} was not erased, so nothing was changed"
    return (
        f"{pipeline.name}: rows of this {what} count again if they are read from now on; "
        "those that were read before count after a backfill of their times"
    )
