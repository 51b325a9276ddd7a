"""The command that diagnoses a pipeline, and ends the lock of one that is lost: doctor."""

from typing import TYPE_CHECKING

import click

from jobs.cli.confirm import confirm
from jobs.cli.errors import Failure
from jobs.cli.exit_codes import REFUSED
from jobs.cli.options import common
from jobs.cli.spark import open_to_write
from jobs.console import Printer
from windowing.errors import UsageError
from windowing.report.places import describe_places, places_as_json
from windowing.report.text import count

if TYPE_CHECKING:
    from jobs.locking.lease_note import LeaseNote
    from windowing.errors import StateRefused
    from windowing.spec.pipeline import Pipeline


@click.command(short_help="Check that source, ledger, tables and pointer are consistent.")
@common
@click.option(
    "--break-lock",
    is_flag=True,
    help="Only end the lock of a command that is lost, after asking, on storage without locks.",
)
@click.option("--yes", is_flag=True, help="Break the lock without asking.")
def doctor(pipeline: "Pipeline", *, printer: Printer, break_lock: bool, yes: bool) -> None:
    """Check that source, ledger, tables and pointer are consistent; exit 4 if not.

    Every run makes the same diagnosis before it begins. Nothing is written.

    On S3 and HDFS a lock ends by itself when its holder does not renew it. With --break-lock it
    ends at once: what its holder has not committed is lost, and the next command finishes the rest.
    """
    if break_lock:
        _break_lock(printer, pipeline, yes=yes)
        return
    if yes:
        raise UsageError("--yes needs --break-lock, which asks before it ends the lock")
    from jobs.locking.lock_file import find_lock
    from jobs.sessions.profiles import TINY

    session = open_to_write(pipeline, TINY)
    from jobs.doctor import diagnose

    found = diagnose(session, pipeline)
    if found:
        rows = [[refused.code, refused.message] for refused in found]
        printer.table(["finding", "what"], rows, pipeline.name)
    else:
        printer.line(
            f"{pipeline.name} is healthy: source, ledger, tables and pointer are consistent"
        )
    printer.line(describe_places(pipeline))
    lock = find_lock(pipeline)
    if lock is not None:
        printer.line(_describe_lock(lock))
    findings = [{"code": refused.code, "found": refused.message} for refused in found]
    shown = {"findings": findings, "lock": None if lock is None else lock.as_json()}
    placed = places_as_json(pipeline)
    printer.finish({"pipeline": pipeline.name, "healthy": not found, **placed, **shown})
    if found:
        raise Failure(_describe_findings(pipeline, found), REFUSED)


def _describe_lock(lock: "LeaseNote") -> str:
    from jobs.locking.lease_note import State

    # Another command may have taken it since this one has looked for a holder.
    if lock.state is State.HELD:
        return f"the lock is held by {lock}"
    return f"the lock is free; last held by {lock}"


def _break_lock(printer: Printer, pipeline: "Pipeline", *, yes: bool) -> None:
    from jobs.landing.look import keeper_of
    from jobs.locking.broken_lock import break_lock, find_lock_to_break

    keepers = [] if pipeline.source.files is None else [keeper_of(pipeline)]
    found = find_lock_to_break(pipeline, keepers)
    owner, held = (pipeline, None) if found is None else found
    locked = "lock" if owner is pipeline else "lock on the ingest"
    if held is not None and not yes:
        confirm(
            f"doctor would break the {locked} of {held}",
            f"Break the {locked} of {held}? What it has not committed is lost.",
            "the lock stays as it is",
        )
    is_broken = held is not None and break_lock(owner, held)
    if held is None:
        printer.line(f"{pipeline.name}: nobody holds the lock")
    elif is_broken:
        printer.line(f"{pipeline.name}: the {locked} of {held} is broken")
    else:
        printer.line(f"{pipeline.name}: {held} has given the lock back meanwhile")
    lock = None if held is None else held.as_json()
    printer.finish({"pipeline": pipeline.name, "broken": is_broken, "lock": lock})


def _describe_findings(pipeline: "Pipeline", found: "tuple[StateRefused, ...]") -> str:
    named = f"{pipeline.name}: {count(len(found), 'finding')}"
    if all(refused.code == "FROZEN_CHANGED" for refused in found):
        return f"{named}; runs go on, but readers may see other rows than were closed"
    repaired = "it is" if len(found) == 1 else "they are"
    return f"{named}; no run will start until {repaired} repaired"
