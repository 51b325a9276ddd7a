"""The command that makes the folder of a new pipeline: init."""

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.cli.options import debug, json_option
from jobs.cli.spark import open_to_read
from jobs.cli.spark_extra import require_spark_extra
from jobs.console import Printer
from windowing.ingest.names import slug

if TYPE_CHECKING:
    from jobs.init import Project, Sample
    from windowing.ingest.proposal import Proposed


@click.command()
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Propose the pipeline from this file: CSV, JSON lines or Parquet.",
)
@json_option
@debug
def init(folder: Path, *, file: Path | None, printer: Printer) -> None:
    """Make the folder of a new pipeline, proposed from a file.

    FOLDER must not exist yet. Event time, key, id, aggregates, windows, delay and lateness are
    proposed by simple rules, and the reasons stand in the spec. Windows of the file's first
    records are shown before anything is written. Without --from it begins with a few orders.
    """
    require_spark_extra()
    from jobs.init import check_free, propose_project, sample_file, write_project
    from jobs.sessions.profiles import TINY
    from windowing.ingest import example

    check_free(folder)
    name = _name_pipeline(folder)
    sample = _sample_orders() if file is None else sample_file(file)
    project = propose_project(open_to_read(TINY), name, sample)
    _print(printer, project, sample)
    landed: Path | bytes = example.CONTENT.encode() if file is None else file
    write_project(project, folder, landed, example.NAME if file is None else file.name)
    printer.line(f"{folder} is written; README.md there says what is what. Next:")
    printer.line(f"  cd {shlex.quote(str(folder))}")
    printer.line(f"  tidemark ingest {name}")
    printer.line(f"  tidemark run {name}")
    printer.finish(
        {
            "pipeline": name,
            "folder": str(folder),
            "files": sorted(project.texts),
            "read": project.read,
            "quarantined": project.quarantined,
        }
    )


def _name_pipeline(folder: Path) -> str:
    """A name that a pipeline can have, like that of its folder."""
    cleaned = slug(folder.absolute().name)[:64]
    return cleaned if re.match("[a-z]", cleaned) else f"events_{cleaned}".rstrip("_")[:64]


def _sample_orders() -> "Sample":
    from jobs.init import Sample
    from windowing.ingest import example

    return Sample(example.NAME, example.CONTENT.encode(), {})


def _print(printer: Printer, project: "Project", sample: "Sample") -> None:
    proposal = project.proposal
    parts: dict[str, Proposed | None] = {
        "event_time": proposal.event_time,
        "zone": proposal.zone,
        "key": proposal.key,
        "event_id": proposal.event_id,
        "delay": proposal.delay,
        "allowed_lateness": proposal.allowed_lateness,
        **proposal.aggregates,
        **proposal.windows,
    }
    rows = [[name, part.value, part.why] for name, part in parts.items() if part is not None]
    printer.table(["part", "proposed", "because"], rows, f"{project.name}, from {sample.name}")
    found = project.windows
    cells = [[row[column] for column in found.columns] for row in found.rows]
    title = f"{project.window}, the first windows of {project.report.accepted:,} events"
    printer.data(found.columns, cells, title)
