"""What a validation needs and what it finds, without Great Expectations or Spark."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windowing.ledger.acceptance import Reasons
from windowing.location import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CRITICAL, WARNING = "critical", "warning"
UNKNOWN = "could not be evaluated: "
"""How the detail of an outcome begins that says nothing of the rows."""


@dataclass(frozen=True)
class Facts:
    """What the ledger records after a run.

    `accepted` counts the events accepted so far, `partial` those of them that are late for a
    window, by the window's name. Rows of the outputs `expiring` may have expired.
    """

    accepted: int
    partial: Mapping[str, int] = field(default_factory=dict)
    expiring: tuple[str, ...] = ()

    def counted(self, window: str) -> int:
        """How many accepted events count in every window of `window` to which they belong."""
        return self.accepted - self.partial.get(window, 0)


@dataclass(frozen=True)
class Outcome:
    """The outcome of one expectation for one output.

    `observed` and `detail` contain counts and reasons, never values of rows. `rule` is a digest of
    the expectation's type and arguments; builtin ones have none. `accepted` is the reason of an
    earlier `publish --accept`, where it lasts for all that fails here.
    """

    window: str
    suite: str
    expectation: str
    severity: str
    success: bool
    observed: str
    detail: str
    rule: str = ""
    accepted: str | None = None

    @property
    def blocks(self) -> bool:
        """Whether the output may not be published for this."""
        return self.severity == CRITICAL and not self.success and self.accepted is None

    @property
    def is_unknown(self) -> bool:
        """Whether the expectation could not be evaluated."""
        return self.detail.startswith(UNKNOWN)


@dataclass(frozen=True)
class Standing:
    """An output as readers see it, and why rules that it fails were accepted there."""

    shown: "DataFrame"
    reasons: Reasons


@dataclass(frozen=True)
class Verdict:
    """All outcomes of one validation, and the page that shows them."""

    outcomes: tuple[Outcome, ...]
    docs_index: Location


def all_passed(outcomes: Iterable[Outcome]) -> bool:
    """True if no critical expectation failed that was not accepted; warnings don't count."""
    return not any(outcome.blocks for outcome in outcomes)


@dataclass(frozen=True)
class Validation:
    """The outcomes of all expectations; `seq` is the ledger entry that names the versions."""

    run: int
    seq: int
    outcomes: tuple[Outcome, ...]
    docs: str

    @property
    def passed(self) -> bool:
        """Whether no critical expectation failed that was not accepted."""
        return all_passed(self.outcomes)

    def as_json(self) -> dict[str, object]:
        """The result as plain JSON values; only failed expectations are listed."""
        shown = ("window", "expectation", "severity", "detail", "accepted")
        failed = [{name: getattr(outcome, name) for name in shown} for outcome in self.failed]
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
