"""The ledger as values: what was done and what that means for the next run. No Spark.

open -> (intent -> done)* -> close    one run, numbered from 1, over batches numbered from 0
backfill_intent -> backfill_done      one chunk of a backfill
evolve_intent -> evolve_done          state and outputs were rebuilt for a new spec or an erasure
erase_intent -> erase_done            a key or a value was erased, and its rows stay out
erase_list                            what stays out has changed, and no row with it
maintain_intent -> maintain_done      state was compacted, files too; no number has changed
period_intent -> period_closed        rows of outputs that end until an instant are frozen
period_intent -> period_reopened      and released again
skip                                  a batch of the stream had no row
publish                               versions that readers may see
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from windowing.grid.range import Range
from windowing.ledger.acceptance import Acceptance, parse_note
from windowing.ledger.erased import Erasures, find_erasures
from windowing.ledger.period import Period, read_period
from windowing.storage.stream_offsets import read_next_version, read_version_at

OPEN, INTENT, DONE, CLOSE = "open", "intent", "done", "close"
PUBLISH, SKIP = "publish", "skip"
BACKFILL_INTENT, BACKFILL_DONE = "backfill_intent", "backfill_done"
EVOLVE_INTENT, EVOLVE_DONE = "evolve_intent", "evolve_done"
MAINTAIN_INTENT, MAINTAIN_DONE = "maintain_intent", "maintain_done"
ERASE_INTENT, ERASE_DONE, ERASE_LIST = "erase_intent", "erase_done", "erase_list"
PERIOD_INTENT, PERIOD_CLOSED = "period_intent", "period_closed"
PERIOD_REOPENED = "period_reopened"
FINISHED = (CLOSE, BACKFILL_DONE, EVOLVE_DONE, ERASE_DONE, PERIOD_REOPENED)
"""Steps after which the tables are consistent; their entries name the tables' versions."""
GENERATION = 1
"""Part of every transaction id and state row, so that a reset pipeline never meets its own past."""
MIN_TIME, MAX_TIME = "min_event_time", "max_event_time"
"""Among the counts: a batch's first and last accepted event time, in microseconds."""
KEPT_STATE, KEPT_OUTPUT = "kept_state", "kept_output"
"""Among the counts: how long a maintenance keeps panes, or rows of outputs, if not forever.

In microseconds.
"""
ROW_BY_ROW = "row_by_row"
"""The count of batches of a large run whose rows Spark has passed on one by one, which is slow."""
RUN_OF = "run."
"""How the counts of a publication begin that name the run of an output that was held back."""
RECENT_RUNS = 20
"""Of how many runs that read rows it is asked what is usual."""
COUNTS = ("read", "accepted", "late", "duplicate", "quarantined", "erased")


