"""One writer for each pipeline, by a record lock on a file, or by a lease on a shared store.

The JVM holds the lock, so that the lock lives and dies with that process. Few rows are committed by
this process, each time to a table that it opened before it asked the JVM for them: a process whose
JVM has ended gets none, or finds another commit first. A lease is held by this process.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from pyspark.sql import SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from jobs.foreign_errors.table_errors import table_errors_explained
from jobs.locking.holder import parse_holder
from jobs.locking.lease import holding, is_over, take_lease
from jobs.locking.lease_object import busy_error, find_lease
from jobs.locking.lock_file import (
    lock_path,
    note_holder_of,
    one_block_here,
    write_errors_explained,
)
from windowing.errors import Busy, UsageError
from windowing.spec.pipeline import Pipeline
from windowing.storage.delta_log import CommitFence
from windowing.storage.kept_open import lake_written
from windowing.storage.log_stores import LOG_STORE_SETTINGS, name_setting
from windowing.storage.spark_internals import (
    FileLock,
    find_jvm_process,
    read_setting,
)

_RETRY_SECONDS = 0.5
"""The pause between two attempts to get a lock that is held."""
_GIVE_UP_SECONDS = 3600.0


@contextmanager
def writer(spark: SparkSession, pipeline: Pipeline) -> Iterator[None]:
    """Holds the pipeline's lock inside the block.

    Busy when another process or another block of this JVM holds it; UsageError when the lake can't
    be written to.
    """
    lease = find_lease(pipeline)
    if lease is not None:
        with write_errors_explained(pipeline):
            held = take_lease(lease, [find_jvm_process(spark)])
        with (
            holding(held),
            _fenced(spark, pipeline) as fence,
            lake_written(pipeline.root),
            table_errors_explained(pipeline),
        ):
            held.call_when_lost(fence.close)
            yield
        return
    path = lock_path(pipeline)
    with write_errors_explained(pipeline):
        path.parent.mkdir(parents=True, exist_ok=True)
    with one_block_here(pipeline, path.resolve()):
        with write_errors_explained(pipeline):
            path.touch()
            inode = path.stat().st_ino
        lock = FileLock(spark, path)
        try:
            if not lock.is_held:
                raise busy_error(pipeline, parse_holder(path.read_bytes()))
            # A reset may have removed the file before it was locked here. Then this lock is on a
            # file without a name, and another process may hold one on a new file.
            if not path.exists() or path.stat().st_ino != inode:
                raise busy_error(pipeline)
            note_holder_of(path, find_jvm_process(spark))
            # Whoever writes holds the lock, so every error of a write passes here.
            with lake_written(pipeline.root), table_errors_explained(pipeline):
                yield
        finally:
            lock.release()


@contextmanager
def _fenced(spark: SparkSession, pipeline: Pipeline) -> Iterator[CommitFence]:
    """Inside, the JVM commits to tables of the pipeline only versions that this command allows.

    After an error behind which the JVM may still be at work this stays. UsageError where Delta
    commits there by a log store that does not ask the fence.
    """
    _check_log_store(spark, pipeline.root.hadoop)
    fence = CommitFence(spark, pipeline.root.hadoop)
    try:
        yield fence
    except BaseException as error:
        if is_over(error):
            fence.lift()
        raise
    fence.lift()


def _check_log_store(spark: SparkSession, lake: str) -> None:
    name = name_setting(lake.partition(":")[0])
    found = read_setting(spark, name)
    if found != LOG_STORE_SETTINGS[name]:
        raise UsageError(
            f"{lake}: {name} of this Spark is {found or 'not set'}, which would let a command "
            "commit after another one has taken over its lock; set it to "
            f"{LOG_STORE_SETTINGS[name]}, as `tidemark.spark_session` does"
        )


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
