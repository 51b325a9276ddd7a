"""The command that takes files that have landed into the source table: ingest."""

from typing import TYPE_CHECKING

import click

from jobs.cli.lock import probe_lock
from jobs.cli.options import common
from jobs.cli.spark import start_session
from jobs.console import Printer, show_progress
from windowing.report.text import count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.ingest import Ingestion
    from windowing.spec.pipeline import Pipeline

_MOST_TOLD = 20
"""How many columns that are not pinned are named."""


@click.command()
@common
@click.option(
    "--keep-taken",
    is_flag=True,
    help="Take nothing; files that were written again after they were taken count as taken.",
)
def ingest(pipeline: "Pipeline", *, printer: Printer, keep_taken: bool) -> None:
    """Take files that have landed into the source table, each once.

    Their records are appended. The spec says in source.files where files land and how they are
    read. Records that are no rows are kept beside the table, with file and reason. An interrupted
    ingest is finished first.
    """
    from jobs.ingest import find_nothing_new
    from jobs.ingest import ingest as ingest_now
    from jobs.landing.look import keeper_of

    probe_lock(keeper_of(pipeline))
    if keep_taken:
        _keep_taken(printer, pipeline)
        return
    done = find_nothing_new(pipeline)
    if done is None:
        session = _open_session(pipeline)
        with show_progress(f"{pipeline.name} ingest", "file") as progress:
            done = ingest_now(session, pipeline, progress=progress)
    _print(printer, pipeline, done)
    printer.finish({"pipeline": pipeline.name, **done.as_json()})


def _keep_taken(printer: Printer, pipeline: "Pipeline") -> None:
    from jobs.ingest import keep_taken
    from windowing.ingest.rule import describe_names

    kept = keep_taken(pipeline)
    if kept:
        printer.line(f"{pipeline.name}: {describe_names(kept)} counts as taken")
    else:
        printer.line(f"{pipeline.name}: no file has changed since it was taken")
    printer.finish({"pipeline": pipeline.name, "kept": list(kept)})


def _open_session(pipeline: "Pipeline") -> "SparkSession":
    from jobs.landing.look import look
    from jobs.session import named_master
    from jobs.sessions.profiles import choose_for_files, place_session
    from jobs.sessions.s3_session import describe_store

    size = sum(file.bytes for file in look(pipeline).landing.new)
    profile = place_session(choose_for_files(size), named_master())
    return start_session({**profile, **describe_store(pipeline.source.table)})


def _print(printer: Printer, pipeline: "Pipeline", done: "Ingestion") -> None:
    from jobs.landing.look import files_of
    from windowing.ingest.rule import QUARANTINE, describe_names, list_endings
    from windowing.ingest.table import home_of

    files, source = files_of(pipeline), pipeline.source.table
    if done.columns is not None:
        printer.line(f"{pipeline.name}: the columns of the files are pinned in {done.columns}")
    if done.added:
        named = describe_names(done.added)
        printer.line(f"{pipeline.name}: {files.columns} has {named} more")
    if not done.files:
        printer.line(f"{pipeline.name}: nothing new in {files.folder}")
    else:
        printer.line(
            f"{pipeline.name}: {count(len(done.files), 'file')}, {count(done.read, 'record')} "
            f"read, {count(done.appended, 'row')} appended to {source}"
        )
    if done.quarantined:
        place = home_of(source) / QUARANTINE
        printer.line(f"{count(done.quarantined, 'record')} quarantined in {place}")
    for name in done.not_pinned[:_MOST_TOLD]:
        printer.line(f"column {name} is not pinned; its values are in rescued")
    if len(done.not_pinned) > _MOST_TOLD:
        more = count(len(done.not_pinned) - _MOST_TOLD, "more column")
        printer.line(f"{more} not pinned; --json names them")
    if done.others:
        endings = " ".join(list_endings(files.format))
        named = describe_names(done.others)
        printer.line(f"passed over, because their names do not end in {endings}: {named}")
