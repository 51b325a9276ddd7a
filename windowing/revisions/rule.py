"""How the values of one window followed one another, and which step made each. No Spark.

changes of an output + ledger -> values, each with what made it, and since when it was known and
published
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from windowing.columns import RUN
from windowing.grid.zone import moment
from windowing.ledger.evolved import OF_ERASURE
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import (
    BACKFILL_DONE,
    CLOSE,
    DONE,
    ERASE_DONE,
    EVOLVE_DONE,
    MAINTAIN_DONE,
    PERIOD_CLOSED,
    PERIOD_REOPENED,
    LedgerEntry,
)
from windowing.source.rule import read_range, reprocesses_change

_WRITING = (
    DONE,
    CLOSE,
    BACKFILL_DONE,
    EVOLVE_DONE,
    ERASE_DONE,
    MAINTAIN_DONE,
    PERIOD_CLOSED,
    PERIOD_REOPENED,
)
"""Steps that may have written an output, and whose entries name its version afterwards."""

_OF_RUNS = (DONE, CLOSE)


class Cause(StrEnum):
    """Which kind of step gave a window a value, or took it away."""

    RUN = "run"
    BACKFILL = "backfill"
    SOURCE_CHANGE = "source change"
    SPEC_CHANGE = "spec change"
    ERASURE = "erasure"
    MAINTENANCE = "maintenance"
    CLOSED_PERIOD = "close"
    REOPENED_PERIOD = "reopening"
    UNFINISHED = "unfinished step"


_CAUSES = {
    DONE: Cause.RUN,
    CLOSE: Cause.RUN,
    ERASE_DONE: Cause.ERASURE,
    MAINTAIN_DONE: Cause.MAINTENANCE,
    PERIOD_CLOSED: Cause.CLOSED_PERIOD,
    PERIOD_REOPENED: Cause.REOPENED_PERIOD,
}


@dataclass(frozen=True)
class Period:
    """From `start` (inclusive) to `end` (exclusive).

    A `start` that is None is not recorded, and an `end` that is None is now.
    """

    start: datetime | None
    end: datetime | None


@dataclass(frozen=True)
class Step:
    """A step of the ledger as the cause of a value; `at` is when it was recorded as finished.

    `run` is the run that it was, or the newest one before it. `reprocessed` is the range of event
    time of a backfill. `seq` is the number of the entry with which it ended.
    """

    cause: Cause
    run: int | None = None
    at: datetime | None = None
    reprocessed: Period | None = None
    seq: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Change:
    """What a version of an output did to a row: its values `before`, and whether it `stays`.

    `before` is None where the row was inserted.
    """

    version: int
    before: Mapping[str, Any] | None
    stays: bool


@dataclass(frozen=True)
class Value:
    """The `values` of a window for a time; None while the output did not have it.

    `known` is when they were the newest, and `published` when readers of the published version saw
    them, as far as that is recorded: not `is_published_known` where readers may have seen them in
    publications from before. `made_by` is None, and so is the start of `known`, for values that are
    older than what is recorded.
    """

    values: Mapping[str, Any] | None
    made_by: Step | None
    known: Period
    published: tuple[Period, ...]
    is_published_known: bool = True


def list_values(
    changes: Iterable[Change],
    newest: Mapping[str, Any] | None,
    past: LedgerHistory,
    window: str,
    first: int,
) -> tuple[Value, ...]:
    """The values that one row of the output `window` has had, oldest first.

    `changes` are those since version `first` that are recorded, in order of their versions, and
    `newest` is the row as it is now. Only inserts of runs may be missing among them; the row then
    names the run. What a value was before `first` is not known.
    """
    recorded = _list_states(_join_replacements(changes), newest)
    states = []
    for since, values in recorded:
        begun = _find_inserted(past, window, values) if since is None else since
        states.append((None if begun is None or begun < first else begun, values))
    ends = [since for since, _ in states[1:]]
    found = []
    for (since, values), until in zip(states, [*ends, None], strict=True):
        made_by = None if since is None else find_step(past, window, since)
        ended_by = None if until is None else find_step(past, window, until)
        if made_by is not None and _are_one(made_by, ended_by):
            # Nobody saw what a step has replaced itself.
            continue
        known = Period(
            None if made_by is None else made_by.at, None if ended_by is None else ended_by.at
        )
        begin = first if since is None else since
        published = tuple(_list_published(past, window, begin, until))
        is_sure = since is not None or not _was_published_before(past, window, first)
        if published and not is_sure:
            published = (replace(published[0], start=None), *published[1:])
        found.append(Value(values, made_by, known, published, is_sure))
    return tuple(found)


def _are_one(step: Step, other: Step | None) -> bool:
    """Whether both are the same finished step."""
    return other is not None and step.seq is not None and step.seq == other.seq


def _was_published_before(past: LedgerHistory, window: str, first: int) -> bool:
    """Whether a version before `first` was published, in which a row may have had any value."""
    return any(entry.versions.get(window, first) < first for entry in past.publications)


def _join_replacements(changes: Iterable[Change]) -> list[Change]:
    """The changes, where a version that deleted a row and inserted it again has one of them."""
    joined: list[Change] = []
    for change in changes:
        if joined and joined[-1].version == change.version:
            joined[-1] = replace(joined[-1], stays=change.stays)
        else:
            joined.append(change)
    return joined


def _list_states(
    changes: Sequence[Change], newest: Mapping[str, Any] | None
) -> list[tuple[int | None, Mapping[str, Any] | None]]:
    """What the row was, and since which version; None for one that is not recorded."""
    if not changes:
        return [(None, newest)] if newest is not None else []
    states: list[tuple[int | None, Mapping[str, Any] | None]] = []
    followers = [*(change.before for change in changes[1:]), newest]
    if changes[0].before is not None:
        states.append((None, changes[0].before))
    for change, follower in zip(changes, followers, strict=True):
        if change.stays:
            states.append((change.version, follower))
            continue
        states.append((change.version, None))
        if follower is not None:
            # Of a row that came back, only its later change may be recorded.
            states.append((None, follower))
    return states


def _list_writing(past: LedgerHistory, window: str) -> list[LedgerEntry]:
    """The entries, oldest first, of steps that may have written the output."""
    return [e for e in past.entries if e.step in _WRITING and window in e.versions]


def _find_inserted(
    past: LedgerHistory, window: str, values: Mapping[str, Any] | None
) -> int | None:
    """The first version of the run that a row names; None where the ledger has no such run."""
    before = 0
    for entry in _list_writing(past, window):
        if entry.step in _OF_RUNS and values is not None and entry.run == values.get(RUN):
            return before + 1
        before = entry.versions[window]
    return None


def list_versions_of_runs(past: LedgerHistory, window: str) -> Iterator[tuple[int, int]]:
    """The ranges of versions of an output that runs have made, both ends included.

    Versions of runs that follow one another are one range.
    """
    begun, before = 1, 0
    for entry in _list_writing(past, window):
        newest = entry.versions[window]
        if entry.step not in _OF_RUNS and newest > before:
            if begun <= before:
                yield begun, before
            begun = newest + 1
        before = max(before, newest)
    if begun <= before:
        yield begun, before


def find_version_at(past: LedgerHistory, window: str, at_us: int) -> int:
    """The newest version of the output that a step has made which had ended by then, or -1."""
    entries = _list_writing(past, window)
    made = [e.versions[window] for e in entries if e.at is not None and e.at <= at_us]
    return max(made, default=-1)


def find_step(past: LedgerHistory, window: str, version: int) -> Step:
    """The step that made `version` of the output `window`.

    That is the first one after which the ledger names this version or a later one.
    """
    for entry in _list_writing(past, window):
        if entry.versions[window] >= version:
            return describe_step(entry)
    return Step(Cause.UNFINISHED)


def describe_step(entry: LedgerEntry) -> Step:
    """The step that has ended with an entry."""
    cause = _find_cause(entry)
    at = None if entry.at is None else moment(entry.at)
    return Step(cause, entry.run, at, _find_range(entry), entry.seq)


def _find_range(entry: LedgerEntry) -> Period | None:
    times = read_range(entry)
    return None if times is None else Period(moment(times.low_us), moment(times.high_us + 1))


def _find_cause(entry: LedgerEntry) -> Cause:
    if entry.step == BACKFILL_DONE:
        return Cause.SOURCE_CHANGE if reprocesses_change(entry) else Cause.BACKFILL
    if entry.step == EVOLVE_DONE:
        return Cause.ERASURE if entry.note == OF_ERASURE else Cause.SPEC_CHANGE
    return _CAUSES[entry.step]


def _list_published(
    past: LedgerHistory, window: str, since: int, until: int | None
) -> Iterator[Period]:
    """When readers saw a version from `since` (inclusive) to `until` (exclusive)."""
    start: datetime | None = None
    is_seen = False
    for entry in past.publications:
        version = entry.versions.get(window)
        at = None if entry.at is None else moment(entry.at)
        shows = version is not None and version >= since and (until is None or version < until)
        if shows and not is_seen:
            start = at
        if is_seen and not shows:
            yield Period(start, at)
        is_seen = shows
    if is_seen:
        yield Period(start, None)
