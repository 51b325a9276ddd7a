"""The command that rebuilds the pointer from the ledger: recover."""

from typing import TYPE_CHECKING

import click

from jobs.cli.options import common
from jobs.cli.spark import open_to_write
from jobs.console import Printer

if TYPE_CHECKING:
    from windowing.spec.pipeline import Pipeline


@click.command(short_help="Rebuild `_published.json` from the ledger.")
@common
def recover(pipeline: "Pipeline", *, printer: Printer) -> None:
    """Rebuild a `_published.json` that is newer than the ledger, or was edited.

    It then names again what the ledger has published. Exit 4, and a message that says what to do,
    if the ledger isn't enough.
    """
    from jobs.sessions.profiles import TINY

    session = open_to_write(pipeline, TINY)
    from jobs.doctor import recover as recover_now

    repaired = recover_now(session, pipeline)
    for finding in repaired.findings:
        printer.line(f"{pipeline.name}: repaired {finding.code}: {finding.found}")
    if not repaired.findings:
        printer.line(f"{pipeline.name}: nothing to repair")
    printer.finish({"pipeline": pipeline.name, **repaired.as_json()})
