"""The ledger as values: what was done and what that means for the next run. No Spark.

open -> (intent -> done)* -> close    one run, numbered from 1, over batches numbered from 0
backfill_intent -> backfill_done      one chunk of a backfill
evolve_intent -> evolve_done          the spec has changed, state and outputs with it
erase_intent -> erase_done            one key is gone from every table
maintain_intent -> maintain_done      state was compacted, files too; no number has changed
skip                                  the stream moved on and brought no row
publish                               versions that readers may see
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from json import loads
from typing import Any

OPEN, INTENT, DONE, CLOSE = "open", "intent", "done", "close"
BACKFILL_INTENT, BACKFILL_DONE, PUBLISH, SKIP = (
    "backfill_intent",
    "backfill_done",
    "publish",
    "skip",
)
EVOLVE_INTENT, EVOLVE_DONE = "evolve_intent", "evolve_done"
MAINTAIN_INTENT, MAINTAIN_DONE = "maintain_intent", "maintain_done"
ERASE_INTENT, ERASE_DONE = "erase_intent", "erase_done"
FINISHED = (CLOSE, BACKFILL_DONE, EVOLVE_DONE, ERASE_DONE)
"""Steps after which tables are whole and name their versions."""
GENERATION = 1
"""Part of every transaction id and state row, so that a pipeline that starts over never meets its own past."""
MIN_TIME, MAX_TIME, KEPT_STATE = "min_event_time", "max_event_time", "kept_state"
"""Among the counts: a batch's first and last accepted event time; how long a maintenance keeps panes, if not forever. Microseconds."""
COUNTS = ("read", "accepted", "late", "duplicate", "quarantined")


@dataclass(frozen=True)
class Entry:
    """One step. Times are microseconds since 1970; `watermark_*` None means minus infinity."""

    step: str
    seq: int = -1
    generation: int = 1
    run: int | None = None
    batch: int | None = None
    at: int | None = None
    arrival: int | None = None
    watermark_in: int | None = None
    watermark_out: int | None = None
    offsets: str | None = None
    source_id: str | None = None
    source_version: int | None = None
    spec: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    note: str | None = None


