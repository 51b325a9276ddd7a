"""Counts of several entries together. No Spark."""

from collections.abc import Iterable, Mapping

from windowing.ledger.rule import LedgerEntry
from windowing.spec import reserved

BATCH_BYTES = "batch_bytes"
"""The count of bytes of the files of a batch that is one of several, by which its run is cut."""
FIRST_START, LAST_START = f".{reserved.FIRST_START}", f".{reserved.LAST_START}"
"""How the counts end that name the first and the last start of the rows of an output that changed.

In microseconds. Of several counts together they are the first and the last of all.
"""
_BY_END = {FIRST_START: min, LAST_START: max}


def name_starts(window: str, starts: tuple[int, int] | None) -> dict[str, int]:
    """The first and the last start as counts; none where there is none."""
    return {} if starts is None else dict(zip(_name_ends(window), starts, strict=True))


def read_starts(counts: Mapping[str, int], window: str) -> tuple[int, int] | None:
    """What `name_starts` has named; None where no row with a start changed.

    It is None also in entries of earlier versions of Tidemark, which did not record it.
    """
    first, last = map(counts.get, _name_ends(window))
    return None if first is None or last is None else (first, last)


def _name_ends(window: str) -> tuple[str, str]:
    return f"{window}{FIRST_START}", f"{window}{LAST_START}"


def sum_entry_counts(entries: Iterable[LedgerEntry]) -> dict[str, int]:
    """The counts of several batches together."""
    return add_counts(entry.counts for entry in entries)


def add_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sums of several counts by name; of starts, which have no sum, the first and the last."""
    sums: dict[str, int] = {}
    for each in counts:
        for name, n in each.items():
            end = _BY_END.get(f".{name.rpartition('.')[2]}")
            if end is None:
                sums[name] = sums.get(name, 0) + n
            else:
                sums[name] = end(sums.get(name, n), n)
    return sums