@dataclass(frozen=True)
class LedgerEntry:
    """One step. Times are microseconds since 1970; `watermark_*` None means minus infinity."""

    step: str
    seq: int = -1
    generation: int = GENERATION
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
class LedgerExcerpt:
    """The entries of the ledger that a run needs, oldest first, and what they mean.

    Everything that is asked here has the same answer as by the whole ledger, also after later
    entries were appended. `version` is that of the table; -1 where there is none. `files` is in how
    many files of it the entries were read.
    """

    entries: tuple[LedgerEntry, ...] = ()
    version: int = field(default=-1, compare=False)
    files: int = field(default=0, compare=False)

    @property
    def next_seq(self) -> int:
        """The number of the next entry."""
        return self.entries[-1].seq + 1 if self.entries else 0

    @property
    def watermark(self) -> int | None:
        """W of the last closed run."""
        closed = self._entries_of(CLOSE)
        return closed[-1].watermark_out if closed else None

    @property
    def last_arrival(self) -> int | None:
        """The highest arrival of any live batch so far."""
        entries = self._entries_of(OPEN, INTENT, CLOSE)
        arrivals = [entry.arrival for entry in entries if entry.arrival is not None]
        return max(arrivals, default=None)

    @property
    def quiet_since(self) -> tuple[int, int] | None:
        """Arrival of the last run that accepted a row, and the highest event time accepted so far.

        Each event time is taken as at most its run's arrival, which is that of the run's last
        batch. None before a row was accepted.
        """
        arrivals: dict[int | None, int] = {}
        event_times: dict[int | None, int] = {}
        for entry in self._entries_of(DONE):
            if MAX_TIME in entry.counts and entry.arrival is not None:
                before = arrivals.get(entry.run, entry.arrival)
                arrivals[entry.run] = max(before, entry.arrival)
                latest = entry.counts[MAX_TIME]
                event_times[entry.run] = max(event_times.get(entry.run, latest), latest)
        if not arrivals:
            return None
        reached = max(min(arrivals[run], latest) for run, latest in event_times.items())
        return max(arrivals.values()), reached

    @property
    def open_run(self) -> LedgerEntry | None:
        """The `open` entry of a run that was not closed."""
        return self._find_unfinished(OPEN, CLOSE)

    @property
    def last_run(self) -> int:
        """The number of the newest run; 0 before the first."""
        runs = [entry.run or 0 for entry in self._entries_of(OPEN)]
        return max(runs, default=0)

    @property
    def last_batch(self) -> int:
        """The newest batch that is done, or was skipped; -1 before the first."""
        finished = self._entries_of(DONE, SKIP)
        batches = [entry.batch for entry in finished if entry.batch is not None]
        return max(batches, default=-1)

    @property
    def recent_reads(self) -> tuple[int, ...]:
        """How many rows each of the last closed runs that read any has read, oldest first."""
        reads = [entry.counts.get("read", 0) for entry in self._entries_of(CLOSE)]
        return tuple(rows for rows in reads if rows)[-RECENT_RUNS:]

    @property
    def open_batch(self) -> int | None:
        """The batch that was begun and not finished."""
        intents = self._entries_of(INTENT)
        batches = [entry.batch for entry in intents if entry.batch is not None]
        last_begun = max(batches, default=-1)
        return last_begun if last_begun > self.last_batch else None

    @property
    def is_open(self) -> bool:
        """Whether something that was begun is not finished."""
        unfinished = (
            self.open_run,
            self.open_backfill,
            self.open_evolution,
            self.open_erasure,
            self.open_period,
            self.open_maintenance,
        )
        return any(entry is not None for entry in unfinished)

    @property
    def versions(self) -> Mapping[str, int]:
        """By table the newest version that the ledger has recorded."""
        entries = reversed(self._entries_of(DONE, *FINISHED, MAINTAIN_DONE, PERIOD_CLOSED))
        return next((e.versions for e in entries if e.versions), {})

    @property
    def recorded_tables(self) -> frozenset[str]:
        """Every table that the ledger has ever recorded a version of."""
        return frozenset(name for entry in self.entries for name in entry.versions)

    @property
    def makers(self) -> frozenset[str]:
        """The different notes that name a spec which state was made by, the newest one included."""
        makers = self._entries_of(OPEN, EVOLVE_INTENT)
        return frozenset(entry.note for entry in makers if entry.note)

    @property
    def next_version(self) -> int | None:
        """The source version that the next batch begins with; None before the first one."""
        text = self.offsets(self.last_batch)
        return None if text is None else read_next_version(text)

    @property
    def read_version(self) -> int | None:
        """The version of the source that was read last; None before the first finished batch."""
        text = self.offsets(self.last_batch)
        return None if text is None else read_version_at(text)

    def offsets(self, batch: int) -> str | None:
        """Where the stream stood at the end of `batch`."""
        entries = reversed(self._entries_of(INTENT, SKIP))
        return next((e.offsets for e in entries if e.batch == batch), None)

    def intent(self, batch: int) -> LedgerEntry | None:
        """The intent of `batch`, if it was begun."""
        entries = reversed(self._entries_of(INTENT))
        return next((e for e in entries if e.batch == batch), None)

    def done(self, run: int) -> tuple[LedgerEntry, ...]:
        """The finished batches of `run`, each once."""
        by_batch = {e.batch: e for e in self._entries_of(DONE) if e.run == run}
        return tuple(by_batch.values())

    @property
    def any_done(self) -> bool:
        """Whether any batch was ever finished."""
        return bool(self._entries_of(DONE))

    @property
    def open_backfill(self) -> LedgerEntry | None:
        """A chunk of a backfill that was begun and not finished."""
        return self._find_unfinished(BACKFILL_INTENT, BACKFILL_DONE)

    @property
    def open_evolution(self) -> LedgerEntry | None:
        """A change of the spec that was begun and not finished."""
        return self._find_unfinished(EVOLVE_INTENT, EVOLVE_DONE)

    @property
    def open_erasure(self) -> LedgerEntry | None:
        """An erasure that was begun and not finished."""
        return self._find_unfinished(ERASE_INTENT, ERASE_DONE)

    @property
    def open_erasures(self) -> tuple[LedgerEntry, ...]:
        """Every erasure that was begun since the last one was finished."""
        since = max((entry.seq for entry in self._entries_of(ERASE_DONE)), default=-1)
        return tuple(entry for entry in self._entries_of(ERASE_INTENT) if entry.seq > since)

    @property
    def open_maintenance(self) -> LedgerEntry | None:
        """A maintenance that was begun, since which no step has finished."""
        return self._find_unfinished(MAINTAIN_INTENT, MAINTAIN_DONE, *FINISHED)

    @property
    def open_period(self) -> LedgerEntry | None:
        """A period that was begun to be closed or reopened, and is not yet."""
        return self._find_unfinished(PERIOD_INTENT, PERIOD_CLOSED, PERIOD_REOPENED)

    @property
    def period(self) -> Period | None:
        """The period that is closed; None where none is, or where it was reopened.

        Its digests are those after the newest erasure.
        """
        changed = _newest_of(self._entries_of(PERIOD_CLOSED, PERIOD_REOPENED))
        if changed is None or changed.step == PERIOD_REOPENED:
            return None
        later = [e for e in self._entries_of(ERASE_DONE) if e.seq > changed.seq and e.note]
        return read_period((later[-1] if later else changed).note)

    @property
    def erasures(self) -> Erasures:
        """The keys and values whose rows are kept out."""
        return find_erasures(entry.note for entry in self._entries_of(ERASE_INTENT, ERASE_LIST))

    @property
    def state_may_be_expired(self) -> bool:
        """Whether panes may have expired, by this spec or an earlier one."""
        for entry in self._entries_of(MAINTAIN_INTENT, MAINTAIN_DONE):
            for name in entry.counts:
                if name == KEPT_STATE or name.startswith("_panes_"):
                    return True
        return False

    def rows_may_be_expired(self, window: str) -> bool:
        """Whether rows of that output may have expired, by this spec or an earlier one."""
        for entry in self._entries_of(MAINTAIN_INTENT, MAINTAIN_DONE):
            if KEPT_OUTPUT in entry.counts or window in entry.counts:
                return True
        return False

    @property
    def was_erased_from(self) -> bool:
        """Whether an erasure was ever begun."""
        return bool(self._entries_of(ERASE_INTENT, ERASE_DONE))

    @property
    def made_by(self) -> LedgerEntry | None:
        """The newest entry whose note names the spec that state was made by."""
        entries = reversed(self._entries_of(OPEN, EVOLVE_INTENT))
        return next((e for e in entries if e.note), None)

    @property
    def source(self) -> LedgerEntry | None:
        """The newest entry that names the source table."""
        return next((e for e in reversed(self.entries) if e.source_id), None)

    @property
    def closed(self) -> LedgerEntry | None:
        """The newest `close` entry."""
        return _newest_of(self._entries_of(CLOSE))

    @property
    def published(self) -> LedgerEntry | None:
        """The newest `publish` entry."""
        return _newest_of(self._entries_of(PUBLISH))

    def run_shown(self, output: str) -> int | None:
        """The run whose version of an output readers see, which is older where it is held back."""
        published = self.published
        if published is None or output not in published.versions:
            return None
        return published.counts.get(f"{RUN_OF}{output}", published.run)

    @property
    def acceptance(self) -> Acceptance | None:
        """What readers use although it failed its expectations; None where all has passed."""
        return None if self.published is None else parse_note(self.published.note)

    @property
    def is_published(self) -> bool:
        """Whether readers use what the newest finished step has left."""
        return self.newest is not None and self.shows(self.newest)

    def shows(self, entry: LedgerEntry) -> bool:
        """Whether readers use what `entry` names: rows by its versions, what is closed by its run.

        It is false before anything was published, and while an output of it is held back.
        """
        seen = self.published
        if seen is None or any(name.startswith(RUN_OF) for name in seen.counts):
            return False
        return (seen.versions, seen.run) == (entry.versions, entry.run)

    @property
    def newest(self) -> LedgerEntry | None:
        """The newest entry that names output versions, such as that of a closed run."""
        return _newest_of(self._entries_of(*FINISHED))

    def _find_unfinished(self, intent: str, *ends: str) -> LedgerEntry | None:
        """The newest entry of the step `intent`, if none of the steps `ends` follows it."""
        begun = self._entries_of(intent)
        ended = self._entries_of(*ends)
        if not begun:
            return None
        is_finished = bool(ended) and ended[-1].seq >= begun[-1].seq
        return None if is_finished else begun[-1]

    def _entries_of(self, *steps: str) -> tuple[LedgerEntry, ...]:
        return tuple(entry for entry in self.entries if entry.step in steps)


def _newest_of(entries: tuple[LedgerEntry, ...]) -> LedgerEntry | None:
    return entries[-1] if entries else None


def find_times(entries: Iterable[LedgerEntry]) -> Range | None:
    """The first and the last event time that batches have accepted; None where none has any."""
    batches = [entry.counts for entry in entries if MIN_TIME in entry.counts]
    if not batches:
        return None
    return Range(min(each[MIN_TIME] for each in batches), max(each[MAX_TIME] for each in batches))