@dataclass(frozen=True)
class Story:
    """What the ledger says, oldest first."""

    entries: tuple[Entry, ...] = ()

    @property
    def next_seq(self) -> int:
        """The number of the next entry."""
        return self.entries[-1].seq + 1 if self.entries else 0

    @property
    def watermark(self) -> int | None:
        """W of the last closed run."""
        closed = self._of(CLOSE)
        return closed[-1].watermark_out if closed else None

    @property
    def last_arrival(self) -> int | None:
        """The highest arrival of any live batch so far."""
        return max(
            (e.arrival for e in self._of(OPEN, INTENT, CLOSE) if e.arrival is not None),
            default=None,
        )

    @property
    def quiet_since(self) -> tuple[int, int] | None:
        """Arrival of the last run that accepted a row, and the highest event time accepted so far, each at most its run's arrival."""
        heard = [
            (e.arrival, e.counts[MAX_TIME])
            for e in self._of(DONE)
            if MAX_TIME in e.counts and e.arrival is not None
        ]
        return (max(at for at, _ in heard), max(min(at, t) for at, t in heard)) if heard else None

    @property
    def open_run(self) -> Entry | None:
        """The `open` entry of a run that was not closed."""
        opened, closed = self._of(OPEN), self._of(CLOSE)
        return opened[-1] if opened and (not closed or closed[-1].seq < opened[-1].seq) else None

    @property
    def last_run(self) -> int:
        """The number of the newest run; 0 before the first."""
        return max((e.run or 0 for e in self._of(OPEN)), default=0)

    @property
    def last_batch(self) -> int:
        """The newest batch that is done, or was skipped; -1 before the first."""
        return max((e.batch for e in self._of(DONE, SKIP) if e.batch is not None), default=-1)

    @property
    def open_batch(self) -> int | None:
        """The batch that was begun and not finished."""
        begun = max((e.batch for e in self._of(INTENT) if e.batch is not None), default=-1)
        return begun if begun > self.last_batch else None

    @property
    def is_open(self) -> bool:
        """Whether something that was begun is not finished."""
        maintenance = self._left(MAINTAIN_INTENT, MAINTAIN_DONE, *FINISHED)
        left = (
            self.open_run,
            self.open_backfill,
            self.open_evolution,
            self.open_erasure,
            maintenance,
        )
        return any(entry is not None for entry in left)

    @property
    def query(self) -> str | None:
        """The id of the stream, as far as it is known."""
        return next((e.note for e in reversed(self._of(INTENT, SKIP)) if e.note), None)

    @property
    def versions(self) -> Mapping[str, int]:
        """By table the newest version that the ledger has seen."""
        return next(
            (e.versions for e in reversed(self._of(DONE, *FINISHED, MAINTAIN_DONE)) if e.versions),
            {},
        )

    @property
    def next_version(self) -> int | None:
        """The first version of the source that no finished batch has read; None before the first."""
        offset = self._offset
        return None if offset is None else int(offset["reservoirVersion"])

    @property
    def read_version(self) -> int | None:
        """The version of the source that was read last; None before the first finished batch."""
        offset = self._offset
        if offset is None:
            return None
        begun = int(offset["index"]) >= 0 or bool(offset["isStartingVersion"])
        return int(offset["reservoirVersion"]) - (not begun)

    @property
    def _offset(self) -> Mapping[str, Any] | None:
        """Where the stream stood at the end of the last finished batch, as Delta says it."""
        text = self.offsets(self.last_batch)
        found: Mapping[str, Any] | None = None if text is None else loads(text.splitlines()[-1])
        return found

    def offsets(self, batch: int) -> str | None:
        """Where the stream stood at the end of `batch`."""
        return next((e.offsets for e in reversed(self._of(INTENT, SKIP)) if e.batch == batch), None)

    def intent(self, batch: int) -> Entry | None:
        """What was intended for `batch`, if it was begun."""
        return next((e for e in reversed(self._of(INTENT)) if e.batch == batch), None)

    def done(self, run: int) -> tuple[Entry, ...]:
        """The finished batches of `run`, each once."""
        return tuple({e.batch: e for e in self._of(DONE) if e.run == run}.values())

    @property
    def any_done(self) -> bool:
        """Whether any batch was ever finished."""
        return bool(self._of(DONE))

    @property
    def open_backfill(self) -> Entry | None:
        """A chunk of a backfill that was begun and not finished."""
        return self._left(BACKFILL_INTENT, BACKFILL_DONE)

    @property
    def open_evolution(self) -> Entry | None:
        """A change of the spec that was begun and not finished."""
        return self._left(EVOLVE_INTENT, EVOLVE_DONE)

    @property
    def open_erasure(self) -> Entry | None:
        """An erasure that was begun and not finished."""
        return self._left(ERASE_INTENT, ERASE_DONE)

    @property
    def worn(self) -> bool:
        """Whether panes may be gone, by this spec or an earlier one."""
        return any(
            name == KEPT_STATE or name.startswith("_panes_")
            for e in self._of(MAINTAIN_INTENT, MAINTAIN_DONE)
            for name in e.counts
        )

    @property
    def made_by(self) -> Entry | None:
        """The newest entry whose note says by which spec state was made."""
        return next((e for e in reversed(self._of(OPEN, EVOLVE_INTENT)) if e.note), None)

    @property
    def source(self) -> Entry | None:
        """The newest entry that names the source table."""
        return next((e for e in reversed(self.entries) if e.source_id), None)

    @property
    def closed(self) -> Entry | None:
        """The newest `close` entry."""
        return next(iter(reversed(self._of(CLOSE))), None)

    @property
    def published(self) -> Entry | None:
        """The newest `publish` entry."""
        return next(iter(reversed(self._of(PUBLISH))), None)

    @property
    def newest(self) -> Entry | None:
        """The newest entry that names output versions: a closed run, a backfilled chunk or a changed spec."""
        return next((e for e in reversed(self.entries) if e.step in FINISHED), None)

    @property
    def settled(self) -> "Story":
        """The story without a run that was left open: what the newest finished versions hold."""
        left = self.open_run
        return (
            self
            if left is None
            else Story(tuple(e for e in self.entries if e.run != left.run or e.seq < left.seq))
        )

    def until_run(self, run: int) -> "Story":
        """The story up to the end of `run`, which is closed."""
        closed = next(e for e in reversed(self._of(CLOSE)) if e.run == run)
        return Story(tuple(e for e in self.entries if e.seq <= closed.seq))

    def watermark_of(self, run: int | None) -> int | None:
        """W at the end of `run`."""
        return next((e.watermark_out for e in reversed(self._of(CLOSE)) if e.run == run), None)

    def touched_since(self, seq: int, low_us: int, high_us: int) -> bool:
        """Whether from step `seq` on a batch accepted times that may lie in [low, high), or more than batches changed the tables."""
        later = [e for e in self.entries if e.seq >= seq]
        times = [
            (e.counts[MIN_TIME], e.counts[MAX_TIME])
            for e in later
            if e.step == DONE and MIN_TIME in e.counts
        ]
        rewritten = any(e.step in FINISHED and e.step != CLOSE for e in later)
        return rewritten or any(first < high_us and last >= low_us for first, last in times)

    def total(self, name: str) -> int:
        """The sum of one count over every finished batch, backfill, change of the spec and erasure."""
        batches = {(e.generation, e.batch): e for e in self._of(DONE)}.values()
        return sum(
            e.counts.get(name, 0)
            for e in [*batches, *self._of(BACKFILL_DONE, EVOLVE_DONE, ERASE_DONE)]
        )

    def _left(self, intent: str, *ends: str) -> Entry | None:
        begun, ended = self._of(intent), self._of(*ends)
        return begun[-1] if begun and (not ended or ended[-1].seq < begun[-1].seq) else None

    def _of(self, *steps: str) -> tuple[Entry, ...]:
        return tuple(e for e in self.entries if e.step in steps)


def summed(entries: Iterable[Entry]) -> dict[str, int]:
    """The counts of several batches together."""
    return total(entry.counts for entry in entries)


def total(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Several counts added up by name."""
    out: dict[str, int] = {}
    for some in counts:
        for name, n in some.items():
            out[name] = out.get(name, 0) + n
    return out
