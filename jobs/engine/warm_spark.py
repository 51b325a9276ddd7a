"""What an engine keeps warm: a JVM with Spark, and the imports of every command.

The engine starts the JVM, a fork makes its context, and each command joins it with a session of its
own. The engine itself has no session, so that a fork finds no thread and no connection half-way.
"""

import importlib
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from jobs.session import Jvm, spark_session, start_jvm
from windowing.errors import TidemarkError

_MODULES = (
    *("jobs.backfill", "jobs.doctor", "jobs.erase", "jobs.explain", "jobs.maintain"),
    *("jobs.publish", "jobs.reconcile", "jobs.reset", "jobs.run", "jobs.show", "jobs.validate"),
    *("expectations.evaluate", "windowing.report.page", "windowing.report.table"),
)
"""What commands import when they need it."""
_END_SECONDS = 3.0
_FULL_HEAP, _FULL_AFTER_COLLECTION = 0.7, 0.4
_MADE_FOR_PYTHON = re.compile(r"o\d+")
"""What the bridge calls the objects that it has given to Python; its own have other names."""


class WarmSpark:
    """A JVM of this process, and `run`, which runs a command line."""

    def __init__(self, run: Callable[[Sequence[str]], object]) -> None:
        self._run = run
        self._jvm: Jvm | None = None
        for name in _MODULES:
            importlib.import_module(name)

    def start(self) -> None:
        """Starts the JVM; raises TidemarkError where it does not start."""
        try:
            self._jvm = start_jvm()
        except PySparkRuntimeError as error:
            raise TidemarkError(
                "Spark's JVM did not start; it needs Java 17 or newer on PATH or in JAVA_HOME; "
                "the lines before this one are what it printed"
            ) from error

    def prime(self) -> None:
        """Makes the context of the JVM, and runs a first query."""
        self._join()
        spark_session().range(1).count()

    def perform(self, words: Sequence[str]) -> object:
        """Runs the command line in this process, which finds the JVM when it needs one."""
        self._join()
        return self._run(words)

    def tidy(self) -> bool:
        """Whether the JVM is idle and has memory left; the command's objects are deleted in it."""
        if SparkContext._active_spark_context is None:
            return True
        session = SparkSession.getActiveSession()
        if session is None or session.streams.active:
            return False
        if list(session.sparkContext.statusTracker().getActiveJobsIds()):
            return False
        session.catalog.clearCache()
        java: Any = session._jvm
        # A table may be deleted and made again before the next command.
        java.org.apache.spark.sql.delta.DeltaLog.clearCache()
        is_roomy = _is_roomy(java)
        _delete_objects(java)
        return is_roomy

    def is_up(self) -> bool:
        """Whether the JVM runs."""
        return self._jvm is not None and self._jvm.process.poll() is None

    def process_id(self) -> int:
        """The process of the JVM; 0 where there is none."""
        return self._jvm.process.pid if self._jvm else 0

    def stop(self) -> None:
        """Ends the JVM, which deletes its temporary files; returns when it has ended."""
        if self._jvm is None:
            return
        process, self._jvm = self._jvm.process, None
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _join(self) -> None:
        if self._jvm:
            os.environ.update(self._jvm.variables)


def _is_roomy(java: Any) -> bool:
    """Whether little of the heap is used, after a collection of garbage where much is."""
    runtime = java.java.lang.Runtime.getRuntime()

    def used() -> float:
        return float((runtime.totalMemory() - runtime.freeMemory()) / runtime.maxMemory())

    if used() < _FULL_HEAP:
        return True
    java.java.lang.System.gc()
    return used() < _FULL_AFTER_COLLECTION


def _delete_objects(java: Any) -> None:
    """Deletes what the bridge kept for this process.

    It keeps every object that Python has been given until Python deletes its own, which a process
    that ends does not do.
    """
    context: Any = SparkContext._active_spark_context
    server = JavaObject("GATEWAY_SERVER", context._gateway._gateway_client)
    names = server.getGateway().getBindings().keySet()
    kept = java.java.util.ArrayList()
    for name in str(names.toString()).strip("[]").split(", "):
        if not _MADE_FOR_PYTHON.fullmatch(name):
            kept.add(name)
    names.retainAll(kept)
