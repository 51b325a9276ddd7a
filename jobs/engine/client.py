"""Runs a command line in the warm engine, where one is up.

It is imported before every command, so it imports little.

command line -> directory -> request with the open stdin, stdout and stderr -> exit code
"""

import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any

from jobs.engine.engine_directory import find_directory
from jobs.engine.fingerprint import code_fingerprint, surroundings
from jobs.engine.wire import connect, receive_frame, send_frame
from windowing.errors import TidemarkError, UsageError
from windowing.storage import gateway_variables

VARIABLE = "TIDEMARK_ENGINE"
IDLE_MINUTES = 15
"""How long an engine waits for a command before it ends, unless it is told otherwise."""
COMMANDS = frozenset(
    {
        *(
            "ingest",
            "run",
            "backfill",
            "validate",
            "publish",
            "advise",
            "explain",
            "history",
            "diff",
            "show",
            "late",
            "state",
            "report",
        ),
        *(
            "register",
            "maintain",
            "doctor",
            "recover",
            "reset",
            "erase",
            "close",
            "reopen",
            "restatements",
        ),
    }
)
"""The commands of a pipeline. `test` needs static settings of its own, `setup` no JVM.

`init` is run once.
"""
_UNEXPECTED = 1
_END_SECONDS = 10.0
"""How long a JVM may take to end."""


def run_in_engine(words: Sequence[str]) -> int | None:
    """The exit code of the command line, which the engine ran; None where this process has to.

    Raises UsageError where the variable TIDEMARK_ENGINE has any other value than `auto` and `off`.
    """
    wish = os.environ.get(VARIABLE, "")
    if wish not in ("", "auto", "off"):
        raise UsageError(
            f"{VARIABLE} is {wish!r}; `auto` starts an engine where none is up, `off` uses none, "
            "and without it an engine is used that `tidemark engine start` has started"
        )
    if wish == "off" or not _is_for_engine(words):
        return None
    code = _ask(words)
    if code is None and wish == "auto" and _start():
        code = _ask(words)
    return code


def _is_for_engine(words: Sequence[str]) -> bool:
    """Whether an engine can run this command line as this process would.

    What `--debug` shows of the JVM is in the engine's log, and a closed stream can't be sent.
    """
    if not words or words[0] not in COMMANDS or os.environ.get("TIDEMARK_DEBUG"):
        return False
    # The command works in the JVM of `spark-submit` then.
    if os.environ.get(gateway_variables.PORT):
        return False
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return None not in streams and not {"--debug", "--help", "-h"}.intersection(words)


def _ask(words: Sequence[str]) -> int | None:
    try:
        directory = find_directory()
    except UsageError:
        # Somebody else's directory is no reason not to run the command; `engine status` reports it.
        return None
    connection = None if directory is None else connect(directory)
    if connection is None:
        return None
    with connection:
        try:
            send_frame(connection, _request(words), (0, 1, 2))
            answer = receive_frame(connection)
        except OSError:
            return None
        if answer is None or answer.body.get("answer") != "accepted":
            return None
        return _follow(connection, int(answer.body["process"]))


def _request(words: Sequence[str]) -> dict[str, Any]:
    environ = dict(os.environ)
    return {
        "ask": "run",
        "words": list(words),
        "directory": os.getcwd(),
        "environ": environ,
        "code": code_fingerprint(environ),
        "surroundings": surroundings(environ),
    }


def _follow(connection: socket.socket, process: int) -> int:
    """The exit code, once the command has ended; Ctrl-C interrupts the command, not this process.

    Where the engine crashes, its `process` with Spark has ended, too.

    Everything that ends this process ends the command, because it closes the connection.
    """
    connection.settimeout(None)
    # A process that a shell has started in the background ignores Ctrl-C, and goes on doing so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: send_frame(connection, {"ask": "interrupt"}))
    try:
        end = receive_frame(connection)
    except OSError:
        end = None
    if end is None or "exit" not in end.body:
        _await_end(process)
        print(
            "tidemark: the engine ended while it ran this command; "
            "rerun it, and what was interrupted is resumed",
            file=sys.stderr,
        )
        return _UNEXPECTED
    return int(end.body["exit"])


def _await_end(process: int) -> None:
    """Returns when the process has ended, or doesn't for too long.

    It holds the lock of the pipeline until then, which the next command needs.
    """
    try:
        ended = os.pidfd_open(process)
    except OSError:
        return
    select.select([ended], [], [], _END_SECONDS)
    os.close(ended)


def _start() -> bool:
    """Whether an engine could be started. A command that can't have one says why."""
    from jobs.engine.control import start_engine

    try:
        start_engine()
    except (OSError, TidemarkError) as error:
        print(f"tidemark: {error}; this command runs without an engine", file=sys.stderr)
        return False
    return True
