"""Starts the Spark session of a command when it is first needed, without output of its own."""

import logging
import os
import re
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

import click

from jobs.cli.errors import Failure, is_from_java
from jobs.cli.lock import probe_lock
from jobs.cli.options import debugging
from jobs.cli.task_log import tell_scheduler
from jobs.console import redirected_stdio
from windowing.errors import TidemarkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.sessions.profiles import Profile
    from windowing.spec.pipeline import Pipeline


_JVM_OUTPUT = "tidemark.jvm_output"
_OUT_OF_MEMORY = re.compile(r"OutOfMemoryError: ([\w ]+)")
_NO_REASON = "Error occurred during initialization of VM"
"""A line of the JVM that says nothing; the next one has the reason."""
_ENDING_SECONDS = 1
"""How long a JVM may take to end after it has closed its connections."""


def open_to_write(pipeline: "Pipeline", profile: "Profile") -> "SparkSession":
    """The session of a command that writes; raises Busy, before the JVM starts, if another does."""
    from jobs.sessions.s3_session import describe_store

    probe_lock(pipeline)
    return start_session({**_place(profile), **describe_store(pipeline.root)})


def open_to_read(profile: "Profile") -> "SparkSession":
    """The session of a command that writes nothing."""
    return start_session(_place(profile))


def _place(profile: "Profile") -> "Profile":
    """The profile with its place: here, or on a cluster that SPARK_MASTER names."""
    from jobs.session import named_master
    from jobs.sessions.profiles import place_session

    return place_session(profile, named_master())


def start_session(profile: "Profile") -> "SparkSession":
    """The session, whose JVM ends with this process.

    Without --debug nothing that the JVM or Python's logs print reaches the terminal. Raises
    TidemarkError where the JVM does not start.
    """
    from jobs.sessions.process import stay_on_utc

    stay_on_utc()
    tell_scheduler("starting Spark")
    session = _start_session(profile)
    tell_scheduler("Spark has started")
    return session


def _start_session(profile: "Profile") -> "SparkSession":
    if debugging():
        return _make_session(profile)
    context = click.get_current_context()
    context.with_resource(_silence_logs())
    with redirected_stdio() as jvm_output:
        # The JVM writes there until it ends, so what it says at its end is read there, too.
        kept = os.fdopen(os.dup(jvm_output.fileno()), "rb")
        context.meta[_JVM_OUTPUT] = context.find_root().with_resource(kept)
        from pyspark.errors import PySparkRuntimeError

        try:
            return _make_session(profile)
        except PySparkRuntimeError as error:
            jvm_output.seek(0)
            printed = jvm_output.read().decode(errors="replace")
            raise TidemarkError(_explain_no_java(printed)) from error


def _make_session(profile: "Profile") -> "SparkSession":
    from jobs.session import is_chosen, spark_session
    from windowing.storage.spark_internals import ctrl_c_kept

    # Ctrl-C ends whatever waits for the JVM.
    with ctrl_c_kept():
        return spark_session(**{n: value for n, value in profile.items() if not is_chosen(n)})


def _explain_no_java(printed: str) -> str:
    """Why there is no JVM, from what it or its launcher printed."""
    lines = [
        line.strip()
        for line in printed.splitlines()
        if line.strip() and not line.startswith("\tat ") and line.strip() != _NO_REASON
    ]
    telling = [line for line in lines if "rror" in line or "JAVA_HOME" in line]
    reason = "it said nothing"
    if lines:
        reason = telling[0] if telling else lines[-1]
    return (
        f"Spark's JVM did not start ({reason}); it needs Java 17 to 22 on PATH or in JAVA_HOME; "
        "run again with --debug for more"
    )


def explain_ended_java(context: click.Context, error: Exception) -> Failure | None:
    """Why the JVM of the command has ended, where `error` follows from that; None where not."""
    output: IO[bytes] | None = context.meta.get(_JVM_OUTPUT)
    if output is None or not (is_from_java(error) or isinstance(error, ConnectionError)):
        return None
    status = _wait_for_java()
    if status is None:
        return None
    output.seek(0)
    out_of_memory = _OUT_OF_MEMORY.search(output.read().decode(errors="replace"))
    if out_of_memory is not None:
        return Failure(
            f"Spark's JVM ended, because it ran out of memory ({out_of_memory[1]}); give it a "
            'larger heap, as in PYSPARK_SUBMIT_ARGS="--driver-memory 8g pyspark-shell"',
            1,
        )
    how = f"by signal {-status}" if status < 0 else f"with status {status}"
    return Failure(f"Spark's JVM ended {how} before the command had; run the command again", 1)


def _wait_for_java() -> int | None:
    """With what the JVM that this process has started ended; None where it runs."""
    from windowing.storage.spark_internals import find_java

    process = find_java()
    if process is None:
        return None
    try:
        return process.wait(_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        return None


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
