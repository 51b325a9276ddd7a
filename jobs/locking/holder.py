"""Who holds a lock: what its holder has written into the file that it has locked.

The lock itself is the system's, and what the file says means nothing once the lock is free.
"""

import json
import os
import socket
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path


@dataclass(frozen=True)
class Holder:
    """A process, and since when it has the lock (ISO 8601, UTC)."""

    command: str
    process: int
    host: str
    since: str

    def __str__(self) -> str:
        return f"`{self.command}`, process {self.process} on {self.host}, since {self.since}"


def describe_this_process() -> bytes:
    """The holder that this process is, as the file has it."""
    since = datetime.now(UTC).isoformat(timespec="seconds")
    holder = Holder(_name_command(), os.getpid(), socket.gethostname(), since)
    return json.dumps(asdict(holder)).encode()


def parse_holder(content: bytes) -> Holder | None:
    """The holder that a file names; None where it names none, as of an earlier release."""
    try:
        return Holder(**json.loads(content))
    except (ValueError, TypeError):
        return None


def _name_command() -> str:
    """The command without its arguments, because they may contain the value of a key."""
    program = Path(sys.argv[0])
    is_command = program.name == "tidemark" or program.parts[-2:] == ("jobs", "__main__.py")
    if is_command and sys.argv[1:] and sys.argv[1].isalpha():
        return f"tidemark {sys.argv[1]}"
    return program.name or "python"
