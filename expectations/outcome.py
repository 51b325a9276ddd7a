"""What a validation needs and what it finds, without Great Expectations or Spark."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

CRITICAL, WARNING = "critical", "warning"


@dataclass(frozen=True)
class Facts:
    """What the ledger records after `run`.

    `accepted` counts the events accepted so far, `partial` those of them that are late for a
    window, by the window's name. Rows of the outputs `expiring` may have expired.
    """

    run: int
    accepted: int
    partial: Mapping[str, int] = field(default_factory=dict)
    expiring: tuple[str, ...] = ()

    def counted(self, window: str) -> int:
        """How many accepted events count in every window of `window` to which they belong."""
        return self.accepted - self.partial.get(window, 0)


@dataclass(frozen=True)
class Outcome:
    """The outcome of one expectation for one output.

    `observed` and `detail` contain counts and reasons, never values of rows.
    """

    window: str
    suite: str
    expectation: str
    severity: str
    success: bool
    observed: str
    detail: str


@dataclass(frozen=True)
class Verdict:
    """All outcomes of one validation, and the page that shows them."""

    outcomes: tuple[Outcome, ...]
    docs_index: Path


def all_passed(outcomes: Iterable[Outcome]) -> bool:
    """True if no critical expectation failed; warnings don't count."""
    return all(o.success or o.severity != CRITICAL for o in outcomes)


@dataclass(frozen=True)
class Validation:
    """The outcomes of all expectations; `seq` is the ledger entry that names the versions."""

    run: int
    seq: int
    outcomes: tuple[Outcome, ...]
    docs: str

    @property
    def passed(self) -> bool:
        """Whether no critical expectation failed."""
        return all_passed(self.outcomes)

    def as_json(self) -> dict[str, object]:
        """The result as plain JSON values; only failed expectations are listed."""
        failed = [
            {
                "window": outcome.window,
                "expectation": outcome.expectation,
                "severity": outcome.severity,
                "detail": outcome.detail,
            }
            for outcome in self.failed
        ]
        return {
            "run": self.run,
            "passed": self.passed,
            "checked": len(self.outcomes),
            "failed": failed,
            "docs": self.docs,
        }

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """The expectations that failed, warnings included."""
        return tuple(o for o in self.outcomes if not o.success)


NO_VALIDATION = Validation(0, -1, (), "")
"""The result before the first finished run."""
