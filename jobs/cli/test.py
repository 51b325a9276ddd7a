"""The command that tests specs by transcripts: test."""

from typing import TYPE_CHECKING

import click

from jobs.cli.options import debug, json_option
from jobs.cli.spark import open_to_read
from jobs.cli.spark_extra import require_spark_extra
from jobs.console import Printer
from windowing.errors import ExpectationsFailed, UsageError
from windowing.report.text import count
from windowing.spec.words import join_names, quote_value

if TYPE_CHECKING:
    from jobs.transcripts import Verdict
    from windowing.transcripts.load import Play


@click.command("test")
@click.argument("paths", nargs=-1, required=True, metavar="TRANSCRIPT...")
@click.option(
    "-k", "text", metavar="TEXT", help="Only transcripts whose name or path contains TEXT."
)
@json_option
@debug
def check(paths: tuple[str, ...], *, text: str | None, printer: Printer) -> None:
    """Play TRANSCRIPTs against their specs; exit 3 if one disagrees.

    A TRANSCRIPT is a YAML file with the steps of a test: rows that are added to the source, a
    watermark, and the rows that tables then contain. A directory stands for every transcript below
    it. Tables are written to a temporary directory.
    """
    require_spark_extra()
    from windowing.transcripts.load import load_plays

    chosen = _select_transcripts(load_plays(paths), text)
    from jobs.sessions.profiles import TEST
    from jobs.transcripts import play_transcripts

    session = open_to_read(TEST)
    verdicts: list[Verdict] = []
    for verdict in play_transcripts(session, chosen):
        verdicts.append(verdict)
        _print_verdict(printer, verdict)
    failed = [verdict for verdict in verdicts if not verdict.agrees]
    if not failed:
        agreeing = count(len(verdicts), "transcript agrees", "transcripts agree")
        printer.line(f"{agreeing}, {sum(v.seconds for v in verdicts):.1f} s")
    printer.finish(
        {
            "agree": len(verdicts) - len(failed),
            "failed": len(failed),
            "transcripts": [verdict.as_json() for verdict in verdicts],
        }
    )
    if failed:
        names = join_names(verdict.name for verdict in failed)
        raise ExpectationsFailed(
            f"{len(failed)} of {count(len(verdicts), 'transcript')} failed: {names}"
        )


def _select_transcripts(found: list["Play"], text: str | None) -> list["Play"]:
    """The transcripts whose name or path contains `text`; upper and lower case are the same."""
    if text is None:
        wanted = found
    else:
        wanted = [play for play in found if text.lower() in _name_and_path(play).lower()]
    if not wanted:
        names = join_names(play.transcript.name for play in found)
        raise UsageError(
            f"-k {quote_value(text)}: no transcript has this in its name or path; there are {names}"
        )
    return wanted


def _name_and_path(play: "Play") -> str:
    return f"{play.transcript.name}\n{play.transcript.file}"


def _print_verdict(printer: Printer, verdict: "Verdict") -> None:
    from windowing.report.difference import lines

    result = "ok" if verdict.agrees else "FAILED"
    printer.line(f"{result:<6} {verdict.seconds:5.1f} s  {verdict.name}")
    for missed in verdict.missed:
        printer.line(f"  {verdict.file}:{missed.line}: after step {missed.step}")
        for difference in missed.differences:
            for line in lines(difference):
                printer.line(f"    {line}")
