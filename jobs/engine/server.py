"""The engine: keeps a JVM warm, and runs one command at a time in a fork of itself.

socket -> same user, same surroundings, same code -> fork -> exit code -> fit for the next command?
"""

import os
import selectors
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from jobs.engine.command_process import Command, CommandProcess, fork_command, run_command
from jobs.engine.fingerprint import differing
from jobs.engine.wire import Frame, receive_frame, send_frame
from windowing.errors import TidemarkError

_REQUEST_SECONDS = 2.0
"""How long a client may take to send its request, while nobody else is served."""
_EXPECTED_CODES = frozenset({0, 2, 3, 4, 75})
"""The exit codes of commands that ended as they should; after any other, all is made anew."""
_MOST_COMMANDS = 1000
_KEEP_JVM, _RESTART_JVM = 0, 3


class WarmJvm(Protocol):
    """A JVM that an engine keeps warm."""

    def start(self) -> None:
        """Starts it, in the engine's own process."""

    def warm_up(self) -> None:
        """Makes it ready for commands, in a fork of the engine."""

    def run_words(self, words: Sequence[str]) -> object:
        """Runs a command line with it, in a fork of the engine that stands for the client."""

    def may_hold_lease(self) -> bool:
        """Whether a lease may still name it as a holder at work; in that fork."""

    def reset_after_command(self) -> bool:
        """Whether it can serve another command, of which this one leaves no trace; in that fork."""

    def is_up(self) -> bool:
        """Whether it has not ended by itself."""

    def process_id(self) -> int:
        """The process that outlives a crash of the engine for a moment, and keeps its locks."""

    def stop(self) -> None:
        """Ends it; returns when it has ended, and does nothing where it was not started."""


@dataclass(frozen=True)
class Settings:
    """Whom an engine serves, and how long it waits for the next command."""

    code: str
    surroundings: Mapping[str, str]
    idle_seconds: float
    most_commands: int = _MOST_COMMANDS


