"""Which entries of the ledger a run needs, found without making plain values of the others.

files of the ledger -> a few columns of every entry -> the numbers of those that answer a question
of `LedgerExcerpt` -> these entries

How many are selected depends on how many tables, specs and open steps there are, and not on how
many runs there have been.
"""

from collections.abc import Iterator, Sequence
from json import loads
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowing.grid.range import Range, subtract_ranges
from windowing.ledger.rule import (
    BACKFILL_DONE,
    CLOSE,
    DONE,
    ERASE_INTENT,
    ERASE_LIST,
    EVOLVE_INTENT,
    INTENT,
    MAINTAIN_DONE,
    MAINTAIN_INTENT,
    MAX_TIME,
    OPEN,
    RECENT_RUNS,
    SKIP,
)

_TYPES = {
    "seq": pa.int64(),
    "step": pa.string(),
    "run": pa.int64(),
    "batch": pa.int64(),
    "arrival": pa.int64(),
    "source_id": pa.string(),
    "note": pa.string(),
}
"""The columns that entries are selected by, besides names and times in maps."""
_LATEST = "latest"
"""The last event time that a batch accepted; null where it accepted none."""
_READ = "read"
"""The count of rows read; null where the entry has none."""


def select_entries(files: Sequence[pa.Table]) -> tuple[pa.Table, ...]:
    """The rows of each file of the ledger that answer the questions of `LedgerExcerpt`."""
    if not files:
        return ()
    entries = pa.concat_tables([_narrow(file) for file in files])
    chosen = pa.chunked_array([*_find_needed(entries), *_find_named(files)], pa.int64())
    of_changes = _find_changes(entries, set(chosen.to_pylist()))
    numbers = pc.unique(pa.chunked_array([*chosen.chunks, *of_changes], pa.int64()))
    return tuple(file.filter(pc.is_in(file["seq"], value_set=numbers)) for file in files)


def _narrow(file: pa.Table) -> pa.Table:
    """A few columns of the entries in a file."""
    columns = {name: file[name].cast(kind) for name, kind in _TYPES.items()}
    columns[_LATEST] = pc.map_lookup(file["counts"], MAX_TIME, "last").cast(pa.int64())
    columns[_READ] = pc.map_lookup(file["counts"], "read", "last").cast(pa.int64())
    return pa.table(columns)


def _find_needed(entries: pa.Table) -> Iterator[pa.Array]:
    """The numbers of the entries that are needed for what is neither names nor changes."""
    yield from _newest(entries, "step")
    # Of a run that is open, every entry counts.
    newest_open = pc.max(_of(entries, OPEN)["seq"])
    if newest_open.is_valid:
        yield from _where(entries, pc.greater_equal(entries["seq"], newest_open))
    yield from _newest(_with_text(entries, "note"), "step")
    yield from _newest(_with_text(entries, "source_id"), "step")
    yield from _newest(_with_text(_of(entries, OPEN, EVOLVE_INTENT), "note"), "note")
    # Every key that was erased stays erased.
    yield from _of(entries, ERASE_INTENT, ERASE_LIST)["seq"].chunks
    yield from _highest(_of(entries, OPEN, INTENT, CLOSE), "arrival")
    yield from _find_last_accepted(entries)
    yield from _find_last_batches(entries)
    yield from _find_recent_runs(entries)


def _find_last_accepted(entries: pa.Table) -> Iterator[pa.Array]:
    """Of batches that accepted a row: the last to arrive, and the run with the last event time.

    An event time counts as at most its run's arrival, which is that of the run's last batch.
    """
    done = _of(entries, DONE)
    accepted = done.filter(pc.and_(pc.is_valid(done[_LATEST]), pc.is_valid(done["arrival"])))
    yield from _highest(accepted, "arrival")
    runs = accepted.group_by("run", use_threads=False)
    runs = runs.aggregate([(_LATEST, "max"), ("arrival", "max")])
    reached = pc.min_element_wise(runs[f"{_LATEST}_max"], runs["arrival_max"])
    furthest = runs.filter(pc.equal(reached, pc.max(reached)))
    of_furthest = accepted.filter(pc.equal(accepted["run"], pc.max(furthest["run"])))
    yield from _highest(of_furthest, "arrival")
    yield from _highest(of_furthest, _LATEST)


def _find_last_batches(entries: pa.Table) -> Iterator[pa.Array]:
    """The newest two batches that were finished, and any that was begun since."""
    last = pc.max(_of(entries, DONE, SKIP)["batch"])
    of_batches = _of(entries, INTENT, DONE, SKIP)
    since = last.as_py() - 1 if last.is_valid else 0
    yield from _where(of_batches, pc.greater_equal(of_batches["batch"], since))


