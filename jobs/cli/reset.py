"""The command that deletes everything that runs have made: reset."""

from typing import TYPE_CHECKING

import click

from jobs.cli.confirm import confirm
from jobs.cli.lock import probe_lock
from jobs.cli.options import common
from jobs.console import Printer
from windowing.report.text import count, size
from windowing.spec.words import join_names

if TYPE_CHECKING:
    from jobs.reset import Holding
    from windowing.spec.pipeline import Pipeline


@click.command()
@common
@click.option("--yes", is_flag=True, help="Delete without asking.")
def reset(pipeline: "Pipeline", *, printer: Printer, yes: bool) -> None:
    """Start over: delete what runs have made, after asking.

    State, outputs, ledger and pointer are deleted; the source stays. The next run reads the
    source from its beginning, with the rows of keys that were erased. Nothing is published until
    the next publish.
    """
    from jobs.reset import holding
    from jobs.reset import reset as reset_now

    probe_lock(pipeline)
    found = holding(pipeline)
    if found.size and not yes:
        _ask(found)
    deleted = reset_now(pipeline)
    if deleted.size:
        printer.line(f"{pipeline.name}: {_describe(deleted)} deleted from {deleted.path}")
        if deleted.erased_keys or deleted.erased_values:
            printer.line(f"{_describe_erased(deleted)} before the next run")
    else:
        printer.line(f"{pipeline.name}: nothing to delete")
    printer.finish({"pipeline": pipeline.name, "deleted": deleted.as_json()})


def _ask(found: "Holding") -> None:
    what = f"{_describe(found)} in {found.path}"
    if found.erased_keys or found.erased_values:
        click.echo(f"{_describe_erased(found)} afterwards", err=True)
    confirm(f"reset would delete {what}", f"Delete {what}?")


def _describe_erased(found: "Holding") -> str:
    erased = []
    if found.erased_keys:
        erased.append(count(found.erased_keys, "erased key"))
    if found.erased_values:
        erased.append(count(found.erased_values, "erased value"))
    return f"{' and '.join(erased)} forgotten: if the source still has their rows, erase them again"


def _describe(found: "Holding") -> str:
    """Tables, with the names of outputs, then entries that no run has made, and the size of all."""
    outputs = [name for name in found.tables if not name.startswith("_")]
    text = count(len(found.tables), "table")
    if outputs:
        text += f", {join_names(outputs)} among them"
    if found.others:
        more = ", ..." if len(found.others) > 5 else ""
        text += f" and what no run has made: {join_names(found.others[:5])}{more}"
    return f"{text} ({size(found.size)})"
