"""The command that looks whether all that runs have kept fits together: doctor."""

from typing import TYPE_CHECKING

import click

from jobs.cli.errors import Failure
from jobs.cli.exit_codes import REFUSED
from jobs.cli.options import common
from jobs.cli.spark import noting
from jobs.console import Printer
from windowing.report.text import count

if TYPE_CHECKING:
    from windowing.errors import StateRefused
    from windowing.spec.pipeline import Pipeline


@click.command()
@common
def doctor(pipeline: "Pipeline", *, as_json: bool) -> None:
    """Does all that runs have kept fit together; exit 4 if not.

    Looks at source, checkpoint, ledger and tables and writes nothing. Every run asks the same before it begins.
    """
    session = noting(pipeline)
    from jobs.doctor import diagnosis

    found = diagnosis(session, pipeline)
    printer = Printer(as_json=as_json)
    if not found:
        printer.line(f"{pipeline.name}: source, checkpoint, ledger and tables tell one story")
    else:
        printer.table(
            ["finding", "what"],
            [[refused.code, refused.message] for refused in found],
            pipeline.name,
        )
    findings = [{"code": refused.code, "found": refused.message} for refused in found]
    printer.finish({"pipeline": pipeline.name, "healthy": not found, "findings": findings})
    if found:
        raise Failure(_sentence(pipeline, found), REFUSED)


def _sentence(pipeline: "Pipeline", found: "tuple[StateRefused, ...]") -> str:
    return f"{pipeline.name}: {count(len(found), 'finding')}; no run will start until {'it is' if len(found) == 1 else 'they are'} repaired"
