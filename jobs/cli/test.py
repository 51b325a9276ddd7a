"""The command that tests specs by transcripts: test."""

from typing import TYPE_CHECKING

import click

from jobs.cli.options import debug, json_option
from jobs.cli.spark import spark
from jobs.cli.spark_extra import require_spark_extra
from jobs.console import Printer
from windowing.errors import ExpectationsFailed, UsageError
from windowing.report.text import count
from windowing.spec.words import listed, shown

if TYPE_CHECKING:
    from jobs.transcripts import Verdict
    from windowing.transcripts.load import Play


@click.command("test")
@click.argument("paths", nargs=-1, required=True, metavar="TRANSCRIPT...")
@click.option("-k", "text", metavar="TEXT", help="Only transcripts whose name or path holds TEXT.")
@json_option
@debug
def check(paths: tuple[str, ...], *, text: str | None, as_json: bool) -> None:
    """Play TRANSCRIPTs against their specs; exit 3 if one disagrees.

    A TRANSCRIPT is a YAML file with the steps of a test: rows that come in, the watermark that moves on, and the rows that tables then
    hold. A directory stands for every transcript below it. Tables lie in a temporary directory.
    """
    require_spark_extra()
    from windowing.transcripts.load import plays

    chosen = _chosen(plays(paths), text)
    from jobs.transcripts import TINY, played

    session, printer = spark(**TINY), Printer(as_json=as_json)
    verdicts: list[Verdict] = []
    for verdict in played(session, chosen):
        verdicts.append(verdict)
        _print(printer, verdict)
    failed = [v for v in verdicts if not v.agrees]
    if not failed:
        printer.line(
            f"{count(len(verdicts), 'transcript agrees', 'transcripts agree')}, {sum(v.seconds for v in verdicts):.1f} s"
        )
    printer.finish(
        {
            "agree": len(verdicts) - len(failed),
            "failed": len(failed),
            "transcripts": [v.as_json() for v in verdicts],
        }
    )
    if failed:
        raise ExpectationsFailed(
            f"{len(failed)} of {count(len(verdicts), 'transcript')} failed: {listed(v.name for v in failed)}"
        )


def _chosen(found: list["Play"], text: str | None) -> list["Play"]:
    wanted = [
        p
        for p in found
        if text is None or text.lower() in f"{p.transcript.name}\n{p.transcript.file}".lower()
    ]
    if not wanted:
        names = listed(p.transcript.name for p in found)
        raise UsageError(
            f"-k {shown(text)}: no transcript has this in its name or path; there are {names}"
        )
    return wanted


def _print(printer: Printer, verdict: "Verdict") -> None:
    from windowing.report.difference import lines

    printer.line(
        f"{'ok' if verdict.agrees else 'FAILED':<6} {verdict.seconds:5.1f} s  {verdict.name}"
    )
    for missed in verdict.missed:
        printer.line(f"  {verdict.file}:{missed.line}: after step {missed.step}")
        for difference in missed.differences:
            for line in lines(difference):
                printer.line(f"    {line}")
