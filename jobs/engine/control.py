"""Starts and ends the engine, and asks how it does."""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jobs.engine.client import IDLE_MINUTES
from jobs.engine.engine_directory import EngineDirectory, find_directory, make_directory
from jobs.engine.fingerprint import DIRECTORY, code_fingerprint, differing, surroundings
from jobs.engine.wire import ask_engine
from windowing.errors import TidemarkError, UsageError

_POLL_SECONDS = 0.05
_GIVE_UP_SECONDS = 180.0


@dataclass(frozen=True)
class Status:
    """An engine that is up.

    `used_here` is false where commands of this process would not be sent to it, and `because` says
    why.
    """

    pid: int
    state: str
    is_ending: bool
    commands: int
    idle_minutes: float
    log: str
    used_here: bool
    because: str

    def as_json(self) -> dict[str, object]:
        """The status as plain JSON values."""
        return asdict(self)


def engine_status() -> Status | None:
    """The engine of this user and environment; None where none is up."""
    directory = find_directory()
    answer = None if directory is None else ask_engine(directory, {"ask": "status"})
    return None if directory is None or answer is None else _read_status(directory, answer)


def start_engine(idle_minutes: int = IDLE_MINUTES) -> Status:
    """The engine, once it is warm; one that is up already stays as it is.

    One of the same surroundings whose code has changed is ended first. Raises TidemarkError if none
    gets warm.
    """
    directory = make_directory()
    known = _find_usable(directory)
    if known is not None:
        return known
    known_bytes = _count_bytes(directory.log)
    process = _spawn_engine(directory, idle_minutes)
    for _ in range(round(_GIVE_UP_SECONDS / _POLL_SECONDS)):
        status = engine_status()
        if status is not None and status.state != "starting":
            return status
        if process.poll() is not None:
            raise TidemarkError(
                f"no engine could be started: {_last_words(directory, known_bytes)}"
            )
        time.sleep(_POLL_SECONDS)
    process.terminate()
    raise TidemarkError(
        f"the engine was not warm after {_GIVE_UP_SECONDS:.0f} seconds, so it was ended; "
        f"{directory.log} contains what it printed"
    )


def _spawn_engine(directory: EngineDirectory, idle_minutes: int) -> "subprocess.Popen[bytes]":
    with directory.log.open("ab") as log:
        return subprocess.Popen(
            # Without -P a directory `jobs` where the engine is started would be imported instead.
            [sys.executable, "-P", "-m", "jobs", "engine", "serve", "--idle", str(idle_minutes)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=surroundings(os.environ).get(DIRECTORY, directory.path),
            start_new_session=True,
        )


def stop_engine() -> bool:
    """Whether an engine was up; it has ended, after the command that it was running."""
    directory = find_directory()
    if directory is None or ask_engine(directory, {"ask": "stop"}) is None:
        return False
    _wait_for_end(directory)
    return True


def hold_directory(directory: EngineDirectory) -> int:
    """The descriptor of the lock that makes this process the only engine of the directory.

    Raises UsageError where another process has it.
    """
    descriptor = os.open(directory.lock, os.O_RDWR | os.O_CREAT, 0o600)
    if _is_free(descriptor):
        return descriptor
    os.close(descriptor)
    raise UsageError("an engine is up already, or is being started; `tidemark engine stop` ends it")


def begin_log(directory: EngineDirectory) -> None:
    """Empties the log of the engine before. This process must hold the directory."""
    if directory.log.exists():
        os.truncate(directory.log, 0)


def _find_usable(directory: EngineDirectory) -> Status | None:
    """The engine that is up; one of these surroundings and other code is ended, once it is idle."""
    answer = ask_engine(directory, {"ask": "status"})
    if answer is None:
        return None
    status = _read_status(directory, answer)
    if _other_surroundings(answer) or answer["code"] == code_fingerprint(os.environ):
        return status
    ask_engine(directory, {"ask": "stop"})
    if status.state == "running a command":
        raise TidemarkError("the engine of the code before is still running a command")
    _wait_for_end(directory)
    return None


def _read_status(directory: EngineDirectory, answer: Mapping[str, Any]) -> Status:
    because = ""
    others = _other_surroundings(answer)
    if others:
        because = f"it was started with another {', '.join(others)}"
    elif answer["code"] != code_fingerprint(os.environ):
        because = "the code, the packages or Spark's settings have changed since it was started"
    return Status(
        pid=answer["pid"],
        state=answer["state"],
        is_ending=answer["is_ending"],
        commands=answer["commands"],
        idle_minutes=answer["idle_minutes"],
        log=str(directory.log),
        used_here=not because,
        because=because,
    )


def _other_surroundings(answer: Mapping[str, Any]) -> list[str]:
    return differing(answer["surroundings"], surroundings(os.environ))


def _wait_for_end(directory: EngineDirectory) -> None:
    descriptor = os.open(directory.lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while not _is_free(descriptor):
            time.sleep(_POLL_SECONDS)
    finally:
        os.close(descriptor)


def _is_free(descriptor: int) -> bool:
    """Whether nobody else has the lock; it is held from now on, until the descriptor is closed."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _last_words(directory: EngineDirectory, known_bytes: int) -> str:
    """Why the engine ended, from what was added to the log since it had so many bytes.

    It has fewer where the engine has begun it anew.
    """
    printed = directory.log.read_bytes()
    since = printed[known_bytes:] if len(printed) >= known_bytes else printed
    lines = since.decode(errors="replace").splitlines()
    told = [line for line in lines if line.startswith("tidemark: ")]
    if not told:
        return f"{directory.log} contains what it printed"
    errors = [line.rstrip(".") for line in lines if line.startswith(("Error", "Exception"))]
    reason = told[-1].removeprefix("tidemark: ")
    return "; ".join((reason, *errors[:1], f"{directory.log} contains all that was printed"))


def _count_bytes(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
