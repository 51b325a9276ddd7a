"""What was accepted although it failed its expectations, as the note of a publication tells it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from json import dumps, loads

Reasons = Mapping[str, str]
"""Rule -> why it may fail. A rule is a digest of an expectation's type and arguments."""


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


def parse_note(note: str | None) -> Acceptance | None:
    """What the note of a publication accepts; None where everything had passed."""
    if note is None:
        return None
    document = loads(note)
    return Acceptance(str(document["accepted"]), document.get("failed", {}))
