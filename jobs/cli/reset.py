"""The commands that repair a pipeline, or take something out of it: doctor, recover, reset, erase."""

import sys
from typing import TYPE_CHECKING

import click

from jobs.commands.engine import noting, writing
from jobs.commands.failure import Failure
from jobs.commands.options import common, key_option, keys_of
from jobs.commands.output import Printer
from windowing.errors import UsageError
from windowing.report.text import count, size
from windowing.spec.words import listed

if TYPE_CHECKING:
    from jobs.reset import Holding
    from windowing.errors import StateRefused
    from windowing.spec.pipeline import Pipeline

_REFUSED, _DECLINED = 4, 1


@click.command()
@common
def doctor(pipeline: "Pipeline", *, as_json: bool) -> None:
    """Does all that runs have kept fit together; exit 4 if not.

    Looks at source, checkpoint, ledger and tables and writes nothing. Every run asks the same before it begins.
    """
    session = noting(pipeline)
    from jobs.prepare import diagnosis

    found = diagnosis(session, pipeline)
    printer = Printer(as_json=as_json)
    if not found:
        printer.line(f"{pipeline.name}: source, checkpoint, ledger and tables tell one story")
    else:
        printer.table(["finding", "what"], [[refused.code, refused.message] for refused in found], pipeline.name)
    findings = [{"code": refused.code, "found": refused.message} for refused in found]
    printer.finish({"pipeline": pipeline.name, "healthy": not found, "findings": findings})
    if found:
        raise Failure(_sentence(pipeline, found), _REFUSED)


def _sentence(pipeline: "Pipeline", found: "tuple[StateRefused, ...]") -> str:
    return f"{pipeline.name}: {count(len(found), 'finding')}; no run will start until {'it is' if len(found) == 1 else 'they are'} repaired"


@click.command()
@common
def recover(pipeline: "Pipeline", *, as_json: bool) -> None:
    """Make a lost or damaged checkpoint anew from the ledger.

    One that is older, or of another stream, is made anew too. The old one is kept beside it. What the ledger can't tell is refused,
    with what to do.
    """
    session = noting(pipeline)
    from jobs.doctor import recover as recover_now

    repaired = recover_now(session, pipeline)
    printer = Printer(as_json=as_json)
    for finding in repaired.findings:
        printer.line(f"{pipeline.name}: repaired {finding.code}: {finding.found}")
    if repaired.kept is not None:
        printer.line(f"the old checkpoint is kept as {repaired.kept}")
    if not repaired.findings:
        printer.line(f"{pipeline.name}: nothing to repair")
    printer.finish({"pipeline": pipeline.name, **repaired.as_json()})


@click.command()
@common
@click.option("--yes", is_flag=True, help="Don't ask.")
def reset(pipeline: "Pipeline", *, as_json: bool, yes: bool) -> None:
    """Start over; asks before it deletes what runs have made.

    State, outputs, ledger and checkpoint go, the source stays. The next run reads the source from its beginning; what is published is
    gone until it is published again.
    """
    from jobs.lock import probe
    from jobs.reset import holding
    from jobs.reset import reset as reset_now

    probe(pipeline)
    found, printer = holding(pipeline), Printer(as_json=as_json)
    if found.size and not yes:
        _ask(found)
    gone = reset_now(pipeline)
    printer.line(f"{pipeline.name}: {_what(gone)} deleted from {gone.path}" if gone.size else f"{pipeline.name}: nothing to delete")
    printer.finish({"pipeline": pipeline.name, "deleted": gone.as_json()})


@click.command()
@common
@key_option
@click.option("--yes", is_flag=True, help="Don't ask.")
def erase(pipeline: "Pipeline", *, as_json: bool, keys: tuple[str, ...], yes: bool) -> None:
    """Delete one key from every table; asks before it does.

    Its rows go from state, outputs and refused rows, and so do the files of older versions. Erase it in the source afterwards: what is
    still there comes back with a backfill that reaches it. That is a change of the source's past, which needs source.changes: feed.
    Killed half-way, ask for it again.
    """
    chosen = keys_of(pipeline, keys)
    several = [column for column, values in chosen.items() if len(values) > 1]
    if several or not chosen:
        raise UsageError(f"erase takes one value for each key column of {pipeline.name}: --key COLUMN=VALUE")
    if not yes:
        _confirm("erase would delete all rows of one key and every older version of all tables", "Delete the key and all older versions?")
    session = writing(pipeline)
    from jobs.erase import erase as erase_now

    done = erase_now(session, pipeline, {column: values[0] for column, values in chosen.items()})
    printer = Printer(as_json=as_json)
    printer.table(["table", "rows deleted"], [[table, n] for table, n in done.rows.items()], pipeline.name)
    if done.resumed:
        printer.line("An erasure that was left half-way is closed with this one. If its key was another, erase that one again.")
    printer.finish({"pipeline": pipeline.name, **done.as_json()})


def _ask(found: "Holding") -> None:
    _confirm(f"reset would delete {_what(found)} in {found.path}", f"Delete {_what(found)} in {found.path}?")


def _confirm(would: str, question: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError(f"{would}; it asks first, and there is no terminal to ask on: give --yes")
    if not _agreed(question):
        raise Failure("nothing was deleted", _DECLINED)


def _agreed(question: str) -> bool:
    """Whether the answer is yes; Ctrl-C and the end of input are none."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)
        return False


def _what(found: "Holding") -> str:
    shown = [name for name in found.tables if not name.startswith("_")]
    others = f" and what no run has made: {listed(found.others[:5])}{', ...' if len(found.others) > 5 else ''}" if found.others else ""
    named = f", {listed(shown)} among them" if shown else ""
    return f"{count(len(found.tables), 'table')}{named}{others} ({size(found.size)})"
