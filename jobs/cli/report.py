"""The command that writes an HTML page of runs, outputs and quality: report."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.cli.options import common
from jobs.cli.spark import open_to_read
from jobs.console import Printer
from windowing.errors import UsageError

if TYPE_CHECKING:
    from windowing.spec.pipeline import Pipeline


@click.command()
@common
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="The file to write. Default: _report.html beside the tables.",
)
def report(pipeline: "Pipeline", *, printer: Printer, output: Path | None) -> None:
    """Write one self-contained HTML page of runs, outputs and quality."""
    from datetime import UTC, datetime

    from jobs.sessions.profiles import TINY
    from jobs.validation.validated import find_docs
    from windowing.report.page import render_page
    from windowing.report.table import read_facts
    from windowing.storage.files import has_directory
    from windowing.storage.store import store_of

    page = pipeline.table("_report.html")
    target = output or page
    if output is None and not has_directory(pipeline.root):
        # Whoever has moved the lake would find a second one here.
        printer.line(f"{pipeline.name}: no report, because there is nothing at {pipeline.root} yet")
        printer.finish({"pipeline": pipeline.name, "report": None})
        return
    facts = read_facts(pipeline, lambda: open_to_read(TINY))
    docs = find_docs(pipeline, facts.checks[0].run, facts.checks[0].seq) if facts.checks else None
    href = None
    if docs is not None:
        # Beside its pipeline the page can move with it.
        is_beside = output is None
        href = "/".join(docs.text.split("/")[-3:]) if is_beside else docs.uri
    text = render_page(facts, datetime.now(UTC), href)
    try:
        if output is None:
            store_of(page).write(page, text.encode())
        else:
            output.parent.mkdir(parents=True, exist_ok=True)
            # It may be a device, which a rename would replace.
            output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"--output: {target} can't be written ({error.strerror}); "
            "name a file in a directory of yours"
        ) from error
    printer.line(f"{pipeline.name}: {target}")
    printer.finish({"pipeline": pipeline.name, "report": str(target)})
