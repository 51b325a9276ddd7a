"""What the object of a lease says, and what each step makes of it. Nothing here reads or writes.

absent, free, broken -> held -> held ... -> free      taken, renewed, given back
                        held -> broken                its holder has not renewed it for its time
"""

import json
from dataclasses import dataclass, replace
from enum import Enum

from jobs.locking.holder import Holder, describe_holder, parse_holder


class State(Enum):
    """Who may take a lease."""

    HELD = "held"
    """Nobody: its holder is at work."""
    FREE = "free"
    """Everybody: its holder has given it back, and writes no more."""
    BROKEN = "broken"
    """Everybody who first fences its tables, because its holder may only sleep."""


@dataclass(frozen=True)
class LeaseNote:
    """A lease: its number, which each holder raises by one, and who holds it or held it last.

    It is valid for so many `seconds` after each of its `renewals`.
    """

    epoch: int
    state: State
    seconds: float
    holder: Holder
    renewals: int = 0

    def __str__(self) -> str:
        return f"{self.holder}, epoch {self.epoch}"

    def as_bytes(self) -> bytes:
        """The content of the object. That of each renewal is another one, and so is its tag."""
        plain = {
            "state": self.state.value,
            "epoch": self.epoch,
            "seconds": self.seconds,
            "renewals": self.renewals,
            "holder": describe_holder(self.holder),
        }
        return json.dumps(plain, indent=1).encode()

    def renewed(self) -> "LeaseNote":
        """The same, held on."""
        return replace(self, renewals=self.renewals + 1)

    def ended(self, state: State) -> "LeaseNote":
        """The same, held no more."""
        return replace(self, state=state)

    def behind(self, stored: "LeaseNote | None") -> "LeaseNote | None":
        """What its holder writes behind `stored`, which an earlier call of that one has written.

        None where another one has written it: who has taken the lease, or broken it.
        """
        if stored is None or (stored.epoch, stored.holder) != (self.epoch, self.holder):
            return None
        is_own = stored.state is State.HELD or stored.state is self.state is State.FREE
        return replace(self, renewals=stored.renewals + 1) if is_own else None

    def as_json(self) -> dict[str, object]:
        """The lease as plain JSON values."""
        shown = {"epoch": self.epoch, "state": self.state.value, "seconds": self.seconds}
        holder = self.holder
        named = {"command": holder.command, "process": holder.process, "host": holder.host}
        return {**shown, "holder": {**named, "since": holder.since}}


def parse_lease(content: bytes) -> LeaseNote | None:
    """The lease that an object describes; None where it describes none."""
    try:
        named = json.loads(content)
        holder = parse_holder(json.dumps(named["holder"]).encode())
        if holder is None:
            return None
        return LeaseNote(
            int(named["epoch"]),
            State(named["state"]),
            float(named["seconds"]),
            holder,
            int(named["renewals"]),
        )
    except (ValueError, TypeError, KeyError):
        return None


def must_fence(found: LeaseNote | None) -> bool:
    """Whether whoever takes the lease after `found` has to fence its tables first.

    Without a lease nothing is known of earlier writers, as where a lake was copied.
    """
    return found is None or found.state is State.BROKEN
