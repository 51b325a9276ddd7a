"""The command that writes an HTML page about a pipeline: report."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.cli.options import common
from jobs.cli.spark import open_to_read
from jobs.console import Printer
from windowing.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windowing.location import Location
    from windowing.report.facts import Facts
    from windowing.report.kept_rows import Asked
    from windowing.spec.pipeline import Pipeline


@click.command()
@common
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="The file to write. Default: _report.html beside the tables.",
)
@click.option(
    "--samples",
    is_flag=True,
    help="Add refused rows, keys of failing rows and values of revised windows. Needs --output.",
)
def report(pipeline: "Pipeline", *, printer: Printer, output: Path | None, samples: bool) -> None:
    """Write one HTML page of lateness, corrections, quality and runs.

    The page has charts, and requests nothing from anywhere. Without --samples it contains no value
    of a row.
    """
    from windowing.report.kept_rows import Asked
    from windowing.storage.files import has_directory

    if samples and output is None:
        raise UsageError(
            "--samples: _report.html is read by people who may not read the tables, so it gets no "
            "values of rows; name another file, as in --samples --output samples.html"
        )
    if output is None and not has_directory(pipeline.root):
        # Whoever has moved the lake would find a second one here.
        printer.line(f"{pipeline.name}: no report, because there is nothing at {pipeline.root} yet")
        printer.finish({"pipeline": pipeline.name, "report": None})
        return
    if output is not None and ":/" in str(output):
        raise UsageError(
            f"--output: {output} is none of this machine's files, and others are not written; name "
            "a path without a scheme, and copy the page"
        )
    asked = Asked.VALUES if samples else Asked.COUNTS
    target = output or pipeline.table("_report.html")
    _write(target, _render(pipeline, asked, target))
    printer.line(f"{pipeline.name}: {target}")
    printer.finish({"pipeline": pipeline.name, "report": str(target)})


def _render(pipeline: "Pipeline", asked: "Asked", target: "Path | Location") -> str:
    from datetime import UTC, datetime
    from functools import cache

    from jobs.report import report as gather
    from jobs.sessions.profiles import TINY, choose_for_tables
    from windowing.report.kept_rows import Asked
    from windowing.report.page import render_page
    from windowing.report.view import view_facts

    @cache
    def open_session() -> "SparkSession":
        few = asked is Asked.COUNTS
        return open_to_read(TINY if few else choose_for_tables(pipeline))

    facts = gather(pipeline, open_session, asked)
    return render_page(view_facts(facts, datetime.now(UTC), _link_docs(pipeline, facts, target)))


def _link_docs(pipeline: "Pipeline", facts: "Facts", target: "Path | Location") -> str | None:
    """Where the newest Data Docs lie, as seen from the page at `target`."""
    from jobs.report import locate_docs

    docs = locate_docs(pipeline, facts)
    if docs is None:
        return None
    # Beside its pipeline the page can move with it.
    return docs.uri if isinstance(target, Path) else "/".join(docs.text.split("/")[-3:])


def _write(target: "Path | Location", text: str) -> None:
    from windowing.storage.store import store_of

    try:
        if not isinstance(target, Path):
            store_of(target).write(target, text.encode())
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        # It may be a device, which a rename would replace.
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"--output: {target} can't be written ({error.strerror}); "
            "name a file in a directory of yours"
        ) from error
