"""The Spark session of a command: started when it is first needed, and quiet."""

import logging
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from jobs.cli.options import debugging
from jobs.console import aside
from windowing.errors import TidemarkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windowing.spec.pipeline import Pipeline


def writing(pipeline: "Pipeline", **conf: str) -> "SparkSession":
    """The session for a command that writes; Busy at once, before the JVM starts, when another writer holds the pipeline."""
    from jobs.preflight.lock import probe

    probe(pipeline)
    return spark(**conf)


def asking() -> "SparkSession":
    """The session for a command that reads the ledger, logs and counts, and hardly any rows."""
    from jobs.session import LIGHT

    return spark(**LIGHT)


def noting(pipeline: "Pipeline") -> "SparkSession":
    """The same for a command that writes such things; Busy as `writing` is."""
    from jobs.session import LIGHT

    return writing(pipeline, **LIGHT)


def spark(**conf: str) -> "SparkSession":
    """The session; the JVM ends with this process. What it says, and Python's logs, are kept from the terminal unless --debug asks."""
    if debugging():
        from jobs.session import spark_session

        return _interruptible(spark_session(**conf))
    click.get_current_context().with_resource(_silence())
    with aside() as said:
        from pyspark.errors import PySparkRuntimeError

        from jobs.session import spark_session

        try:
            return _interruptible(spark_session(**conf))
        except PySparkRuntimeError as error:
            said.seek(0)
            raise TidemarkError(_not_started(said.read().decode(errors="replace"))) from error


def _interruptible(session: "SparkSession") -> "SparkSession":
    """Ctrl-C ends what waits for the JVM; PySpark's own handler would first ask that JVM something, on the connection that waits."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return session


def _not_started(said: str) -> str:
    """Why there is no JVM, from what it or its launcher said."""
    lines = [
        line.strip() for line in said.splitlines() if line.strip() and not line.startswith("\tat ")
    ]
    why = next(
        (line for line in lines if "rror" in line or "JAVA_HOME" in line),
        lines[-1] if lines else "it said nothing",
    )
    return f"Spark's JVM did not start ({why}); it needs Java 17 or newer on PATH or in JAVA_HOME; run again with --debug for more"


@contextmanager
def _silence() -> Iterator[None]:
    """No log and no warning of a library reaches stderr inside the block."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
