"""Starts the Spark session of a command when it is first needed, without output of its own."""

import logging
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from jobs.cli.options import debugging
from jobs.console import redirected_stdio
from windowing.errors import TidemarkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windowing.spec.pipeline import Pipeline


def write_session(pipeline: "Pipeline", **conf: str) -> "SparkSession":
    """The session of a command that writes; raises Busy, before the JVM starts, if another does."""
    from jobs.preflight.lock_file import probe

    probe(pipeline)
    return command_session(**conf)


def read_session() -> "SparkSession":
    """The session of a command that reads the ledger, logs and counts, and hardly any rows."""
    from jobs.session import LIGHT

    return command_session(**LIGHT)


def table_session(pipeline: "Pipeline") -> "SparkSession":
    """The session of a command that reads rows of the pipeline's tables."""
    return command_session(**_settings_by_size(pipeline))


def table_write_session(pipeline: "Pipeline") -> "SparkSession":
    """The session of a command that reads and writes rows of the pipeline's tables.

    Raises Busy as `write_session` does.
    """
    return write_session(pipeline, **_settings_by_size(pipeline))


def light_write_session(pipeline: "Pipeline") -> "SparkSession":
    """The session of a command that writes hardly any rows.

    Raises Busy as `write_session` does.
    """
    from jobs.session import LIGHT

    return write_session(pipeline, **LIGHT)


def quick_write_session(pipeline: "Pipeline") -> "SparkSession":
    """The session of a command that is short.

    Raises Busy as `write_session` does.
    """
    from jobs.session import QUICK

    return write_session(pipeline, **QUICK)


def _settings_by_size(pipeline: "Pipeline") -> dict[str, str]:
    from jobs.preflight.run_size import stores_little
    from jobs.session import QUICK

    return QUICK if stores_little(pipeline) else {}


def command_session(**conf: str) -> "SparkSession":
    """The session; its JVM ends with this process.

    Without --debug nothing that the JVM or Python's logs print reaches the terminal. Raises
    TidemarkError where the JVM does not start.
    """
    if debugging():
        from jobs.session import spark_session

        return _let_ctrl_c_end(spark_session(**conf))
    click.get_current_context().with_resource(_silence_logs())
    with redirected_stdio() as jvm_output:
        from pyspark.errors import PySparkRuntimeError

        from jobs.session import spark_session

        try:
            return _let_ctrl_c_end(spark_session(**conf))
        except PySparkRuntimeError as error:
            jvm_output.seek(0)
            printed = jvm_output.read().decode(errors="replace")
            raise TidemarkError(_explain_no_jvm(printed)) from error


def _let_ctrl_c_end(session: "SparkSession") -> "SparkSession":
    """Restores Python's handler of Ctrl-C, which ends whatever waits for the JVM.

    PySpark's own handler first asks the JVM to cancel its jobs, on the connection that is waiting.
    """
    # Only the main thread may set a handler.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return session


def _explain_no_jvm(printed: str) -> str:
    """Why there is no JVM, from what it or its launcher printed."""
    lines = [
        line.strip()
        for line in printed.splitlines()
        if line.strip() and not line.startswith("\tat ")
    ]
    telling = [line for line in lines if "rror" in line or "JAVA_HOME" in line]
    reason = "it said nothing"
    if lines:
        reason = telling[0] if telling else lines[-1]
    return (
        f"Spark's JVM did not start ({reason}); it needs Java 17 or newer on PATH or in JAVA_HOME; "
        "run again with --debug for more"
    )


@contextmanager
def _silence_logs() -> Iterator[None]:
    """Keeps logs and warnings of libraries from stderr inside the block."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
