"""A command line whose process group gets Ctrl-C while it is at a named moment of its start.

python -m tests.support.interrupted_start MOMENT WORDS...
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from jobs.cli.main import main

AFTER_SECONDS = 0.3
"""From the moment on; the JVM works on what it was asked then."""


def interrupt_soon() -> None:
    """Does to the process group what a terminal does at Ctrl-C, a moment from now."""

    def interrupt() -> None:
        time.sleep(AFTER_SECONDS)
        os.killpg(0, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()


def interrupted_at(place: Any, name: str) -> None:
    """Makes a call of this function the moment of Ctrl-C."""
    called: Callable[..., Any] = getattr(place, name)

    def call(*given: Any, **named: Any) -> Any:
        interrupt_soon()
        return called(*given, **named)

    setattr(place, name, call)


def during_the_session(seconds: float) -> None:
    """Makes Ctrl-C come while the JVM is asked for something, after PySpark set its handler."""
    made = SparkSession.__init__

    def make(session: SparkSession, context: SparkContext, *given: Any, **named: Any) -> None:
        interrupt_soon()
        java: Any = context._jvm
        java.java.lang.Thread.sleep(int(seconds * 1000))
        made(session, context, *given, **named)

    SparkSession.__init__ = make


MOMENTS: dict[str, Callable[[], None]] = {
    "jvm": lambda: interrupted_at(SparkContext, "_ensure_initialized"),
    "context": lambda: interrupted_at(SparkContext, "_initialize_context"),
    "session": lambda: during_the_session(10 * AFTER_SECONDS),
}
"""What Ctrl-C comes during."""

if __name__ == "__main__":
    MOMENTS[sys.argv[1]]()
    main(sys.argv[2:], prog_name="tidemark")
