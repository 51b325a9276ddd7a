"""A pipeline whose periods are closed and reopened, beside an oracle that knows nothing of it.

What outputs have to show then follows from the rows at the time of the close and from the oracle's
rows, by plain loops.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from jobs.close import close_period, reopen_period
from tests.oracle import Count, Delta, Global, Punctuation, Session, Window
from tests.support.pipeline_under_test import Lab
from tests.support.stored_rows import list_stored
from windowing.closed.rule import DELETED, restated_name
from windowing.grid.zone import micros, moment
from windowing.ledger.table import read_history

Place = tuple[Any, ...]
Rows = dict[Place, dict[str, Any]]


def freezes(window: Window) -> bool:
    """Whether rows of its output are frozen by a close."""
    return window.emit != "changes" and not isinstance(window, (Count, Delta, Global, Punctuation))


@dataclass
class ClosedLab:
    """A lab, until when it is closed, and the rows that were frozen, as stored and as shown."""

    lab: Lab
    until: int | None = None
    stored: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    frozen: dict[str, Rows] = field(default_factory=dict)

    def close(self, until: int) -> None:
        """Closes until then; what outputs have is frozen."""
        close_period(self.lab.spark, self.lab.pipeline, moment(until), "invoiced")
        self.until = until
        for window in filter(freezes, self.lab.windows):
            self.stored[window.name] = self.stored_frozen(window)
            shown = self.lab.table(window.name)
            self.frozen[window.name] = {p: r for p, r in shown.items() if p[2] <= until}

    def reopen(self) -> None:
        """Opens what is closed."""
        reopen_period(self.lab.spark, self.lab.pipeline, "a customer is right")
        self.until, self.stored, self.frozen = None, {}, {}

    def stored_frozen(self, window: Window) -> list[dict[str, Any]]:
        """Every column of the stored rows that end within the period, in one order."""
        rows = list_stored(self.lab.spark, self.lab.pipeline.table(window.name))
        within = [row for row in rows if _instant(row["window_end"]) <= (self.until or 0)]
        return sorted(within, key=lambda row: (row["key"], row["window_start"], row["window_end"]))

    def check(self) -> None:
        """Outputs, restated rows and both together are what the law says."""
        for window in self.lab.windows:
            wanted, shown = self.lab.expected(window), self.lab.table(window.name)
            if self.until is None or not freezes(window):
                assert shown == wanted, window
                assert self.restated(window) == ({}, set()), window
                continue
            assert self.stored_frozen(window) == self.stored[window.name], window
            frozen = self.frozen[window.name]
            assert shown == frozen | self.not_held(window, wanted, frozen), window
            stated, gone = self.restated(window)
            identity = identify(window)
            replaced = {identity(place) for place in stated} | gone
            kept = {p: row for p, row in shown.items() if identity(p) not in replaced}
            assert kept | stated == wanted, window
            # Nothing is restated that does not differ.
            assert all(frozen.get(place) != row for place, row in stated.items()), window
            assert gone <= {identity(place) for place in frozen}, window

    def not_held(self, window: Window, wanted: Rows, frozen: Rows) -> Rows:
        """The oracle's rows that are shown although a period is closed."""
        found = {}
        for place, row in wanted.items():
            key, start, end = place[:3]
            is_held = end <= (self.until or 0)
            if isinstance(window, Session):
                for (other, begin, stop, *_), old in frozen.items():
                    if other == key and begin < end and touches(window, begin, stop, old, start):
                        is_held = True
            if not is_held:
                found[place] = row
        return found

    def restated(self, window: Window) -> tuple[Rows, set[Place]]:
        """The rows as they would be, and the frozen rows that would not be there."""
        path = self.lab.pipeline.table(restated_name(window.name))
        if not path.local.exists():
            return {}, set()
        rows = list_stored(self.lab.spark, path)
        identity = identify(window)
        gone = {identity(_place_of(row)) for row in rows if row[DELETED]}
        named = {_place_of(row): row for row in rows if not row[DELETED]}
        table = self.lab.table(restated_name(window.name))
        return {place: row for place, row in table.items() if place in named}, gone

    def watermark(self) -> int | None:
        """W by the ledger."""
        return read_history(self.lab.pipeline).watermark


def touches(window: Session, begin: int, stop: int, old: dict[str, Any], start: int) -> bool:
    """Whether a session that starts then begins within the frozen one."""
    if window.max_duration is not None and start >= begin + window.max_duration:
        return False
    last: int = old["last_event"]
    return start <= last + window.gap


def identify(window: Window) -> Any:
    """What of a place distinguishes the rows of a window."""
    return (lambda place: place[:2]) if isinstance(window, Session) else (lambda place: place[:3])


def _place_of(row: dict[str, Any]) -> Place:
    return (row["key"], _instant(row["window_start"]), _instant(row["window_end"]))


def _instant(at: datetime) -> int:
    return micros(at.replace(tzinfo=UTC))
