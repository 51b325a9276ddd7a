"""Who holds a lock: what its holder has written into the file that it has locked.

The lock itself is the system's, and what the file says means nothing once the lock is free.
"""

import json
import os
import socket
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from jobs.locking.attempt import Attempt, find_own_attempt, parse_attempt
from jobs.locking.running_process import RunningProcess, find_process


@dataclass(frozen=True)
class Holder:
    """A process, and since when it has the lock (ISO 8601, UTC).

    `attempt` is the try of a task that it is, if it is one. `processes` are those that have to end
    before the lock is free: itself, and its JVM if it has one.
    """

    command: str
    process: int
    host: str
    since: str
    attempt: Attempt | None = None
    processes: tuple[RunningProcess, ...] = ()

    def __str__(self) -> str:
        named = f"`{self.command}`, process {self.process} on {self.host}, since {self.since}"
        if self.attempt is None:
            return named
        return f"{named}, try {self.attempt.number} of {self.attempt.task}"


UNKNOWN_HOLDER = Holder("unknown command", 0, "an unknown host", "an unknown time")
"""Who holds a lock whose file names nobody, because it was just taken."""


def find_this_holder(jvms: Iterable[int] = ()) -> Holder:
    """The holder that this process is, with its JVM if it has one.

    UsageError where the environment names no attempt and should.
    """
    found = [find_process(process) for process in (os.getpid(), *jvms)]
    return Holder(
        _name_command(),
        os.getpid(),
        socket.gethostname(),
        datetime.now(UTC).isoformat(timespec="seconds"),
        find_own_attempt(),
        tuple(process for process in found if process is not None),
    )


def describe_holder(holder: Holder) -> dict[str, object]:
    """The holder as plain JSON values, which `parse_holder` reads."""
    attempt = None if holder.attempt is None else str(holder.attempt)
    return {**asdict(holder), "attempt": attempt}


def parse_holder(content: bytes) -> Holder | None:
    """The holder that a file names; None where it names none, as of an earlier release."""
    try:
        named = json.loads(content)
        attempt = parse_attempt(named.pop("attempt", None) or "")
        processes = [RunningProcess(**process) for process in named.pop("processes", ())]
        return Holder(**named, attempt=attempt, processes=tuple(processes))
    except (ValueError, TypeError, AttributeError):
        return None


def _name_command() -> str:
    """The command without its arguments, because they may contain the value of a key."""
    program = Path(sys.argv[0])
    is_command = program.name == "tidemark" or program.parts[-2:] == ("jobs", "__main__.py")
    if is_command and sys.argv[1:] and sys.argv[1].isalpha():
        return f"tidemark {sys.argv[1]}"
    return program.name or "python"
