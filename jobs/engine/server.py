"""The engine: keeps something warm, and runs one command at a time in a fork of itself.

socket -> same user, same code, same surroundings -> fork -> exit code -> fit for the next command?
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

from jobs.engine.fingerprint import differing
from jobs.engine.frames import Frame, receive_frame, send_frame
from jobs.engine.hand import Command, Hand, fork_hand, run_command
from windowing.errors import TidemarkError

_REQUEST_SECONDS = 2.0
"""How long a client may take to send its request, while nobody else is served."""
_SOUND = frozenset({0, 2, 3, 4, 75})
"""The exit codes of commands that ended as they should; after any other, all is made anew."""
_MOST_COMMANDS = 1000
_FIT, _WORN = 0, 3


class Body(Protocol):
    """What an engine keeps warm."""

    def start(self) -> None:
        """Starts it, in the engine's own process."""

    def prime(self) -> None:
        """Warms it, in a fork of the engine."""

    def perform(self, words: Sequence[str]) -> object:
        """Runs a command line with it, in a fork of the engine in the client's place."""

    def tidy(self) -> bool:
        """Whether it can serve another command, of which this one leaves no trace; in that fork."""

    def is_up(self) -> bool:
        """Whether it has not ended by itself."""

    def process_id(self) -> int:
        """The process that outlives a crash of the engine for a moment, and keeps its locks."""

    def stop(self) -> None:
        """Ends it; returns when it has ended, and does nothing where it was not started."""


@dataclass(frozen=True)
class Terms:
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
        body: Body,
        terms: Terms,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listener, self._body, self._terms, self._clock = listener, body, terms, clock
        self._events = selectors.DefaultSelector()
        self._hand: Hand | None = None
        self._client: socket.socket | None = None
        self._code: int | None = None
        self._is_priming = self._is_ending = False
        self._commands = self._commands_of_body = 0
        self._idle_since = clock()

    def serve(self) -> None:
        """Returns when the engine has ended, and what it kept with it."""
        self._events.register(self._listener, selectors.EVENT_READ, self._meet_client)
        try:
            self._renew()
            while self._hand or not self._is_ending:
                self._await_events()
        finally:
            if self._hand:
                self._hand.kill()
                self._hand.close()
            self._body.stop()

    def _await_events(self) -> None:
        left = self._idle_since + self._terms.idle_seconds - self._clock()
        if not self._hand and left <= 0:
            self._is_ending = True
            return
        found = self._events.select(None if self._hand else left)
        for key, _ in found:
            # What came first may have made an end of what the others are about.
            if key.fd in self._events.get_map():
                key.data()

    def _renew(self) -> None:
        """Ends what is kept, and starts and warms another."""
        self._body.stop()
        self._body.start()
        self._commands_of_body = 0
        self._is_priming = True

        def prime(_: socket.socket) -> int:
            self._body.prime()
            return _FIT

        self._watch(fork_hand(prime))

    def _watch(self, hand: Hand) -> None:
        self._hand = hand
        self._events.register(hand.reports, selectors.EVENT_READ, self._hear_hand)
        self._events.register(hand.ended, selectors.EVENT_READ, self._end_hand)

    def _meet_client(self) -> None:
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
        if frame.body.get("code") != self._terms.code:
            self._is_ending = True
            return {"answer": "other code"}
        if differing(frame.body["surroundings"], self._terms.surroundings):
            return {"answer": "other surroundings"}
        if self._hand or self._is_ending:
            return {"answer": self._state()}
        if not self._body.is_up():
            self._renew()
            return {"answer": self._state()}
        return {"answer": "accepted", "process": self._body.process_id()}

    def _status(self) -> dict[str, Any]:
        return {
            "pid": os.getpid(),
            "state": self._state(),
            "is_ending": self._is_ending,
            "commands": self._commands,
            "idle_minutes": self._terms.idle_seconds / 60,
            "code": self._terms.code,
            "surroundings": dict(self._terms.surroundings),
        }

    def _state(self) -> str:
        if self._is_priming:
            return "starting"
        if self._hand:
            return "running a command"
        return "ending" if self._is_ending else "idle"

    def _begin(self, connection: socket.socket, frame: Frame) -> None:
        body, perform = frame.body, self._body.perform
        command = Command(
            tuple(body["words"]), str(body["directory"]), body["environ"], frame.files
        )

        def work(reports: socket.socket) -> int:
            code = run_command(command, perform, reports)
            return _FIT if code in _SOUND and self._body.tidy() else _WORN

        connection.settimeout(None)
        self._client, self._code = connection, None
        self._commands += 1
        self._commands_of_body += 1
        self._watch(fork_hand(work))
        self._events.register(connection, selectors.EVENT_READ, self._hear_client)

    def _hear_client(self) -> None:
        """A client only interrupts its command, or is gone: then the command is ended."""
        if not self._client or not self._hand:
            return
        try:
            frame = receive_frame(self._client)
        except OSError:
            frame = None
        if frame is None:
            self._leave_client()
            self._hand.kill()
        elif frame.body.get("ask") == "interrupt":
            self._hand.interrupt()

    def _hear_hand(self) -> None:
        """The exit code is passed on at once where what is kept need not be ended first."""
        if not self._hand:
            return
        frame = receive_frame(self._hand.reports)
        if frame is None:
            self._events.unregister(self._hand.reports)
            return
        self._code = int(frame.body["exit"])
        if self._code in _SOUND:
            self._answer_client({"exit": self._code})
            # The next client waits until this command is tidied up, which takes a moment.
            self._events.unregister(self._listener)

    def _end_hand(self) -> None:
        if not self._hand:
            return
        for watched in (self._hand.reports, self._hand.ended):
            if self._events.get_map().get(watched):
                self._events.unregister(watched)
        status, self._hand = self._hand.close(), None
        self._idle_since = self._clock()
        was_priming, self._is_priming = self._is_priming, False
        if self._listener not in self._events.get_map():
            self._events.register(self._listener, selectors.EVENT_READ, self._meet_client)
        if was_priming and status:
            raise TidemarkError("the engine's Spark could not be started")
        is_worn = status != _FIT or self._commands_of_body >= self._terms.most_commands
        if is_worn:
            # What a command of another process may do next must find the lock free.
            self._body.stop()
        self._answer_client({} if self._code is None else {"exit": self._code})
        if is_worn and not self._is_ending:
            self._renew()

    def _answer_client(self, end: Mapping[str, Any]) -> None:
        if self._client:
            with suppress(OSError):
                send_frame(self._client, end)
            self._leave_client()

    def _leave_client(self) -> None:
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