def _find_recent_runs(entries: pa.Table) -> Iterator[pa.Array]:
    """The newest closed runs that have read rows."""
    closed = _of(entries, CLOSE)
    numbers = closed.filter(pc.greater(closed[_READ], 0))["seq"]
    newest = pc.select_k_unstable(numbers, RECENT_RUNS, [("seq", "descending")])
    yield from numbers.take(newest).chunks


def _find_changes(entries: pa.Table, chosen: set[int]) -> Iterator[pa.Array]:
    """Batches that met changes of the source, with the backfills of their ranges.

    Needed are those with a range that was not reprocessed, also one that was left out. Those that
    are `chosen` anyway, such as the newest one, would seem to have such ranges without their
    backfills.
    """
    noted: dict[int, list[int]] = {}
    left_out: dict[int, list[Range]] = {}
    chunks: dict[int, Range] = {}
    ranges: dict[int, set[int]] = {}
    reprocessed: dict[int, dict[int, int]] = {}
    for row in _list_notes(entries):
        note = loads(row["note"])
        if row["step"] == DONE and row["batch"] is not None and "ranges" in note:
            noted.setdefault(row["batch"], []).append(row["seq"])
            ranges[row["batch"]] = {low for low, _ in note["ranges"]}
            left = note.get("left_out", ())
            left_out[row["batch"]] = [Range(low, high - 1) for low, high in left]
        elif row["step"] == BACKFILL_DONE:
            chunks[row["seq"]] = Range(note["from_us"], note["to_us"] - 1)
            if note.get("batch") is not None:
                reprocessed.setdefault(note["batch"], {})[note["from_us"]] = row["seq"]
    batches: list[int] = []
    backfills: list[int] = []
    for batch, seqs in noted.items():
        done = reprocessed.get(batch, {})
        since = {seq: times for seq, times in chunks.items() if seq > seqs[-1]}
        is_pending = not ranges[batch] <= done.keys()
        is_left_out = bool(subtract_ranges(left_out[batch], since.values()))
        if is_pending or is_left_out or not chosen.isdisjoint(seqs):
            batches.append(batch)
            backfills += done.values()
            if left_out[batch]:
                backfills += since
    finished = _of(entries, DONE)
    # A retry may have left two entries of a batch, and the later one counts.
    yield from _where(finished, pc.is_in(finished["batch"], pa.array(batches, pa.int64())))
    yield pa.array(backfills, pa.int64())


def _list_notes(entries: pa.Table) -> list[dict[str, Any]]:
    """The entries in which changes of the source are noted, as plain values, oldest first."""
    noted = _of(entries, DONE, BACKFILL_DONE)
    is_json = pc.fill_null(pc.starts_with(noted["note"], "{"), False)  # noqa: FBT003 Arrow's
    rows = noted.filter(is_json).select(["seq", "step", "batch", "note"]).sort_by("seq")
    found: list[dict[str, Any]] = rows.to_pylist()
    return found


def _find_named(files: Sequence[pa.Table]) -> Iterator[pa.Array]:
    """By step, the newest entry that names each table, in its versions or its expired rows."""
    versions = pa.concat_tables([_list_names(file, "versions") for file in files])
    yield from _newest(versions, "step", "name")
    tended = [_list_names(_of(file, MAINTAIN_INTENT, MAINTAIN_DONE), "counts") for file in files]
    yield from _newest(pa.concat_tables(tended), "name")


def _list_names(file: pa.Table, column: str) -> pa.Table:
    """[seq, step, name] of every key in a map of each entry."""
    maps = file[column].combine_chunks()
    parents = pc.list_parent_indices(maps.cast(_pairs(maps.type)))
    steps = file["step"].cast(pa.string()).take(parents)
    numbers = file["seq"].cast(pa.int64()).take(parents)
    return pa.table({"seq": numbers, "step": steps, "name": maps.keys.cast(pa.string())})


def _pairs(kind: pa.MapType) -> pa.ListType:
    return pa.list_(pa.struct([kind.key_field, kind.item_field]))


def _of(entries: pa.Table, *steps: str) -> pa.Table:
    return entries.filter(pc.is_in(entries["step"], value_set=pa.array(steps, pa.string())))


def _with_text(entries: pa.Table, column: str) -> pa.Table:
    return entries.filter(pc.greater(pc.binary_length(entries[column]), 0))


def _where(entries: pa.Table, condition: pa.ChunkedArray) -> Iterator[pa.Array]:
    yield from entries.filter(condition)["seq"].chunks


def _newest(entries: pa.Table, *by: str) -> Iterator[pa.Array]:
    """The newest entry of each group."""
    yield from entries.group_by(by, use_threads=False).aggregate([("seq", "max")])["seq_max"].chunks


def _highest(entries: pa.Table, column: str) -> Iterator[pa.Array]:
    """The newest of the entries with the highest value."""
    at_most = entries.filter(pc.equal(entries[column], pc.max(entries[column])))
    yield from _newest(at_most, column)
