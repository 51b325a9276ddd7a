"""The command that makes the folder of a new pipeline: init."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.cli.options import debug, json_option
from jobs.cli.spark import open_to_read
from jobs.cli.spark_extra import require_spark_extra
from jobs.console import Printer
from windowing.ingest.names import slug
from windowing.report.text import count

if TYPE_CHECKING:
    from jobs.init import Project
    from jobs.init_sample import Sample
    from windowing.ingest.disorder import Proposed


@click.command()
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "given",
    metavar="FILE|TABLE",
    type=click.Path(),
    help="Propose the pipeline from this file (CSV, JSON lines or Parquet), or from a Delta table "
    "by its path or URL.",
)
@json_option
@debug
def init(folder: Path, *, given: str | None, printer: Printer) -> None:
    """Make the folder of a new pipeline from a file or a table.

    FOLDER must not exist yet. Event time, key, id, aggregates, windows, delay and lateness are
    proposed by simple rules, and the reasons stand in the spec. Windows of some records are shown.
    Of a table's history it is measured how late events come. Without --from it begins with a few
    orders.
    """
    require_spark_extra()
    from jobs.init import check_free, propose_project, write_project
    from jobs.init_sample import TableSample, check_apart, find_sample
    from jobs.sessions.profiles import TINY

    check_free(folder)
    name = _name_pipeline(folder)
    sample = _sample_orders() if given is None else find_sample(given)
    if isinstance(sample, TableSample):
        check_apart(folder, sample)
    project = propose_project(open_to_read(TINY), name, sample)
    # Whoever reads the output may stop before its end, as `head` does.
    written = write_project(project, folder, sample)
    _print(printer, project, sample)
    printer.line(f"{folder} is written; README.md there says what is what. Next:")
    printer.line(f"  cd {shlex.quote(str(folder))}")
    if not isinstance(sample, TableSample):
        printer.line(f"  tidemark ingest {name}")
    printer.line(f"  tidemark run {name}")
    printer.finish(
        {
            "pipeline": name,
            "folder": str(folder),
            "files": written,
            "read": project.read,
            "quarantined": project.quarantined,
        }
    )


def _name_pipeline(folder: Path) -> str:
    """A name that a pipeline can have, like that of its folder."""
    cleaned = slug(folder.absolute().name)[:64]
    return cleaned if re.match("[a-z]", cleaned) else f"events_{cleaned}".rstrip("_")[:64]


def _sample_orders() -> "Sample":
    from jobs.init_sample import FileSample
    from windowing.ingest import example

    return FileSample(example.NAME, example.CONTENT.encode(), {})


def _print(printer: Printer, project: "Project", sample: "Sample") -> None:
    proposal = project.proposal
    parts: dict[str, Proposed | None] = {
        "event_time": proposal.event_time,
        "zone": proposal.zone,
        "key": proposal.key,
        "event_id": proposal.event_id,
        **proposal.columns,
        "delay": proposal.delay,
        "allowed_lateness": proposal.allowed_lateness,
        **proposal.aggregates,
        **proposal.windows,
    }
    rows = [[name, part.value, part.why] for name, part in parts.items() if part is not None]
    printer.table(["part", "proposed", "because"], rows, f"{project.name}, from {sample.name}")
    for remark in _remark(project, sample):
        printer.line(remark)
    found = project.windows
    cells = [[row[column] for column in found.columns] for row in found.rows]
    events = count(project.report.accepted, "event")
    title = f"{project.window}, the first windows of {events}"
    printer.data(found.columns, cells, title)


def _remark(project: "Project", sample: "Sample") -> Iterator[str]:
    """Sentences about what of the sample is not in its windows."""
    yield from project.proposal.remarks
    if project.quarantined:
        of_all = f"{project.quarantined:,} of {count(project.read, 'record')} of {sample.name}"
        are = "is no row" if project.quarantined == 1 else "are no rows"
        yield f"{of_all} {are}; `tidemark ingest` quarantines such records with the reason"
