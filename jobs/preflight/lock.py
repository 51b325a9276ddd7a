"""One writer for each pipeline, by a record lock on a file.

The JVM that commits holds the lock, so that the lock lives and dies with that process.
"""

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from jobs.preflight.table_errors import table_errors_explained
from windowing.delta import local_path
from windowing.errors import Busy, UsageError
from windowing.spec.pipeline import Pipeline

_FILE = "_lock"
_RETRY_SECONDS = 0.5
"""The pause between two attempts to get a lock that is held."""
_GIVE_UP_SECONDS = 3600.0
_LOCKED_HERE: set[Path] = set()
"""The lock files that blocks of this process hold."""
_GUARD = Lock()
"""Guards `_LOCKED_HERE` against threads."""


@contextmanager
def writer(spark: SparkSession, pipeline: Pipeline) -> Iterator[None]:
    """Holds the pipeline's lock inside the block.

    Busy when another process or another block of this JVM holds it; UsageError when the lake can't
    be written to.
    """
    path = local_path(pipeline.table(_FILE))
    with write_errors_explained(pipeline):
        path.parent.mkdir(parents=True, exist_ok=True)
    with _refuse_second_block(pipeline, path.resolve()):
        with write_errors_explained(pipeline):
            path.touch()
            inode = path.stat().st_ino
        jvm: Any = spark._jvm
        channel = jvm.java.io.RandomAccessFile(str(path), "rw").getChannel()
        try:
            held = channel.tryLock()
        except Py4JJavaError:
            # Java raises instead of returning null where this JVM itself has the lock.
            held = None
        if held is None:
            channel.close()
            raise _busy_error(pipeline)
        try:
            # A reset may have removed the file before it was locked here. Then this lock is on a
            # file without a name, and another process may hold one on a new file.
            if not path.exists() or path.stat().st_ino != inode:
                raise _busy_error(pipeline)
            # Whoever writes holds the lock, so every error of a write passes here.
            with table_errors_explained(pipeline):
                yield
        finally:
            held.release()
            channel.close()


@contextmanager
def waiting(spark: SparkSession, pipeline: Pipeline) -> Iterator[None]:
    """Holds the lock as `writer` does, as soon as it is free; Busy if that takes over an hour."""
    held = ExitStack()
    attempts = Retrying(
        retry=retry_if_exception_type(Busy),
        wait=wait_fixed(_RETRY_SECONDS),
        stop=stop_after_delay(_GIVE_UP_SECONDS),
        reraise=True,
    )
    attempts(lambda: held.enter_context(writer(spark, pipeline)))
    with held:
        yield


@contextmanager
def held_here(pipeline: Pipeline) -> Iterator[None]:
    """Holds the pipeline's lock by this process itself, for commands that need no JVM.

    Busy when another process holds it.
    """
    path = local_path(pipeline.table(_FILE))
    with _refuse_second_block(pipeline, path.resolve()), path.open("a+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as held:
            raise _busy_error(pipeline) from held
        yield


@contextmanager
def _refuse_second_block(pipeline: Pipeline, path: Path) -> Iterator[None]:
    """Busy when another block of this process holds the lock.

    The JVM must not even try then, because POSIX frees all locks that a process has on a file as
    soon as it closes any descriptor of it.
    """
    with _GUARD:
        if path in _LOCKED_HERE:
            raise _busy_error(pipeline)
        _LOCKED_HERE.add(path)
    try:
        yield
    finally:
        _LOCKED_HERE.discard(path)


def probe(pipeline: Pipeline) -> None:
    """Busy at once when another process holds the lock; needs no JVM, and keeps no lock."""
    path = local_path(pipeline.table(_FILE))
    if not path.exists():
        return
    with write_errors_explained(pipeline), path.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as held:
            raise _busy_error(pipeline) from held
        fcntl.lockf(file, fcntl.LOCK_UN)


@contextmanager
def write_errors_explained(pipeline: Pipeline) -> Iterator[None]:
    """UsageError, with the directory and the cause, where the block can't write a file."""
    try:
        yield
    except OSError as error:
        cause = f"({error.strerror}): {error.filename}"
        allowed = "the lake has to be a directory to which the user of this process may write"
        raise UsageError(f"{pipeline.root} can't be written to {cause}; {allowed}") from error


def _busy_error(pipeline: Pipeline) -> Busy:
    held = f"another writer holds {pipeline.table(_FILE)}"
    return Busy(f"{pipeline.name}: {held}; try again when it has finished")
