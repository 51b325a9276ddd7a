"""The command that diagnoses a pipeline: doctor."""

from typing import TYPE_CHECKING

import click

from jobs.cli.errors import Failure
from jobs.cli.exit_codes import REFUSED
from jobs.cli.options import common
from jobs.cli.spark import open_to_write
from jobs.console import Printer
from windowing.report.text import count

if TYPE_CHECKING:
    from windowing.errors import StateRefused
    from windowing.spec.pipeline import Pipeline


@click.command(short_help="Check that source, ledger, tables and pointer are consistent.")
@common
def doctor(pipeline: "Pipeline", *, as_json: bool) -> None:
    """Check that source, ledger, tables and pointer are consistent; exit 4 if not.

    Every run makes the same diagnosis before it begins. Nothing is written.
    """
    from jobs.sessions.profiles import TINY

    session = open_to_write(pipeline, TINY)
    from jobs.doctor import diagnose

    found = diagnose(session, pipeline)
    printer = Printer(as_json=as_json)
    if found:
        rows = [[refused.code, refused.message] for refused in found]
        printer.table(["finding", "what"], rows, pipeline.name)
    else:
        printer.line(
            f"{pipeline.name} is healthy: source, ledger, tables and pointer are consistent"
        )
    findings = [{"code": refused.code, "found": refused.message} for refused in found]
    printer.finish({"pipeline": pipeline.name, "healthy": not found, "findings": findings})
    if found:
        raise Failure(_describe_findings(pipeline, found), REFUSED)


def _describe_findings(pipeline: "Pipeline", found: "tuple[StateRefused, ...]") -> str:
    repaired = "it is" if len(found) == 1 else "they are"
    return (
        f"{pipeline.name}: {count(len(found), 'finding')}; "
        f"no run will start until {repaired} repaired"
    )
