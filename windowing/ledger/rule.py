"""The ledger as values: what was done and what that means for the next run. No Spark.

    open -> (intent -> done)* -> close    one run, numbered from 1, over batches numbered from 0
    backfill_intent -> backfill_done      one chunk of a backfill
    publish                               versions that readers may see
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

OPEN, INTENT, DONE, CLOSE = "open", "intent", "done", "close"
BACKFILL_INTENT, BACKFILL_DONE, PUBLISH = "backfill_intent", "backfill_done", "publish"
GENERATION = 1
"""Part of every transaction id and state row, so that a pipeline that starts over never meets its own past."""
MIN_TIME, MAX_TIME = "min_event_time", "max_event_time"
"""Among the counts of a batch: its first and its last accepted event time, microseconds."""
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
        return max((e.arrival for e in self._of(OPEN, INTENT, CLOSE) if e.arrival is not None), default=None)

    @property
    def quiet_since(self) -> tuple[int, int] | None:
        """Arrival of the last run that accepted a row, and the highest event time accepted so far, each at most its run's arrival."""
        heard = [(e.arrival, e.counts[MAX_TIME]) for e in self._of(DONE) if MAX_TIME in e.counts and e.arrival is not None]
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

    def intent(self, batch: int) -> Entry | None:
        """What was intended for `batch`, if it was begun."""
        return next((e for e in reversed(self._of(INTENT)) if e.batch == batch), None)

    def done(self, run: int) -> tuple[Entry, ...]:
        """The finished batches of `run`, each once."""
        return tuple({e.batch: e for e in self._of(DONE) if e.run == run}.values())

    def done_before(self, batch: int, run: int) -> bool:
        """Whether another run than `run` finished `batch`."""
        return any(e.batch == batch and e.run != run for e in self._of(DONE))

    @property
    def any_done(self) -> bool:
        """Whether any batch was ever finished."""
        return bool(self._of(DONE))

    @property
    def open_backfill(self) -> Entry | None:
        """A chunk of a backfill that was begun and not finished."""
        begun, ended = self._of(BACKFILL_INTENT), self._of(BACKFILL_DONE)
        return begun[-1] if begun and (not ended or ended[-1].seq < begun[-1].seq) else None

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
        """The newest entry that names output versions: a closed run or a backfilled chunk."""
        return next((e for e in reversed(self.entries) if e.step in (CLOSE, BACKFILL_DONE)), None)

    @property
    def settled(self) -> "Story":
        """The story without a run that was left open: what the newest finished versions hold."""
        left = self.open_run
        return self if left is None else Story(tuple(e for e in self.entries if e.run != left.run or e.seq < left.seq))

    def until_run(self, run: int) -> "Story":
        """The story up to the end of `run`, which is closed."""
        closed = next(e for e in reversed(self._of(CLOSE)) if e.run == run)
        return Story(tuple(e for e in self.entries if e.seq <= closed.seq))

    def watermark_of(self, run: int | None) -> int | None:
        """W at the end of `run`."""
        return next((e.watermark_out for e in reversed(self._of(CLOSE)) if e.run == run), None)

    def total(self, name: str) -> int:
        """The sum of one count over every finished batch and backfill."""
        batches = {(e.generation, e.batch): e for e in self._of(DONE)}.values()
        return sum(e.counts.get(name, 0) for e in [*batches, *self._of(BACKFILL_DONE)])

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
