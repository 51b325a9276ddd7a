"""The file that is locked, as this process sees it: for commands that need no JVM."""

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from jobs.foreign_errors.control_errors import control_errors_explained
from jobs.locking.attempt import find_own_attempt
from jobs.locking.earlier_try import end_earlier_try, find_locking_process
from jobs.locking.file_system import check_file_system
from jobs.locking.holder import (
    UNKNOWN_HOLDER,
    Holder,
    describe_holder,
    find_this_holder,
    parse_holder,
)
from jobs.locking.lease import holding, probe_lease, take_lease
from jobs.locking.lease_note import LeaseNote, State
from jobs.locking.lease_object import FILE, busy_error, find_lease
from windowing.errors import UsageError
from windowing.spec.pipeline import Pipeline
from windowing.storage.kept_open import lake_written
from windowing.storage.store import shared_store_of

_LOCKED_HERE: set[Path] = set()
"""The lock files that blocks of this process hold."""
_GUARD = Lock()
"""Guards `_LOCKED_HERE` against threads."""
_PASSING = {errno.EIO, errno.ECONNREFUSED, errno.ETIMEDOUT, errno.EBUSY}
"""The numbers of errors that a store has while it is down, restarts or has too much to do."""


def lock_path(pipeline: Pipeline) -> Path:
    """The file whose lock a writer of the pipeline holds.

    UsageError where the lake lies in a file system that other machines may write to.
    """
    check_file_system(pipeline.root.local)
    return pipeline.table(FILE).local


@contextmanager
def held_here(pipeline: Pipeline) -> Iterator[None]:
    """Holds the pipeline's lock by this process itself, for commands that need no JVM.

    Busy when another process holds it; UsageError when the lake can't be written to.
    """
    lease = find_lease(pipeline)
    if lease is not None:
        with write_errors_explained(pipeline):
            held = take_lease(lease)
        with holding(held), lake_written(pipeline.root), control_errors_explained(pipeline):
            yield
        return
    path = lock_path(pipeline)
    with one_block_here(pipeline, path.resolve()), _open_file(pipeline, path) as file:
        _lock(pipeline, file)
        # A reset may have renamed the directory before the file was locked here.
        if not path.exists() or path.stat().st_ino != os.fstat(file.fileno()).st_ino:
            raise busy_error(pipeline)
        # Opened once more and closed, the file would lose its lock.
        _note_holder(file)
        with lake_written(pipeline.root), control_errors_explained(pipeline):
            yield


def note_holder_of(path: Path, jvm: int) -> None:
    """Writes into the file that this process is at work, while its JVM holds the lock."""
    with suppress(OSError), path.open("r+b") as file:
        _note_holder(file, jvm)


def _note_holder(file: BinaryIO, *jvms: int) -> None:
    # Where the disk is full, whoever is refused does not learn who holds the lock.
    with suppress(OSError):
        file.truncate(0)
        file.write(json.dumps(describe_holder(find_this_holder(jvms))).encode())
        file.flush()


def _lock(pipeline: Pipeline, file: BinaryIO) -> None:
    """Locks the file; raises Busy, with the holder, where another process has locked it."""
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as held:
        file.seek(0)
        raise busy_error(pipeline, parse_holder(file.read())) from held


def _open_file(pipeline: Pipeline, path: Path) -> BinaryIO:
    with write_errors_explained(pipeline):
        return path.open("a+b")


@contextmanager
def one_block_here(pipeline: Pipeline, path: Path) -> Iterator[None]:
    """Busy when another block of this process holds the lock.

    The JVM must not even try then, because POSIX frees all locks that a process has on a file as
    soon as it closes any descriptor of it.
    """
    with _GUARD:
        if path in _LOCKED_HERE:
            raise busy_error(pipeline)
        _LOCKED_HERE.add(path)
    try:
        yield
    finally:
        _LOCKED_HERE.discard(path)


def probe(pipeline: Pipeline) -> Holder | None:
    """Busy at once when another process holds the lock; needs no JVM, and keeps no lock.

    An earlier try of the task that this process is a try of is ended instead, and returned.
    UsageError when the lake can't be written to.
    """
    attempt = find_own_attempt()
    lease = find_lease(pipeline)
    if lease is not None:
        with write_errors_explained(pipeline):
            return probe_lease(lease, attempt)
    path = lock_path(pipeline)
    with write_errors_explained(pipeline):
        # Where the directory may not be entered, even this is refused.
        if not path.exists():
            return None
        file = path.open("r+b")
    with file:
        ended = None if attempt is None else end_earlier_try(file, attempt)
        _lock(pipeline, file)
        fcntl.lockf(file, fcntl.LOCK_UN)
    return ended


def find_lock(pipeline: Pipeline) -> LeaseNote | None:
    """Who holds the lock, or held it last; None where it is one of the system, or there was none.

    UsageError where the lake can't be read.
    """
    lease = find_lease(pipeline)
    if lease is None:
        return None
    with write_errors_explained(pipeline):
        return lease.read().note


def find_writer(pipeline: Pipeline) -> Holder | None:
    """Who holds the lock; None where nobody does. Nobody is kept from taking it meanwhile.

    On a shared store whoever was lost while holding it counts until another one takes it.
    UsageError where the lake can't be read.
    """
    if find_lease(pipeline) is not None:
        note = find_lock(pipeline)
        return note.holder if note is not None and note.state is State.HELD else None
    with write_errors_explained(pipeline):
        # Nothing is locked here, so any file system will do.
        path = pipeline.table(FILE).local
        with _GUARD:
            # The file must not be opened and closed here then, which would free the lock.
            if path.resolve() in _LOCKED_HERE:
                return find_this_holder()
            return _find_other_holder(path) if path.exists() else None


def _find_other_holder(path: Path) -> Holder | None:
    with path.open("rb") as file:
        if find_locking_process(file) is None:
            return None
        return parse_holder(file.read()) or UNKNOWN_HOLDER


@contextmanager
def write_errors_explained(pipeline: Pipeline) -> Iterator[None]:
    """UsageError, with the directory and the cause, where the block can't write a file.

    Passed on are errors of a store that may be over by the next try.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _PASSING and shared_store_of(pipeline.root) is not None:
            raise
        cause = f"({error.strerror}): {error.filename}"
        advice = "; the lake has to be a directory to which the user of this process may write"
        if shared_store_of(pipeline.root) is not None:
            advice = "; the credentials of this process have to allow reading and writing there"
        if pipeline.root.is_on_hdfs:
            # There are no credentials, and the cause says what to do.
            advice = ""
        raise UsageError(f"{pipeline.root} can't be written to {cause}{advice}") from error
