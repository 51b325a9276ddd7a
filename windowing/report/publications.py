"""Every publication, as the ledger has it: what readers saw, since when, and why.

ledger -> publications, oldest first
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from windowing.grid.zone import moment
from windowing.ledger.acceptance import parse_note, parse_rollback
from windowing.ledger.changed import parse_changed
from windowing.ledger.history import (
    LedgerHistory,
    find_ends_of_erasures,
    find_publications_of_erasures,
)
from windowing.ledger.period import read_period
from windowing.ledger.rule import (
    CLOSE,
    ERASE_DONE,
    ERASE_INTENT,
    EVOLVE_DONE,
    PERIOD_CLOSED,
    LedgerEntry,
)
from windowing.report.changed import Days, describe_changed
from windowing.report.rule import Publication
from windowing.report.text import plain, plain_fields
from windowing.spec.kinds import Window

VALIDATED, ACCEPTED, ROLLBACK, ERASURE = "validated", "accepted", "rollback", "erasure"
"""Why there was a publication.

Outputs were validated, or they failed and were accepted for a reason; an earlier publication was
published again; or a key or value was erased.
"""


@dataclass(frozen=True)
class PastPublication:
    """A publication by its number, which is that of its entry in the ledger.

    `outputs` are the versions by window. `rolled_back_to` is the number of the publication that a
    rollback published again. `changed_days` are by window the days that it changed; None for a
    publication of earlier versions of Tidemark, which did not record them.
    """

    number: int
    at: datetime
    run: int | None
    watermark: datetime | None
    outputs: Mapping[str, int]
    cause: str
    reason: str | None = None
    rolled_back_to: int | None = None
    changed_days: Mapping[str, Days] | None = None

    @property
    def why(self) -> str:
        """The cause in words, with the reason that was given."""
        to = "" if self.rolled_back_to is None else f" to {self.rolled_back_to}"
        return f"{self.cause}{to}" + (f": {self.reason}" if self.reason else "")

    def as_json(self) -> dict[str, object]:
        """The publication as plain JSON values; times are ISO 8601 in UTC."""
        return {"publication": self.number, **plain_fields(self, "number")}


@dataclass(frozen=True)
class Publications:
    """The publications of a pipeline, oldest first."""

    found: tuple[PastPublication, ...]

    def as_json(self) -> dict[str, object]:
        """The publications as plain JSON values."""
        return {"publications": plain(self.found)}


@dataclass(frozen=True)
class RolledBack:
    """That readers see the publication `to` again; `is_new` is whether they did not before.

    Outputs that it did not have are `kept` as readers saw them.
    """

    to: int
    publication: Publication
    is_new: bool
    kept: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The publication as plain JSON values."""
        return {
            **self.publication.as_json(),
            "rolled_back_to": self.to,
            "changed": self.is_new,
            "kept": plain(self.kept),
        }


def list_publications(past: LedgerHistory, windows: Sequence[Window]) -> list[PastPublication]:
    """The publications, oldest first, with the outputs of these windows."""
    watermarks = {entry.run: entry.watermark_out for entry in past.entries if entry.step == CLOSE}
    of_erasures = find_publications_of_erasures(past)
    found = []
    for entry in past.publications:
        told = _describe(entry, watermarks.get(entry.run), windows)
        if entry.seq in of_erasures:
            # The note of such a publication is that of the one before it.
            told = replace(told, cause=ERASURE, reason=None, rolled_back_to=None)
        found.append(told)
    return found


def _describe(
    entry: LedgerEntry, watermark_us: int | None, windows: Sequence[Window]
) -> PastPublication:
    acceptance, rollback = parse_note(entry.note), parse_rollback(entry.note)
    cause, reason = VALIDATED, None
    if acceptance is not None:
        cause, reason = ACCEPTED, acceptance.reason
    if rollback is not None:
        cause, reason = ROLLBACK, rollback.reason
    changed = parse_changed(entry.note)
    return PastPublication(
        entry.seq,
        moment(entry.at or 0),
        entry.run,
        None if watermark_us is None else moment(watermark_us),
        {each.name: entry.versions[each.name] for each in windows if each.name in entry.versions},
        cause,
        reason,
        None if rollback is None else rollback.to,
        None if changed is None else describe_changed(changed, windows),
    )


def find_undone(past: LedgerHistory, entry: LedgerEntry) -> LedgerEntry | None:
    """A later step that must not be undone for readers: an erasure, a change of the spec, a close.

    A close that was begun is one, and comes after all others, because it can be released. The end
    of the erasure that made this publication is none, because it shows what was left.
    """
    own = find_ends_of_erasures(past).get(entry.seq)
    later = [each for each in past.entries if each.seq > entry.seq and each is not own]
    lasting = [each for each in later if each.step in (ERASE_INTENT, ERASE_DONE, EVOLVE_DONE)]
    closes = [] if past.period is None else [each for each in later if each.step == PERIOD_CLOSED]
    begun = past.open_period
    if begun is not None and read_period(begun.note) is not None:
        closes.append(begun)
    return next((each for each in (*lasting, *closes)), None)
