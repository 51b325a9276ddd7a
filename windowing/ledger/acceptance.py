"""What the note of a publication tells: failures that were accepted, a rollback, an erasure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from json import dumps, loads

Reasons = Mapping[str, str]
"""Rule -> why it may fail. A rule is a digest of an expectation's type and arguments."""
_ERASURE = "erasure"


@dataclass(frozen=True)
class Acceptance:
    """Why readers use outputs that failed, and by output the rules that it had failed.

    Publications of earlier versions of Tidemark have a reason alone.
    """

    reason: str
    failed: Mapping[str, Reasons] = field(default_factory=dict)

    def as_note(self) -> str:
        """The note of a publication; `parse_note` reads it."""
        document: dict[str, object] = {"accepted": self.reason}
        if self.failed:
            document["failed"] = {output: dict(reasons) for output, reasons in self.failed.items()}
        return dumps(document)


@dataclass(frozen=True)
class Rollback:
    """Which publication was published again, by its number, and why."""

    to: int
    reason: str

    def as_note(self, acceptance: Acceptance | None) -> str:
        """The note of the new publication, of which what was accepted of the old one is a part."""
        accepted = {} if acceptance is None else loads(acceptance.as_note())
        return dumps({"rollback": self.to, "reason": self.reason, **accepted})


def parse_note(note: str | None) -> Acceptance | None:
    """What the note of a publication accepts; None where everything had passed."""
    document = loads(note or "{}")
    if "accepted" not in document:
        return None
    return Acceptance(str(document["accepted"]), document.get("failed", {}))


def parse_rollback(note: str | None) -> Rollback | None:
    """The rollback that the note of a publication tells of; None where it was none."""
    document = loads(note or "{}")
    return Rollback(document["rollback"], document["reason"]) if "rollback" in document else None


def mark_erasure(note: str | None) -> str:
    """The note of what an erasure has left of the publication with this note."""
    return dumps({**loads(note or "{}"), _ERASURE: True})


def shows_erasure(note: str | None) -> bool:
    """Whether an erasure has made the publication; earlier versions of Tidemark did not say."""
    return _ERASURE in loads(note or "{}")
