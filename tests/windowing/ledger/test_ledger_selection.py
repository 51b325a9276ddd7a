"""What a run needs of the ledger: the same answers as by all entries, from a few of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from json import dumps
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowing.ledger.erased import Erasure, note_erased, note_lifted
from windowing.ledger.history import LedgerHistory
from windowing.ledger.period import Frozen, Period, Reopening
from windowing.ledger.rule import (
    BACKFILL_DONE,
    BACKFILL_INTENT,
    CLOSE,
    DONE,
    ERASE_DONE,
    ERASE_INTENT,
    ERASE_LIST,
    EVOLVE_DONE,
    EVOLVE_INTENT,
    INTENT,
    KEPT_STATE,
    MAINTAIN_DONE,
    MAINTAIN_INTENT,
    MAX_TIME,
    MIN_TIME,
    OPEN,
    PERIOD_CLOSED,
    PERIOD_INTENT,
    PERIOD_REOPENED,
    PUBLISH,
    SKIP,
    LedgerEntry,
    LedgerExcerpt,
)
from windowing.ledger.selection import select_entries
from windowing.ledger.table import _LEDGER_SCHEMA, _to_entries, _to_row
from windowing.source.rule import (
    ends_with_rewrite,
    pending_changes,
    unsettled_ranges,
    was_rewritten,
)

OF_A_FILE = pa.schema(
    pa.field(each.name, pa.int64() if pa.types.is_timestamp(each.type) else each.type)
    for each in _LEDGER_SCHEMA
)
"""The columns of a file as `read_contents` gives them."""
PROPERTIES = [name for name, value in vars(LedgerExcerpt).items() if isinstance(value, property)]


def selected(entries: tuple[LedgerEntry, ...], cuts: tuple[int, ...] = ()) -> LedgerExcerpt:
    """The excerpt of a ledger whose files end at `cuts`."""
    bounds = [0, *sorted(cuts), len(entries)]
    files = []
    for low, high in zip(bounds, bounds[1:], strict=False):
        rows = [_to_row(entry) for entry in entries[low:high]]
        files.append(pa.Table.from_pylist(rows, schema=OF_A_FILE))
    return LedgerExcerpt(_to_entries(select_entries(files)))


def answers(past: LedgerExcerpt) -> dict[str, Any]:
    """The answer to each question that a run may ask."""
    found: dict[str, Any] = {name: getattr(past, name) for name in PROPERTIES}
    for batch in (past.last_batch, past.open_batch):
        found[f"offsets of {batch}"] = None if batch is None else past.offsets(batch)
        found[f"intent of {batch}"] = None if batch is None else past.intent(batch)
    number = past.open_run.run if past.open_run else past.last_run + 1
    found["done"] = past.done(number or 0)
    found["pending"] = list(pending_changes(past))
    found["unsettled"] = sorted(unsettled_ranges(past))
    found["ends with rewrite"] = ends_with_rewrite(past)
    found["was rewritten"] = was_rewritten(past)
    return found


@dataclass
class Writer:
    """Writes a ledger as the commands do, by the numbers that it draws."""

    draw: Random
    entries: list[LedgerEntry] = field(default_factory=list)
    run: int = 0
    batch: int = -1
    is_open: bool = False

    def add(self, step: str, **more: Any) -> None:
        """One more entry; most of its values are drawn from few."""
        entry = LedgerEntry(
            step, seq=len(self.entries), run=self.run, arrival=self.draw.randrange(20)
        )
        self.entries.append(replace(entry, **more))

    def versions(self) -> dict[str, int]:
        """The versions of some tables."""
        names = self.draw.sample(["hourly", "daily", "_late", "_seen"], self.draw.randrange(4))
        return dict.fromkeys(names, self.draw.randrange(9))

    def read(self, until: int) -> None:
        """A run of up to three batches, which is killed after `until` entries."""
        for n, entry in enumerate(self.steps_of_run()):
            if n == until:
                return
            step, more = entry
            self.add(step, **more)

    def steps_of_run(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Its entries; it is finished under its own number where it was killed before."""
        if not self.is_open:
            self.run += 1
            self.is_open = True
            note = self.draw.choice(["maker a", "maker b", None])
            yield OPEN, {"note": note, "source_id": self.draw.choice(["s", "t", None])}
        begun = [e for e in self.entries if e.step == INTENT and e.batch == self.batch + 1]
        for _ in range(self.draw.randrange(4)):
            number = self.batch + 1
            offsets = {"reservoirVersion": number, "index": -1, "isStartingVersion": False}
            query = self.draw.choice(["query", None])
            position = {"batch": number, "offsets": dumps(offsets), "note": query}
            if not begun and self.draw.random() < 0.2:
                self.batch = number
                yield SKIP, {**position, "run": None}
                continue
            if not begun:
                yield INTENT, position
            begun = []
            for _ in range(self.draw.choice([1, 1, 1, 2])):
                done = {"counts": self.counts(), "note": self.ranges(), "batch": number}
                yield DONE, {**done, "versions": self.versions()}
            self.batch = number
        self.is_open = False
        counts = {"read": self.draw.randrange(4)} if self.draw.random() < 0.9 else {}
        closed = {"watermark_out": self.draw.randrange(9), "counts": counts}
        yield CLOSE, {**closed, "versions": self.versions()}

    def counts(self) -> dict[str, int]:
        """The counts of a batch; some have accepted nothing."""
        if self.draw.random() < 0.3:
            return {"accepted": 0}
        low = self.draw.randrange(9)
        return {"accepted": 1, MIN_TIME: low, MAX_TIME: low + self.draw.randrange(20)}

    def ranges(self) -> str | None:
        """Changes of the source, which few batches meet."""
        if self.draw.random() < 0.8:
            return None
        lows = self.draw.sample(range(9), self.draw.randrange(1, 3))
        note = {"ranges": [[low, low + 1] for low in lows]}
        if self.draw.random() < 0.5:
            low = self.draw.randrange(9)
            note["left_out"] = [[low, low + self.draw.randrange(1, 4)]]
        return dumps(note)

    def reprocess(self) -> None:
        """The backfill of a range that the source has changed, or of another one."""
        pending = list(pending_changes(LedgerHistory(tuple(self.entries))))
        low = self.draw.randrange(9)
        asked = (None, low, low + self.draw.randrange(1, 4))
        batch, low, high = pending[0] if pending and self.draw.random() < 0.7 else asked
        note = dumps({"from_us": low, "to_us": high, "version": 1, "batch": batch})
        self.around(BACKFILL_INTENT, BACKFILL_DONE, note=note)

    def around(self, intent: str, done: str, **more: Any) -> None:
        """A step, which may be killed after its intent."""
        self.add(intent, **more)
        if self.draw.random() < 0.8:
            self.add(done, versions=self.versions(), **more)

    def erase(self) -> None:
        """An erasure; earlier releases noted no key."""
        erased = self.draw.choice([None, *map(Erasure, "abc"), Erasure("a", "customer")])
        self.add(ERASE_INTENT, note=erased and note_erased("salt", erased))
        period = LedgerExcerpt(tuple(self.entries)).period
        note = period and replace(period, frozen={}).as_note()
        if self.draw.random() < 0.8:
            self.add(ERASE_DONE, versions=self.versions(), note=note)

    def close(self) -> None:
        """A period is closed or reopened."""
        closing = [Period(until, "invoiced") for until in (5, 9)]
        steps: list[Period | Reopening] = [Reopening("a bill was wrong"), *closing]
        step = self.draw.choice(steps)
        self.add(PERIOD_INTENT, note=step.as_note())
        if self.draw.random() < 0.8:
            name = PERIOD_REOPENED
            if isinstance(step, Period):
                name = PERIOD_CLOSED
                step = replace(step, frozen={"hourly": Frozen(self.draw.randrange(9), "ab")})
            self.add(name, versions=self.versions(), note=step.as_note())

    def maintain(self) -> None:
        """A maintenance; some of them expire rows."""
        kept = self.draw.choice([{}, {KEPT_STATE: 5}, {"_panes_60": 1}, {"_late": 1}])
        self.around(MAINTAIN_INTENT, MAINTAIN_DONE, counts=kept)


