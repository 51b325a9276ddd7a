"""The command that gives published tables names in Spark's catalog: register."""

import re
from typing import TYPE_CHECKING

import click

from jobs.cli.options import common
from jobs.cli.spark import open_to_read
from jobs.console import Printer

if TYPE_CHECKING:
    from windowing.spec.pipeline import Pipeline

_SCHEMA = re.compile(r"[\w-]+(\.[\w-]+)?", re.ASCII)


@click.command(short_help="Give published tables names in Spark's catalog, for readers.")
@common
@click.option(
    "--schema",
    metavar="NAME",
    help="The schema of the catalog, or CATALOG.NAME; by default the name of the pipeline.",
)
def register(pipeline: "Pipeline", *, printer: Printer, schema: str | None) -> None:
    """Give published tables names in Spark's catalog, such as `orders.hourly`, for readers.

    The catalog is that of Spark's own settings, such as a Hive metastore. Each published table
    becomes an external table there. Nothing is written to the lake, and a name that is right
    already stays.
    """
    named = schema or pipeline.name
    if not _SCHEMA.fullmatch(named):
        raise click.UsageError(
            f"--schema is {named!r}, which is no name of a schema, such as gold or hive.gold",
            click.get_current_context(),
        )
    from jobs.sessions.profiles import TINY

    session = open_to_read(TINY)
    from jobs.register import register as register_now

    done = register_now(session, pipeline, named)
    for name in done.new:
        printer.line(f"{pipeline.name}: {name} is registered")
    if not done.new:
        known = "all published tables have their names already"
        printer.line(f"{pipeline.name}: nothing to register, {known}")
    printer.finish({"pipeline": pipeline.name, **done.as_json()})