class Engine:
    """Serves until it is idle for too long, is asked to end, or is ended by a signal."""

    def __init__(
        self,
        listener: socket.socket,
        warm_java: WarmJvm,
        settings: Settings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listener, self._warm_java = listener, warm_java
        self._settings, self._clock = settings, clock
        self._events = selectors.DefaultSelector()
        self._process: CommandProcess | None = None
        self._client: socket.socket | None = None
        self._code: int | None = None
        self._is_warming = self._is_ending = False
        self._commands = self._commands_of_java = 0
        self._idle_since = clock()

    def serve(self) -> None:
        """Returns when the engine has ended, and what it kept with it."""
        self._events.register(self._listener, selectors.EVENT_READ, self._accept_client)
        try:
            self._restart_java()
            while self._process or not self._is_ending:
                self._await_events()
        finally:
            if self._process:
                self._process.kill()
                self._process.close()
            self._warm_java.stop()

    def _await_events(self) -> None:
        left = self._idle_since + self._settings.idle_seconds - self._clock()
        if not self._process and left <= 0:
            self._is_ending = True
            return
        found = self._events.select(None if self._process else left)
        for key, _ in found:
            # An earlier event may have closed the connection that this one is about.
            if key.fd in self._events.get_map():
                key.data()

    def _restart_java(self) -> None:
        """Ends the JVM, and starts and warms another."""
        self._warm_java.stop()
        self._warm_java.start()
        self._commands_of_java = 0
        self._is_warming = True

        def warm_up(_: socket.socket) -> int:
            self._warm_java.warm_up()
            return _KEEP_JVM

        self._watch(fork_command(warm_up))

    def _watch(self, process: CommandProcess) -> None:
        self._process = process
        self._events.register(process.reports, selectors.EVENT_READ, self._receive_from_command)
        self._events.register(process.ended, selectors.EVENT_READ, self._end_command)

    def _accept_client(self) -> None:
        connection, _ = self._listener.accept()
        connection.settimeout(_REQUEST_SECONDS)
        frame = None
        if _is_same_user(connection):
            with suppress(OSError):
                frame = receive_frame(connection)
        if frame is None:
            connection.close()
            return
        answer = self._answer(frame)
        with suppress(OSError):
            send_frame(connection, answer)
        if answer.get("answer") == "accepted":
            self._begin(connection, frame)
        else:
            connection.close()
        for file in frame.files:
            os.close(file)

    def _answer(self, frame: Frame) -> dict[str, Any]:
        ask = frame.body.get("ask")
        if ask == "status":
            return self._status()
        if ask == "stop":
            self._is_ending = True
            return {"answer": "ending"}
        if ask != "run" or len(frame.files) != 3:
            return {"answer": "not understood"}
        # Whoever has other surroundings finds other files, so it does not know whether the code of
        # this engine has changed.
        if differing(frame.body["surroundings"], self._settings.surroundings):
            return {"answer": "other surroundings"}
        if frame.body.get("code") != self._settings.code:
            self._is_ending = True
            return {"answer": "other code"}
        if self._process or self._is_ending:
            return {"answer": self._state()}
        if not self._warm_java.is_up():
            self._restart_java()
            return {"answer": self._state()}
        return {"answer": "accepted", "process": self._warm_java.process_id()}

    def _status(self) -> dict[str, Any]:
        return {
            "pid": os.getpid(),
            "state": self._state(),
            "is_ending": self._is_ending,
            "commands": self._commands,
            "idle_minutes": self._settings.idle_seconds / 60,
            "code": self._settings.code,
            "surroundings": dict(self._settings.surroundings),
        }

    def _state(self) -> str:
        if self._is_warming:
            return "starting"
        if self._process:
            return "running a command"
        return "ending" if self._is_ending else "idle"

    def _begin(self, connection: socket.socket, frame: Frame) -> None:
        body, run_words = frame.body, self._warm_java.run_words
        command = Command(
            tuple(body["words"]), str(body["directory"]), body["environ"], frame.files
        )

        def work(reports: socket.socket) -> int:
            code = run_command(command, run_words, reports.fileno())
            is_over = code in _EXPECTED_CODES and not self._warm_java.may_hold_lease()
            send_frame(reports, {"exit": code, "over": is_over})
            is_fit = is_over and self._warm_java.reset_after_command()
            return _KEEP_JVM if is_fit else _RESTART_JVM

        connection.settimeout(None)
        self._client, self._code = connection, None
        self._commands += 1
        self._commands_of_java += 1
        self._watch(fork_command(work))
        self._events.register(connection, selectors.EVENT_READ, self._receive_from_client)

    def _receive_from_client(self) -> None:
        """A client only interrupts its command, or is gone: then the command is ended."""
        if not self._client or not self._process:
            return
        try:
            frame = receive_frame(self._client)
        except OSError:
            frame = None
        if frame is None:
            self._close_client()
            self._process.kill()
        elif frame.body.get("ask") == "interrupt":
            self._process.interrupt()

    def _receive_from_command(self) -> None:
        """The exit code is passed on at once where the JVM need not be ended first."""
        if not self._process:
            return
        frame = receive_frame(self._process.reports)
        if frame is None:
            self._events.unregister(self._process.reports)
            return
        self._code = int(frame.body["exit"])
        if frame.body["over"]:
            self._answer_client({"exit": self._code})
            # The next client waits until this command is tidied up, which takes a moment.
            self._events.unregister(self._listener)

    def _end_command(self) -> None:
        if not self._process:
            return
        for watched in (self._process.reports, self._process.ended):
            if self._events.get_map().get(watched):
                self._events.unregister(watched)
        status, self._process = self._process.close(), None
        self._idle_since = self._clock()
        was_warming, self._is_warming = self._is_warming, False
        if self._listener not in self._events.get_map():
            self._events.register(self._listener, selectors.EVENT_READ, self._accept_client)
        if was_warming and status:
            raise TidemarkError("the engine's Spark could not be started")
        must_restart = status != _KEEP_JVM or self._commands_of_java >= self._settings.most_commands
        if must_restart:
            # What a command of another process may do next must find the lock free.
            self._warm_java.stop()
        self._answer_client({} if self._code is None else {"exit": self._code})
        if must_restart and not self._is_ending:
            self._restart_java()

    def _answer_client(self, end: Mapping[str, Any]) -> None:
        if self._client:
            with suppress(OSError):
                send_frame(self._client, end)
            self._close_client()

    def _close_client(self) -> None:
        if self._client:
            self._events.unregister(self._client)
            self._client.close()
            self._client = None


def listen(path: str) -> socket.socket:
    """A socket that only this user can connect to; one that a crash has left there is replaced."""
    with suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(path)
    finally:
        os.umask(before)
    listener.listen()
    return listener


def end_on_signals() -> None:
    """Makes SIGTERM end this process as the end of `serve` does."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))


def _is_same_user(connection: socket.socket) -> bool:
    form = "3i"
    credentials = connection.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(form)
    )
    _, user, _ = struct.unpack(form, credentials)
    return bool(user == os.getuid())
