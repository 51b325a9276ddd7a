"""The bridge to the JVM after a call whose answer nobody has read to its end."""

from contextlib import suppress
from typing import Any

import pytest
from pyspark import SparkContext


def was_ended(error: BaseException | None) -> bool:
    """Whether a test was ended from outside, as one that takes too long, or failed after that."""
    if error is None:
        return False
    return isinstance(error, pytest.fail.Exception) or was_ended(error.__context__)


def begin_bridge_anew() -> None:
    """Closes the connection of this thread to the JVM, so that the next call opens another one.

    A call that an exception has left while it waited leaves its answer behind. Each later call of
    the thread would read the answer of the one before.
    """
    gateway: Any = SparkContext._gateway
    connection = None if gateway is None else gateway._gateway_client.get_thread_connection()
    if connection is not None:
        with suppress(OSError):
            connection.close()
