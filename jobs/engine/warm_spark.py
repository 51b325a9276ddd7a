"""What an engine keeps warm: a JVM with Spark, and the imports of every command.

The engine starts the JVM, a fork makes its context, and each command joins it with a session of its
own. The engine itself has no session, so that a fork finds no thread and no connection half-way.
"""

import importlib
import os
import subprocess
from collections.abc import Callable, Sequence

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from jobs.locking.lease_object import is_any_not_ended
from jobs.session import Jvm, spark_session, start_java
from windowing.errors import TidemarkError
from windowing.storage import delta_log, spark_internals

_MODULES = (
    *("jobs.backfill", "jobs.diff", "jobs.doctor", "jobs.erase", "jobs.explain", "jobs.history"),
    *("jobs.maintain", "jobs.publish", "jobs.reconcile", "jobs.report", "jobs.reset", "jobs.run"),
    *("jobs.show", "jobs.validate", "expectations.evaluate", "windowing.report.page"),
    "windowing.report.view",
)
"""What commands import when they need it."""
_END_SECONDS = 3.0
_FULL_HEAP, _FULL_AFTER_COLLECTION = 0.7, 0.4


class WarmSpark:
    """A JVM of this process, and `run`, which runs a command line."""

    def __init__(self, run: Callable[[Sequence[str]], object]) -> None:
        self._run = run
        self._warm: Jvm | None = None
        for name in _MODULES:
            importlib.import_module(name)

    def start(self) -> None:
        """Starts the JVM; raises TidemarkError where it does not start."""
        try:
            self._warm = start_java()
        except PySparkRuntimeError as error:
            raise TidemarkError(
                "Spark's JVM did not start; it needs Java 17 to 22 on PATH or in JAVA_HOME; "
                "the lines before this one are what it printed"
            ) from error

    def warm_up(self) -> None:
        """Makes the context of the JVM, and runs a first query."""
        self._join()
        spark_session().range(1).count()

    def run_words(self, words: Sequence[str]) -> object:
        """Runs the command line in this process, which finds the JVM when it needs one."""
        self._join()
        return self._run(words)

    def may_hold_lease(self) -> bool:
        """Whether a lease may still name the JVM, because the command could not give it back."""
        return is_any_not_ended()

    def reset_after_command(self) -> bool:
        """Whether the JVM is idle and has memory left; the command's objects are deleted in it."""
        if not spark_internals.has_context():
            return True
        session = SparkSession.getActiveSession()
        if session is None or session.streams.active:
            return False
        if list(session.sparkContext.statusTracker().getActiveJobsIds()):
            return False
        session.catalog.clearCache()
        delta_log.forget_all(session)
        is_roomy = _is_roomy(session)
        spark_internals.delete_objects(session)
        return is_roomy

    def is_up(self) -> bool:
        """Whether the JVM runs."""
        return self._warm is not None and self._warm.process.poll() is None

    def process_id(self) -> int:
        """The process of the JVM; 0 where there is none."""
        return self._warm.process.pid if self._warm else 0

    def stop(self) -> None:
        """Ends the JVM, which deletes its temporary files; returns when it has ended."""
        if self._warm is None:
            return
        process, self._warm = self._warm.process, None
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _join(self) -> None:
        if self._warm:
            os.environ.update(self._warm.variables)


def _is_roomy(session: SparkSession) -> bool:
    """Whether little of the heap is used, after a collection of garbage where much is."""
    if spark_internals.measure_heap(session) < _FULL_HEAP:
        return True
    spark_internals.collect_garbage(session)
    return spark_internals.measure_heap(session) < _FULL_AFTER_COLLECTION
