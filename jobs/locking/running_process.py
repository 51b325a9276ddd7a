"""Processes that can be told from all others that a system runs, and ended.

An id alone does not tell them apart, because it is used again once its process has ended.
"""

import os
import select
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

ENDING_SECONDS = {signal.SIGTERM: 10.0, signal.SIGKILL: 5.0}
"""How long processes may take to end after each signal."""
_STATE, _STARTED = 0, 19
"""The places of the state and of the time of the start among the fields of `/proc/PID/stat`.

They are counted behind the name.
"""
_STOPPED, _ENDED = "tT", "ZX"
"""States of processes that do nothing, and of those that are over but for their parents."""


@dataclass(frozen=True)
class RunningProcess:
    """A process: its id, and its start in clock ticks since the start of its system.

    `system` names that start, and the table of processes, because a container has its own.
    """

    process: int
    started: int
    system: str


def find_process(process: int) -> RunningProcess | None:
    """The process that has this id now; None where none has."""
    fields = _read_fields(process)
    return None if fields is None else RunningProcess(process, int(fields[_STARTED]), name_system())


class Activity(Enum):
    """What can be said of a process from here."""

    RUNNING = "it is at work"
    ENDED = "it has ended"
    UNKNOWN = "it is stopped, or runs on another system"


def find_activity(process: RunningProcess) -> Activity:
    """Whether that process, and no later one with its id, is at work."""
    if process.system != name_system():
        return Activity.UNKNOWN
    fields = _read_fields(process.process)
    if fields is None or int(fields[_STARTED]) != process.started or fields[_STATE] in _ENDED:
        return Activity.ENDED
    return Activity.UNKNOWN if fields[_STATE] in _STOPPED else Activity.RUNNING


def _read_fields(process: int) -> list[str] | None:
    """What the system says of a process, from its state on; None where there is none."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(errors="replace")
    except OSError:
        return None
    # A name may have blanks and brackets in it.
    return stat.rpartition(")")[2].split()


def name_system() -> str:
    """What only the processes that this process can see have in common."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {os.readlink('/proc/self/ns/pid')}"


def end_processes(processes: Sequence[RunningProcess]) -> bool:
    """Ends the first of them, after which the others end; whether all have ended then.

    Whatever has not ended in time after SIGTERM is killed. Where the first has ended before,
    nothing is done, and the answer is no. PermissionError where it is another user's.
    """
    with _opened(processes) as opened:
        if not processes or processes[0] not in opened:
            return False
        signal.pidfd_send_signal(opened[processes[0]], signal.SIGTERM)
        left = _await_ends([*opened.values()], ENDING_SECONDS[signal.SIGTERM])
        for descriptor in left:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return not _await_ends(left, ENDING_SECONDS[signal.SIGKILL])


@contextmanager
def _opened(processes: Iterable[RunningProcess]) -> Iterator[dict[RunningProcess, int]]:
    """A descriptor for each of the processes that still runs."""
    opened: dict[RunningProcess, int] = {}
    try:
        for process in processes:
            with suppress(ProcessLookupError):
                opened[process] = os.pidfd_open(process.process)
                # Only now can the id no longer become another process's.
                if find_process(process.process) != process:
                    os.close(opened.pop(process))
        yield opened
    finally:
        for descriptor in opened.values():
            os.close(descriptor)


def _await_ends(opened: Sequence[int], seconds: float) -> list[int]:
    """Those that have not ended after so many seconds."""
    left = list(opened)
    deadline = time.monotonic() + seconds
    while left and (rest := deadline - time.monotonic()) > 0:
        ended, _, _ = select.select(left, [], [], rest)
        left = [descriptor for descriptor in left if descriptor not in ended]
    return left
