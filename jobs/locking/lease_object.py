"""The object of a lease on its store: read, and written only where it is unchanged."""

import os
from dataclasses import dataclass

from jobs.locking.holder import Holder
from jobs.locking.lease_note import LeaseNote, State, parse_lease
from windowing.errors import Busy, UsageError
from windowing.location import Location
from windowing.spec.pipeline import Pipeline
from windowing.storage.store import SharedStore, shared_store_of

VARIABLE = "TIDEMARK_LEASE_SECONDS"
FILE = "_lock"
"""The name of the lock of a pipeline, in its directory."""
_SECONDS, _LEAST, _MOST = 30.0, 1.0, 3600.0
_REQUESTS = 6
"""How many requests, one after the other, the time of a lease has room for."""
_NOT_ENDED: set[str] = set()
"""The leases that this process has taken, or may have, and has not ended."""


@dataclass(frozen=True)
class Found:
    """An object as it was read; `note` is None where it describes no lease, `tag` without one."""

    note: LeaseNote | None
    tag: str | None


@dataclass(frozen=True)
class LeaseObject:
    """The lease of a pipeline, and for how many seconds it is valid where this process takes it."""

    pipeline: Pipeline
    store: SharedStore
    seconds: float

    @property
    def file(self) -> Location:
        """Where it is."""
        return self.pipeline.table(FILE)

    def read(self) -> Found:
        """The object as it is now."""
        found = self.store.read_tagged(self.file)
        return Found(None, None) if found is None else Found(parse_lease(found.content), found.tag)

    def write(self, note: LeaseNote, before: Found) -> Found | None:
        """Writes the object unless it has changed since `before`; None where it has."""
        is_held = note.state is State.HELD
        if is_held:
            # Where no answer comes, it is unknown whether it was written.
            _NOT_ENDED.add(self.file.text)
        tag = self.store.replace(self.file, note.as_bytes(), before.tag)
        if tag is None or not is_held:
            _NOT_ENDED.discard(self.file.text)
        return None if tag is None else Found(note, tag)

    def write_on(self, note: LeaseNote, before: Found) -> Found | None:
        """As `write`, by the holder, whose earlier call may have been done without an answer.

        What that has written is followed by another write, because nobody knows when it was done.
        """
        written = self.write(note, before)
        if written is not None:
            return written
        # Until it is read, it may still be this holder's.
        _NOT_ENDED.add(self.file.text)
        now = self.read()
        behind = note.behind(now.note)
        if behind is not None:
            return self.write(behind, now)
        _NOT_ENDED.discard(self.file.text)
        return None

    def busy(self, found: Found) -> Busy:
        """The error of whoever finds the lease held."""
        return busy_error(self.pipeline, found.note)


def is_any_not_ended() -> bool:
    """Whether a lease may still say that this process holds it.

    Others then see a holder at work for as long as this process or its JVM lives.
    """
    return bool(_NOT_ENDED)


def busy_error(pipeline: Pipeline, holder: LeaseNote | Holder | None = None) -> Busy:
    """The error of whoever finds the lock held; `holder` is named where it is known."""
    held = f"another writer holds {pipeline.table(FILE)}"
    named = "" if holder is None else f": {holder}"
    return Busy(f"{pipeline.name}: {held}{named}; try again when it has finished")


def find_lease(pipeline: Pipeline) -> LeaseObject | None:
    """The lease of a pipeline; None where its lake is on a disk, which has locks.

    UsageError where the environment asks for a time that a lease can't have.
    """
    if shared_store_of(pipeline.root) is None:
        return None
    seconds = _read_seconds()
    # A renewal that hangs must leave time for another one.
    store = shared_store_of(pipeline.root, max(1.0, seconds / _REQUESTS))
    return None if store is None else LeaseObject(pipeline, store, seconds)


def _read_seconds() -> float:
    text = os.environ.get(VARIABLE) or str(_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not _LEAST <= seconds <= _MOST:
        raise UsageError(
            f"{VARIABLE} is {text!r}; it has to be a number of seconds from {_LEAST:g} to "
            f"{_MOST:g}, or is not set"
        )
    return seconds