def write_ledger(seed: int, acts: int) -> tuple[LedgerEntry, ...]:
    """What the commands of `acts` drawn steps leave."""
    writer = Writer(Random(seed))
    steps: list[Callable[[], None]] = [
        lambda: writer.read(until=99),
        lambda: writer.read(until=99),
        lambda: writer.read(until=writer.draw.randrange(1, 9)),
        writer.reprocess,
        writer.maintain,
        writer.close,
        writer.close,
        lambda: writer.around(EVOLVE_INTENT, EVOLVE_DONE, note=writer.draw.choice(["c", "d"])),
        writer.erase,
        writer.erase,
        lambda: writer.add(
            ERASE_LIST, note=note_lifted("salt", Erasure(writer.draw.choice("abc")))
        ),
        lambda: writer.add(PUBLISH, versions=writer.versions(), note='{"accepted": "a storm"}'),
    ]
    for _ in range(acts):
        writer.draw.choice(steps)()
    return tuple(writer.entries)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9), st.integers(0, 30), st.lists(st.floats(0, 1), max_size=3), st.data())
def test_a_selection_answers_as_the_whole_ledger_does(
    seed: int, acts: int, cuts: list[float], data: st.DataObject
) -> None:
    """Also after later entries were appended to it."""
    entries = write_ledger(seed, acts)
    until = data.draw(st.integers(0, len(entries)))
    read, appended = entries[:until], entries[until:]
    places = tuple(int(cut * until) for cut in cuts)
    excerpt = selected(read, places)
    assert answers(excerpt) == answers(LedgerHistory(read))
    grown = LedgerExcerpt((*excerpt.entries, *appended))
    assert answers(grown) == answers(LedgerHistory(entries))


