"""Whether the newest versions were validated already, before any JVM starts.

Whatever is in doubt is left to a validation, which evaluates every expectation.

    ledger + spec + suite -> basis, a digest of what outcomes follow from
    `_quality` with the same basis -> what a validation would find
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path

from expectations.outcome import NO_VALIDATION, Facts, Validation
from expectations.places import docs_of, read_suite, suites_of
from expectations.table import read_validation
from jobs.diagnosis.spec_changes import check_kept_names
from jobs.validation.alarming import find_holding
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import PERIOD_REOPENED, LedgerEntry
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.spec.kinds import Window
from windowing.spec.pipeline import TOGETHER, Pipeline
from windowing.storage import control
from windowing.storage.store import store_of

_JUDGES = ("tidemark", "great-expectations")
"""The packages whose versions decide what is expected and how it is evaluated."""


def find_validation(pipeline: Pipeline) -> Validation | None:
    """What a validation of the newest versions would find, where it was recorded by one.

    None where the last one followed from anything else, such as another suite, or where its Data
    Docs are gone. Raises StateRefused where the spec is not the one that made them, as `run` does.
    """
    try:
        past = read_history(pipeline)
        subject = past.newest
        if subject is None:
            return NO_VALIDATION
        check_kept_names(pipeline, past)
        basis = digest_basis(pipeline, past, subject, suites_of(pipeline))
        outcomes = () if basis is None else read_validation(pipeline, subject, basis)
    except control.TableError:
        return None
    page = find_docs(pipeline, subject.run, subject.seq)
    if not outcomes or page is None:
        return None
    return Validation(subject.run or 0, subject.seq, outcomes, str(page))


def digest_basis(
    pipeline: Pipeline, past: LedgerHistory, subject: LedgerEntry, suites: Path
) -> str | None:
    """A digest of all that decides the outcomes for the versions of `subject`.

    These are the versions, the spec, the suite, what the ledger counts and the packages that judge.
    None where outcomes also depend on state, which is no part of it.
    """
    if depends_on_state(past):
        return None
    described = {
        "versions": dict(subject.versions),
        "spec": _describe_spec(pipeline),
        "suite": hashlib.sha256(read_suite(pipeline, suites)).hexdigest(),
        "facts": asdict(recorded_facts(pipeline, past)),
        "overflows": count_overflows(pipeline, past, subject),
        "alarms": [asdict(each) for each in find_holding(pipeline, past, subject)],
        "accepted": _describe_accepted(past),
        "packages": [version(name) for name in _JUDGES],
    }
    text = json.dumps(described, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _describe_spec(pipeline: Pipeline) -> str:
    """The spec without what changes no outcome: where it lies, when it runs, when it is stale."""
    judging = replace(pipeline, file=None, schedule=None, publish=TOGETHER, freshness_us=None)
    return repr(judging)


def _describe_accepted(past: LedgerHistory) -> dict[str, object] | None:
    """What was accepted of the published outputs, and their versions; None where nothing was."""
    acceptance, published = past.acceptance, past.published
    if acceptance is None or published is None or not acceptance.failed:
        return None
    return {"note": acceptance.as_note(), "versions": dict(published.versions)}


def depends_on_state(past: LedgerHistory) -> bool:
    """Whether facts are read from state: the ledger counts what is erased only when that is done.

    State can't say it either while a run is open, or once panes may have expired.
    """
    if past.open_erasure is None:
        return False
    return past.open_run is None and not past.state_may_be_expired


def recorded_facts(pipeline: Pipeline, past: LedgerHistory) -> Facts:
    """What the ledger records that the outputs must sum to."""
    settled = past.settled
    partial = {w.name: settled.total(f"partial.{w.name}") for w in pipeline.windows}
    expiring = tuple(w.name for w in pipeline.windows if past.rows_may_be_expired(w.name))
    return Facts(settled.total("accepted"), partial, expiring)


def count_overflows(
    pipeline: Pipeline, past: LedgerHistory, subject: LedgerEntry
) -> Mapping[str, int]:
    """How often sums of an output overflowed since the published versions, where any did."""
    found = {}
    for window in pipeline.windows:
        since = _list_since_shown(past, window, subject)
        times = sum(entry.counts.get(f"{window.name}.overflow", 0) for entry in since)
        if times:
            found[window.name] = times
    return found


def list_reopened(pipeline: Pipeline, past: LedgerHistory, subject: LedgerEntry) -> set[str]:
    """The outputs of which a period was reopened since the published versions."""
    return {
        window.name
        for window in pipeline.windows
        if any(e.step == PERIOD_REOPENED for e in _list_since_shown(past, window, subject))
    }


def _list_since_shown(
    past: LedgerHistory, window: Window, subject: LedgerEntry
) -> list[LedgerEntry]:
    """The finished steps until `subject` that came after what readers see of an output."""
    return [entry for entry in past.since_shown(window.name) if entry.seq <= subject.seq]


def name_site(run: int | None, seq: int) -> str:
    """The name of the Data Docs about the versions that the ledger's entry `seq` names."""
    return f"run-{run}-entry-{seq}"


def find_docs(pipeline: Pipeline, run: int | None, seq: int) -> Location | None:
    """The first page of these Data Docs; None where there are none any more."""
    page = docs_of(pipeline) / name_site(run, seq) / "index.html"
    return None if store_of(page).identify(page) is None else page
