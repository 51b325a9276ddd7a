"""The `_ledger` and `_watermarks` tables: read, appended to one step at a time, and compacted.

Of `_quality` it is known here which rows judge which entry.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from windowing.crash import crashpoint
from windowing.errors import Busy
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import CLOSE, COUNTS, LedgerEntry, LedgerExcerpt, find_times
from windowing.ledger.selection import select_entries
from windowing.spec.pipeline import Pipeline
from windowing.storage import control
from windowing.storage.compaction import compact_files

LEDGER, WATERMARKS, QUALITY = "_ledger", "_watermarks", "_quality"
MOST_FILES = 24
"""From how many files of the ledger a run compacts. Most runs add three, and reading one costs half
a millisecond.
"""

Past = TypeVar("Past", bound=LedgerExcerpt)

_TIME = pa.timestamp("us", "UTC")
_BY_NAME = pa.map_(pa.string(), pa.int64())
_LEDGER_SCHEMA = pa.schema(
    [
        ("seq", pa.int64()),
        ("generation", pa.int32()),
        ("run", pa.int64()),
        ("batch", pa.int64()),
        ("step", pa.string()),
        ("at", _TIME),
        ("arrival", _TIME),
        ("watermark_in", _TIME),
        ("watermark_out", _TIME),
        ("offsets", pa.string()),
        ("source_id", pa.string()),
        ("source_version", pa.int64()),
        ("spec", pa.string()),
        ("counts", _BY_NAME),
        ("versions", _BY_NAME),
        ("note", pa.string()),
    ]
)
_WATERMARKS_SCHEMA = pa.schema(
    [
        ("run", pa.int64()),
        ("watermark", _TIME),
        ("arrival", _TIME),
        ("max_event_time", _TIME),
        *((name, pa.int64()) for name in COUNTS),
    ]
)


def create_ledger(pipeline: Pipeline) -> None:
    """Creates the ledger, without an entry, unless it exists."""
    control.create_table(pipeline.table(LEDGER), _LEDGER_SCHEMA)


def read_history(pipeline: Pipeline) -> LedgerHistory:
    """All entries of the ledger; an empty ledger before the first run."""
    found = control.read_contents(pipeline.table(LEDGER))
    return LedgerHistory(_to_entries(found.files), found.version, len(found.files))


def read_excerpt(pipeline: Pipeline) -> LedgerExcerpt:
    """The entries that a run needs, at about the same cost however many runs there have been."""
    found = control.read_contents(pipeline.table(LEDGER))
    return LedgerExcerpt(_to_entries(select_entries(found.files)), found.version, len(found.files))


def compact_ledger(pipeline: Pipeline, past: LedgerExcerpt, most_files: int = MOST_FILES) -> None:
    """Rewrites ledger and watermarks as few files, if `past` was read from more than `most_files`.

    On shared storage, where each file and each commit is a request of every later command, the
    ledger is rewritten by each run. No row changes, and whoever has read either table before may
    append to it.
    """
    if past.files > most_files:
        names: tuple[str, ...] = (LEDGER, WATERMARKS)
    elif pipeline.root.is_local:
        return
    else:
        names = (LEDGER,)
    for name in names:
        compact_files(pipeline.table(name), most=1)
        crashpoint("ledger.compacted")


def record_entries(pipeline: Pipeline, before: Past, entries: Iterable[LedgerEntry]) -> Past:
    """Appends `entries` in one commit, numbered from the end of `before`.

    Returns the longer ledger. Busy where the ledger has an entry that `before` does not contain.
    """
    numbered = []
    for seq, entry in enumerate(entries, start=before.next_seq):
        numbered.append(replace(entry, seq=seq))
    path = pipeline.table(LEDGER)
    rows = [_to_row(entry) for entry in numbered]
    try:
        version = control.append_rows(path, _LEDGER_SCHEMA, rows, before.version)
    except Busy:
        newest = _find_version(pipeline, before)
        version = control.append_rows(path, _LEDGER_SCHEMA, rows, newest)
    return replace(before, entries=(*before.entries, *numbered), version=version)


def _find_version(pipeline: Pipeline, before: LedgerExcerpt) -> int:
    """The newest version of the ledger, whose last entry is that of `before`.

    Compaction and maintenance make versions without an entry.
    """
    now = read_excerpt(pipeline)
    if now.next_seq != before.next_seq:
        raise Busy(
            f"{pipeline.name}: another writer has recorded a step in {pipeline.table(LEDGER)}; "
            "try again when it has finished"
        )
    return now.version


def record_watermark(
    pipeline: Pipeline, run: int, closed: LedgerEntry, max_event_us: int | None
) -> None:
    """Gives `_watermarks` the run's row, in one commit.

    A row that the run has appended before it was interrupted is replaced. A table that does not end
    with the run before was restored alone, and is made from the ledger again.
    """
    path = pipeline.table(WATERMARKS)
    row = _watermark_row(run, closed, max_event_us)
    found = control.read_contents(path)
    newest = control.find_highest(found, "run") or 0
    if newest == run - 1:
        control.append_rows(path, _WATERMARKS_SCHEMA, [row], found.version)
    elif newest == run:
        control.replace_rows(path, _WATERMARKS_SCHEMA, [row], f"run = {run}")
    else:
        rows = [*_list_watermark_rows(read_history(pipeline)), row]
        control.replace_rows(path, _WATERMARKS_SCHEMA, rows, "run >= 0")


def read_newest_validation(pipeline: Pipeline, steps: Collection[LedgerEntry]) -> list[control.Row]:
    """The rows of `_quality` that were written last of the newest of these steps that has any."""
    found = control.read_contents(pipeline.table(QUALITY))
    judged = select_judged(found, steps)
    for step in sorted(judged, key=lambda step: step.seq, reverse=True):
        rows = select_outcomes(found, [step])
        if rows:
            latest = max(row["checked_at"] for row in rows)
            return [row for row in rows if row["checked_at"] == latest]
    return []


def select_judged(found: control.Contents, steps: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """The steps whose numbers rows of `_quality` have."""
    numbers = {number for file in found.files for number in pc.unique(file["seq"]).to_pylist()}
    return [step for step in steps if step.seq in numbers]


def select_outcomes(found: control.Contents, steps: Iterable[LedgerEntry]) -> list[control.Row]:
    """The rows of `_quality` that judge one of these steps, and no earlier one of its number.

    There was one where the ledger was restored to an earlier time, and `_quality` was not.
    """
    ends = {step.seq: step.at or 0 for step in steps}
    rows = []
    for row in control.select_rows(found, "seq", min(ends, default=0)):
        if row["seq"] in ends and row["checked_at"] > ends[row["seq"]]:
            rows.append(row)
    return rows


def _list_watermark_rows(past: LedgerHistory) -> Iterator[Mapping[str, Any]]:
    """The row of every closed run."""
    for entry in past.entries:
        if entry.step == CLOSE and entry.run is not None:
            times = find_times(past.done(entry.run))
            yield _watermark_row(entry.run, entry, None if times is None else times.high_us)


def _watermark_row(run: int, closed: LedgerEntry, max_event_us: int | None) -> Mapping[str, Any]:
    row: dict[str, Any] = {
        "run": run,
        "watermark": closed.watermark_out,
        "arrival": closed.arrival,
        "max_event_time": max_event_us,
    }
    for name in COUNTS:
        row[name] = closed.counts.get(name, 0)
    return row


def _to_row(entry: LedgerEntry) -> Mapping[str, Any]:
    return {field.name: getattr(entry, field.name) for field in fields(entry)}


def _to_entries(files: Iterable[pa.Table]) -> tuple[LedgerEntry, ...]:
    """The rows of all files as entries, oldest first."""
    entries = [_to_entry(row) for file in files for row in control.to_rows(file)]
    return tuple(sorted(entries, key=lambda entry: entry.seq))


def _to_entry(row: Mapping[str, Any]) -> LedgerEntry:
    # Someone may have added columns, which mean nothing here.
    return LedgerEntry(**{field.name: row[field.name] for field in fields(LedgerEntry)})
