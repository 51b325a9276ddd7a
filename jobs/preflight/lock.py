"""One writer for each pipeline: a record lock held by the JVM that commits, so that it lives and dies with that process."""

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
_PAUSE, _PATIENCE = 0.5, 3600.0
"""Seconds between two looks at a lock that is held, and in all."""
_TURN = Lock()
_HERE: set[Path] = set()
"""The lock files that blocks of this process hold."""


@contextmanager
def writer(spark: SparkSession, pipeline: Pipeline) -> Iterator[None]:
    """Holds the pipeline's lock inside the block; Busy when another process, or another block of this JVM, holds it."""
    path = local_path(pipeline.table(_FILE))
    with writable(pipeline):
        path.parent.mkdir(parents=True, exist_ok=True)
    with _first_here(pipeline, path.resolve()):
        with writable(pipeline):
            path.touch()
            file = path.stat().st_ino
        jvm: Any = spark._jvm
        channel = jvm.java.io.RandomAccessFile(str(path), "rw").getChannel()
        try:
            held = channel.tryLock()
        except Py4JJavaError:
            held = None
        if held is None:
            channel.close()
            raise _busy(pipeline)
        try:
            if not path.exists() or path.stat().st_ino != file:
                raise _busy(pipeline)
            # Whoever writes holds the lock, so here every error of a write passes by.
            with table_errors_explained(pipeline):
                yield
        finally:
            held.release()
            channel.close()


@contextmanager
def waiting(spark: SparkSession, pipeline: Pipeline) -> Iterator[None]:
    """Holds the lock as `writer` does, as soon as it is free; Busy when it has not been for an hour."""
    held = ExitStack()
    again = Retrying(
        retry=retry_if_exception_type(Busy),
        wait=wait_fixed(_PAUSE),
        stop=stop_after_delay(_PATIENCE),
        reraise=True,
    )
    again(lambda: held.enter_context(writer(spark, pipeline)))
    with held:
        yield


@contextmanager
def held_here(pipeline: Pipeline) -> Iterator[None]:
    """Holds the pipeline's lock by this process, for what is done without a JVM; Busy when another one holds it."""
    path = local_path(pipeline.table(_FILE))
    with _first_here(pipeline, path.resolve()), path.open("a+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as held:
            raise _busy(pipeline) from held
        yield


@contextmanager
def _first_here(pipeline: Pipeline, path: Path) -> Iterator[None]:
    """Busy when a block of this process is inside.

    The JVM must not try again: POSIX frees all locks a process has on a file as soon as it closes any descriptor of it.
    """
    with _TURN:
        if path in _HERE:
            raise _busy(pipeline)
        _HERE.add(path)
    try:
        yield
    finally:
        _HERE.discard(path)


def probe(pipeline: Pipeline) -> None:
    """Busy at once when another process holds the lock; costs no JVM."""
    path = local_path(pipeline.table(_FILE))
    if not path.exists():
        return
    with writable(pipeline), path.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as held:
            raise _busy(pipeline) from held
        fcntl.lockf(file, fcntl.LOCK_UN)


@contextmanager
def writable(pipeline: Pipeline) -> Iterator[None]:
    """UsageError, with the directory and why, where something inside the block can't be written."""
    try:
        yield
    except OSError as error:
        told = f"{pipeline.root} can't be written to ({error.strerror}): {error.filename}"
        raise UsageError(
            f"{told}; the lake is a directory that whoever runs this may write to"
        ) from error


def _busy(pipeline: Pipeline) -> Busy:
    return Busy(
        f"{pipeline.name}: another writer holds {pipeline.table(_FILE)}; try again when it has finished"
    )