def test_the_rows_of_the_last_twenty_runs_that_read_any_are_known() -> None:
    entries = []
    for run in range(1, 61):
        read = 0 if run % 3 == 0 else run
        entries.append(LedgerEntry(CLOSE, seq=run, run=run, counts={"read": read}))
    # From 31 to 59, without each third.
    last_twenty = tuple(run for run in range(31, 60) if run % 3)
    assert len(last_twenty) == 20
    assert selected(tuple(entries), (7, 40)).recent_reads == last_twenty
    assert selected(()).recent_reads == ()


def closed_runs(runs: int, **of_done: Any) -> tuple[LedgerEntry, ...]:
    """A ledger of that many runs, of one batch each."""
    found: list[LedgerEntry] = []
    for run in range(1, runs + 1):
        for step in (OPEN, INTENT, DONE, CLOSE):
            entry = LedgerEntry(step, seq=len(found), run=run, batch=run - 1, arrival=run)
            found.append(replace(entry, **of_done) if step == DONE else entry)
    return tuple(found)


def with_changes(*changed: int) -> tuple[LedgerEntry, ...]:
    """Nine runs; after each of those named, the source's changes were reprocessed."""
    found: list[LedgerEntry] = []
    for entry in closed_runs(9):
        is_changed = entry.run in changed
        is_noted = is_changed and entry.step == DONE
        found.append(replace(entry, note=dumps({"ranges": [[1, 2]]})) if is_noted else entry)
        if is_changed and entry.step == CLOSE:
            note = dumps({"from_us": 1, "to_us": 2, "version": 1, "batch": entry.batch})
            found.append(LedgerEntry(BACKFILL_DONE, note=note))
    return tuple(replace(entry, seq=n) for n, entry in enumerate(found))


@pytest.mark.parametrize("changed", [(2,), (8, 9), (2, 3, 4)], ids=str)
def test_changes_of_the_source_stay_reprocessed(changed: tuple[int, ...]) -> None:
    entries = with_changes(*changed)
    assert answers(selected(entries)) == answers(LedgerHistory(entries))
    assert was_rewritten(selected(entries))
    assert not list(pending_changes(selected(entries)))


@pytest.mark.parametrize("of_done", [{}, {"counts": {MAX_TIME: 5}, "versions": {"hourly": 3}}])
def test_as_much_is_selected_of_2000_runs_as_of_20(of_done: dict[str, Any]) -> None:
    few, many = (len(selected(closed_runs(runs, **of_done)).entries) for runs in (20, 2_000))
    assert many == few < 20


def test_what_was_left_out_stays_settled() -> None:
    """A batch left a range out, two backfills have covered it since, and another run followed."""
    steps = list(closed_runs(2)[:4])
    steps[2] = replace(steps[2], note=dumps({"ranges": [], "left_out": [[1, 3]], "rows": 1}))
    for low in (1, 2, 7):
        note = dumps({"from_us": low, "to_us": low + 1, "version": 1, "batch": None})
        steps.append(LedgerEntry(BACKFILL_DONE, note=note))
    steps += closed_runs(2)[4:]
    entries = tuple(replace(entry, seq=n) for n, entry in enumerate(steps))
    assert unsettled_ranges(LedgerHistory(entries)) == []
    assert unsettled_ranges(selected(entries)) == []
    assert unsettled_ranges(selected(entries[:5])) == [(2, 3)]
