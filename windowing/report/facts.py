"""The facts that the report page shows, as values. `table.py` reads them; `view.py` shows them.

No value of a row but times of events is among them, except in `Samples` and in the keys and values
of `Revised`, which are read where someone asks for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from windowing.admit.outcomes import PARTIAL
from windowing.report.ages import Ages
from windowing.report.alarms import Raised
from windowing.report.publications import PastPublication
from windowing.report.rows import Refused, Rows
from windowing.report.rule import Changed
from windowing.source.commits import subtract
from windowing.spec.pipeline import Pipeline


@dataclass(frozen=True)
class Ran:
    """One run's row of `_watermarks`, and what it changed in all outputs together.

    `begun_us` is when its first batch was recorded, and `ended_us` when it ended, by the clock of
    its host. `updated_us` is when the last of its batches was done, where the ledger tells that
    time apart from the batch's begin. `last_us` is the highest event time that it accepted.
    `shown_us` is since when readers see it, or a later run, in every output.
    """

    run: int
    arrival_us: int | None
    watermark_us: int | None
    read: int
    accepted: int
    late: int
    duplicate: int
    quarantined: int
    changed: Changed
    row_by_row: int = 0
    erased: int = 0
    batches: int = 0
    last_us: int | None = None
    begun_us: int | None = None
    updated_us: int | None = None
    ended_us: int | None = None
    shown_us: int | None = None

    @property
    def lag_us(self) -> int | None:
        """How far the watermark lies behind the arrival of the run."""
        return subtract(self.arrival_us, self.watermark_us)

    @property
    def event_lag_us(self) -> int | None:
        """How far the newest accepted event lies behind the arrival of the run."""
        return subtract(self.arrival_us, self.last_us)

    @property
    def took_us(self) -> int | None:
        """From the record of the first batch to the end of the run."""
        return subtract(self.ended_us, self.begun_us)

    @property
    def closing_us(self) -> int | None:
        """From the last batch to the end; None where the ledger does not tell it."""
        return subtract(self.ended_us, self.updated_us)

    @property
    def waited_us(self) -> int | None:
        """From the end of the run until every output showed it; None where one does not."""
        return subtract(self.shown_us, self.ended_us)


@dataclass(frozen=True)
class Backfilled:
    """One finished chunk of a backfill after `run`.

    `range` are its event times, and `changed` is what it changed in all outputs together.
    """

    run: int | None
    at_us: int | None
    range: str
    changed: Changed


@dataclass(frozen=True)
class Shape:
    """How many rows of an output begin in each stretch of event time.

    `starts_us` are the starts of the stretches, each `width_us` long. A stretch without a row in
    either version is left out. `published` is None where nothing is published.
    """

    width_us: int
    starts_us: tuple[int, ...]
    newest: tuple[int, ...]
    published: tuple[int, ...] | None


@dataclass(frozen=True)
class Was:
    """A window as `run` left it: its revision then, and the aggregates where they were read."""

    run: int
    revision: int
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Revised:
    """A window that was revised often, with what it has been, oldest first.

    `place` is its window in words. `key` is empty unless rows were asked for.
    """

    place: str
    key: Mapping[str, object]
    revision: int
    run: int
    history: tuple[Was, ...]


@dataclass(frozen=True)
class Revisions:
    """What the rows of an output say of corrections.

    `back` are the revised rows whose window had ended by the watermark before their newest change,
    by how long before. `open_rows` are those whose window had not, and `unknown_rows` those that
    have no end, or whose run the ledger does not name, or which a backfill, a changed spec or an
    erasure after that run may have written. `unread` says why there is nothing of it.
    """

    back: Ages
    open_rows: int = 0
    unknown_rows: int = 0
    most: tuple[Revised, ...] = ()
    shape: Shape | None = None
    unread: str | None = None


@dataclass(frozen=True)
class Output:
    """One output: what it is, how large, and what the last runs changed, newest first."""

    name: str
    kind: str
    rows: int | None
    version: int | None
    published: int | None
    changes: tuple[tuple[str, Changed], ...]
    revisions: Revisions | None = None


@dataclass(frozen=True)
class Lateness:
    """How far behind the watermark the late rows were; `unread` says why that is not known.

    `unknown_rows` are those whose event time was erased or has expired.
    """

    behind: Ages
    unknown_rows: int = 0
    unread: str | None = None


@dataclass(frozen=True)
class Refusal:
    """How many rows were refused for one reason, and how many of them are resolved."""

    outcome: str
    reason: str
    rows: int
    resolved: int

    @property
    def is_partial(self) -> bool:
        """Whether the rows were accepted, and late for some of their windows alone."""
        return self.outcome == PARTIAL

    @property
    def unresolved(self) -> int:
        """How many no backfill has taken in."""
        return self.rows - self.resolved


@dataclass(frozen=True)
class Lost:
    """Of how many rows of a run, or of a chunk of a backfill, an expression lost the value."""

    step: str
    column: str
    rows: int


@dataclass(frozen=True)
class Check:
    """One expectation of a validation; counts and reasons only.

    It judged what `run` left, which is the ledger's entry `seq`. `accepted` is the reason for which
    readers may see that it failed. `rule` tells two of the same type apart.
    """

    run: int
    seq: int
    window: str
    expectation: str
    severity: str
    success: bool
    observed: str
    detail: str
    accepted: str | None = None
    rule: str | None = None

    @property
    def name(self) -> tuple[str, str, str]:
        """What is the same in each validation."""
        return self.window, self.expectation, self.rule or ""

    @property
    def verdict(self) -> str:
        """Met, failed, accepted, or failed as a warning."""
        if self.success:
            return "met"
        if self.accepted is not None:
            return "accepted"
        return "failed" if self.severity == "critical" else "warning"


@dataclass(frozen=True)
class Validated:
    """One validation: what was judged, when, and every expectation, failing ones first."""

    run: int
    seq: int
    at_us: int
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Publishing:
    """One publication as it is told, why readers see what had failed, and the outputs held back.

    A rollback and an erasure show on what an earlier publication has `accepted`.
    """

    told: PastPublication
    accepted: str | None = None
    held: tuple[str, ...] = ()


@dataclass(frozen=True)
class FailingRows:
    """Rows that fail one expectation; None where no single row is to blame."""

    window: str
    expectation: str
    failing: Rows | None


@dataclass(frozen=True)
class Samples:
    """Values of rows, for whoever asked for them: refused rows and rows that fail."""

    refused: Refused
    failing: tuple[FailingRows, ...] = ()


@dataclass(frozen=True)
class Facts:
    """Everything the page shows; runs, validations and publications oldest first."""

    pipeline: Pipeline
    watermark_us: int | None = None
    unfinished: tuple[str, ...] = ()
    runs: tuple[Ran, ...] = ()
    backfills: tuple[Backfilled, ...] = ()
    outputs: tuple[Output, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    lost: tuple[Lost, ...] = ()
    validations: tuple[Validated, ...] = ()
    publishings: tuple[Publishing, ...] = ()
    alarms: tuple[Raised, ...] = ()
    lateness: Lateness | None = None
    samples: Samples | None = None

    @property
    def published(self) -> Publishing | None:
        """What readers see."""
        return self.publishings[-1] if self.publishings else None

    @property
    def checks(self) -> tuple[Check, ...]:
        """The expectations of the newest validation, failing ones first."""
        return self.validations[-1].checks if self.validations else ()

    def total(self, count: str) -> int:
        """The sum of one count over all runs."""
        return sum(getattr(run, count) for run in self.runs)
