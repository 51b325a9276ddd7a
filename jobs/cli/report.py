"""The command that writes an HTML page of runs, outputs and quality: report."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.cli.options import common
from jobs.cli.spark import read_session
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
def report(pipeline: "Pipeline", *, as_json: bool, output: Path | None) -> None:
    """Write one self-contained HTML page of runs, outputs and quality."""
    from datetime import UTC, datetime

    from windowing.files import local_path
    from windowing.report.page import render_page
    from windowing.report.table import read_facts

    target = output or local_path(pipeline.table("_report.html"))
    facts = read_facts(pipeline, read_session)
    text = render_page(facts, datetime.now(UTC))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"--output: {target} can't be written ({error.strerror}); "
            "name a file in a directory of yours"
        ) from error
    printer = Printer(as_json=as_json)
    printer.line(f"{pipeline.name}: {target}")
    printer.finish({"pipeline": pipeline.name, "report": str(target)})
