"""Changes of the source that are corrected by backfills. No Spark.

It has the change feed's columns, how many changes become few ranges of event time, and which
ranges are not reprocessed yet.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from json import loads
from typing import Any

from windowing.grid.range import Range, subtract_ranges
from windowing.ledger.rule import BACKFILL_DONE, DONE, LedgerEntry, LedgerExcerpt

CHANGE = "_change_type"
FEED = (CHANGE, "_commit_version", "_commit_timestamp")
"""The columns that Delta's change feed adds to those of the table."""
MOST = 4
"""How many ranges one batch may have reprocessed, because each is a backfill of its own."""
CLOCK_SKEW_US = 3_600_000_000
"""How far the clock of a writer of the source may be ahead of ours."""
NEAR_US = 86_400_000_000
"""How far apart two ranges have to be not to become one."""


def merge_ranges(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """At most `MOST` ranges that contain all of `ranges`, in order and more than a day apart.

    Where there are more, the nearest neighbours are joined first.
    """
    found: list[Range] = []
    for times in sorted(ranges, key=lambda times: times.low_us):
        if found and times.low_us <= found[-1].high_us + NEAR_US:
            found[-1] = found[-1].cover(times)
        else:
            found.append(times)

    def distance_after(n: int) -> int:
        return found[n + 1].low_us - found[n].high_us

    while len(found) > MOST:
        n = min(range(len(found) - 1), key=distance_after)
        found[n : n + 2] = [found[n].cover(found[n + 1])]
    return tuple(found)


@dataclass(frozen=True)
class Followed:
    """What a run did about commits that removed rows of the source.

    So many `rows` were touched by them. The `ranges` are reprocessed; those `left_out` are not.
    """

    rows: int
    ranges: tuple[Range, ...]
    left_out: tuple[Range, ...]


def find_followed(past: LedgerExcerpt, batches: Collection[int]) -> Followed | None:
    """What the `batches` noted of such commits; None where no row differed."""
    by_batch = {entry.batch: _read_note(entry) for entry in past.entries if entry.step == DONE}
    noted = [by_batch[batch] for batch in sorted(batches) if batch in by_batch]
    found = [note for note in noted if "left_out" in note]
    rows = sum(note["rows"] for note in found)
    if not rows:
        return None
    return Followed(
        rows,
        tuple(Range(low, high - 1) for note in found for low, high in note["ranges"]),
        tuple(Range(low, high - 1) for note in found for low, high in note["left_out"]),
    )


def ends_with_rewrite(past: LedgerExcerpt) -> bool:
    """Whether the last batch passed over commits that removed rows."""
    last = [entry for entry in past.entries if entry.step == DONE]
    return bool(last) and last[-1].batch == past.last_batch and "left_out" in _read_note(last[-1])


def ends_with_changes(done: LedgerEntry) -> bool:
    """Whether a batch found that the source had changed rows.

    It ends with a whole version, also where the stream names a place inside of one: a change feed
    is read to the end of a commit, and elsewhere whole versions were compared.
    """
    return "ranges" in _read_note(done)


def pending_changes(past: LedgerExcerpt) -> Iterator[tuple[int, int, int]]:
    """(batch, from, to) of every range that no backfill has reprocessed since, oldest first."""
    noted: dict[int, Any] = {}
    done = set()
    for entry in past.entries:
        if entry.step == DONE and entry.batch is not None:
            noted[entry.batch] = _read_note(entry).get("ranges", ())
        if entry.step == BACKFILL_DONE:
            note = _read_note(entry)
            done.add((note.get("batch"), note.get("from_us")))
    for batch, ranges in noted.items():
        for low, high in ranges:
            if (batch, low) not in done:
                yield batch, low, high


def unsettled_ranges(past: LedgerExcerpt) -> list[tuple[int, int]]:
    """The ranges [from, to) that the source has changed and no backfill has reprocessed since.

    Among them are those that a run was told to leave out. What is known of events there, such as
    where an id was accepted, may not be true any more.
    """
    pending = [(low, high) for _, low, high in pending_changes(past)]
    return [*pending, *list_left_out(past)]


def list_left_out(past: LedgerExcerpt) -> list[tuple[int, int]]:
    """The ranges [from, to) that a run was told to leave out and nothing has reprocessed since."""
    found = []
    # A retry may have left two entries of a batch, and the later one counts.
    for entry in {e.batch: e for e in past.entries if e.step == DONE}.values():
        left_out = [Range(low, high - 1) for low, high in _read_note(entry).get("left_out", ())]
        since = [_read_note(e) for e in past.entries if e.seq > entry.seq]
        done = [Range(n["from_us"], n["to_us"] - 1) for n in since if "from_us" in n]
        found += [(r.low_us, r.high_us + 1) for r in subtract_ranges(left_out, done)]
    return found


def has_changed_since(past: LedgerExcerpt, seq: int, times: Range) -> bool:
    """Whether from step `seq` on a batch found that the source had changed some of these times."""
    for entry in past.entries:
        if entry.step == DONE and entry.seq >= seq:
            note = _read_note(entry)
            changed = [*note.get("ranges", ()), *note.get("left_out", ())]
            if any(low <= times.high_us and high > times.low_us for low, high in changed):
                return True
    return False


def read_range(done: LedgerEntry) -> Range | None:
    """The event times that a chunk of a backfill has reprocessed; None for any other step."""
    note = _read_note(done)
    return Range(note["from_us"], note["to_us"] - 1) if "from_us" in note else None


def reprocesses_change(done: LedgerEntry) -> bool:
    """Whether a chunk of a backfill follows from what a batch found changed in the source."""
    return _read_note(done).get("batch") is not None


def was_rewritten(past: LedgerExcerpt) -> bool:
    """Whether the source was seen to change its past, by this spec or an earlier one."""
    return any(ends_with_changes(entry) for entry in past.entries if entry.step == DONE)


def _read_note(entry: LedgerEntry) -> dict[str, Any]:
    """The note as JSON; nothing where the note is another text, such as an id."""
    if not entry.note or not entry.note.startswith("{"):
        return {}
    note: dict[str, Any] = loads(entry.note)
    return note
