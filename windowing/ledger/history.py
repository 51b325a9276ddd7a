"""The whole ledger as values: what is asked of it that needs every entry. No Spark."""

from collections.abc import Mapping
from dataclasses import dataclass

from windowing.ledger.acceptance import shows_erasure
from windowing.ledger.period import read_period
from windowing.ledger.rule import (
    BACKFILL_DONE,
    CLOSE,
    DONE,
    ERASE_DONE,
    ERASE_INTENT,
    EVOLVE_DONE,
    FINISHED,
    MAX_TIME,
    MIN_TIME,
    PERIOD_CLOSED,
    PERIOD_REOPENED,
    PUBLISH,
    LedgerEntry,
    LedgerExcerpt,
)


@dataclass(frozen=True)
class LedgerHistory(LedgerExcerpt):
    """Every entry of the ledger, oldest first, and what else they mean."""

    def since_shown(self, output: str) -> tuple[LedgerEntry, ...]:
        """The finished steps, oldest first, that came after what readers see of an output."""
        published = self.published
        finished = self._entries_of(*FINISHED)
        if published is None or output not in published.versions:
            return finished
        # A later step may have left the published version as it was, so readers have seen it.
        version = published.versions[output]
        seen = [entry.seq for entry in finished if entry.versions.get(output) == version]
        last_seen = max(seen, default=published.seq)
        return tuple(entry for entry in finished if entry.seq > last_seen)

    @property
    def publications(self) -> tuple[LedgerEntry, ...]:
        """What was published, oldest first."""
        return self._entries_of(PUBLISH)

    def find_first_shown(self, output: str) -> tuple[LedgerEntry, int | None] | None:
        """The publication since which readers see this version of an output, and the one before.

        The version before is None where there was none. None where the output is not published.
        """
        first, previous = None, None
        for entry in self.publications:
            version = entry.versions.get(output)
            if version is not None and (first is None or version != first.versions[output]):
                previous = None if first is None else first.versions[output]
                first = entry
        return None if first is None else (first, previous)

    @property
    def settled(self) -> "LedgerHistory":
        """The ledger without an unfinished run: that of the newest finished versions."""
        left = self.open_run
        if left is None:
            return self
        kept = []
        for entry in self.entries:
            of_unfinished_run = entry.run == left.run and entry.seq >= left.seq
            if not of_unfinished_run:
                kept.append(entry)
        return LedgerHistory(tuple(kept))

    def until_run(self, run: int) -> "LedgerHistory":
        """The ledger up to the end of `run`, which is closed."""
        closes = reversed(self._entries_of(CLOSE))
        closed = next(entry for entry in closes if entry.run == run)
        return self.until_step(closed.seq)

    def until_step(self, seq: int) -> "LedgerHistory":
        """The ledger up to the step of that number."""
        return LedgerHistory(tuple(entry for entry in self.entries if entry.seq <= seq))

    def watermark_of(self, run: int | None) -> int | None:
        """W at the end of `run`."""
        entries = reversed(self._entries_of(CLOSE))
        return next((e.watermark_out for e in entries if e.run == run), None)

    def find_freezing(self, end_us: int) -> int:
        """The number of the entry that has closed what ends then, since the last reopening.

        Of what ends behind all that is closed, it is the first one. ValueError where none is.
        """
        closings: list[LedgerEntry] = []
        for entry in self._entries_of(PERIOD_CLOSED, PERIOD_REOPENED):
            closings = [*closings, entry] if entry.step == PERIOD_CLOSED else []
        for entry in closings:
            period = read_period(entry.note)
            if period is not None and period.until_us >= end_us:
                return entry.seq
        if not closings:
            raise ValueError("no period is closed")
        return closings[0].seq

    def touched_since(self, seq: int, low_us: int, high_us: int) -> bool:
        """Whether from step `seq` on events in [low, high) may have changed.

        Either a batch accepted event times that may lie in the range, or a step that is no run
        changed the tables.
        """
        for entry in self.entries:
            if entry.seq < seq:
                continue
            if entry.step in FINISHED and entry.step != CLOSE:
                return True
            if entry.step == DONE and MIN_TIME in entry.counts:
                first, last = entry.counts[MIN_TIME], entry.counts[MAX_TIME]
                if first < high_us and last >= low_us:
                    return True
        return False

    def total(self, name: str) -> int:
        """The sum of one count over all finished batches, backfills, spec changes and erasures."""
        # After a retry a batch can have two done entries, and it counts once.
        batches = {(e.generation, e.batch): e for e in self._entries_of(DONE)}
        others = self._entries_of(BACKFILL_DONE, EVOLVE_DONE, ERASE_DONE)
        counted = [*batches.values(), *others]
        return sum(entry.counts.get(name, 0) for entry in counted)


def find_ends_of_erasures(past: LedgerHistory) -> Mapping[int, LedgerEntry]:
    """By the number of its last publication, which is its own, the end of each erasure.

    An erasure that was interrupted may have been followed by publications of others.
    """
    found, last = {}, None
    for entry in past.entries:
        if entry.step == ERASE_INTENT:
            last = None
        elif entry.step == PUBLISH:
            last = entry.seq
        elif entry.step == ERASE_DONE:
            if last is not None:
                found[last] = entry
            last = None
    return found


def find_publications_of_erasures(past: LedgerHistory) -> frozenset[int]:
    """The numbers of the publications that erasures made, also of those that were interrupted."""
    marked = {entry.seq for entry in past.publications if shows_erasure(entry.note)}
    return frozenset({*marked, *find_ends_of_erasures(past)})


def until_own_publication(past: LedgerHistory) -> LedgerHistory:
    """The ledger up to the newest publication that is not that of an erasure."""
    of_erasures = find_publications_of_erasures(past)
    own = [entry.seq for entry in past.publications if entry.seq not in of_erasures]
    return past.until_step(own[-1]) if own else past
