"""The command that starts a pipeline over: reset."""

from typing import TYPE_CHECKING

import click

from jobs.cli.confirm import confirm
from jobs.cli.options import common
from jobs.console import Printer
from windowing.report.text import count, size
from windowing.spec.words import listed

if TYPE_CHECKING:
    from jobs.reset import Holding
    from windowing.spec.pipeline import Pipeline


@click.command()
@common
@click.option("--yes", is_flag=True, help="Don't ask.")
def reset(pipeline: "Pipeline", *, as_json: bool, yes: bool) -> None:
    """Start over; asks before it deletes what runs have made.

    State, outputs, ledger and checkpoint go, the source stays. The next run reads the source from its beginning; what is published is
    gone until it is published again.
    """
    from jobs.preflight.lock import probe
    from jobs.reset import holding
    from jobs.reset import reset as reset_now

    probe(pipeline)
    found, printer = holding(pipeline), Printer(as_json=as_json)
    if found.size and not yes:
        _ask(found)
    gone = reset_now(pipeline)
    printer.line(
        f"{pipeline.name}: {_what(gone)} deleted from {gone.path}"
        if gone.size
        else f"{pipeline.name}: nothing to delete"
    )
    printer.finish({"pipeline": pipeline.name, "deleted": gone.as_json()})


def _ask(found: "Holding") -> None:
    confirm(
        f"reset would delete {_what(found)} in {found.path}",
        f"Delete {_what(found)} in {found.path}?",
    )


def _what(found: "Holding") -> str:
    shown = [name for name in found.tables if not name.startswith("_")]
    others = (
        f" and what no run has made: {listed(found.others[:5])}{', ...' if len(found.others) > 5 else ''}"
        if found.others
        else ""
    )
    named = f", {listed(shown)} among them" if shown else ""
    return f"{count(len(found.tables), 'table')}{named}{others} ({size(found.size)})"
