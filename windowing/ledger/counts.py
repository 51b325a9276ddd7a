"""Counts of several entries together. No Spark."""

from collections.abc import Iterable, Mapping

from windowing.ledger.rule import LedgerEntry

BATCH_BYTES = "batch_bytes"
"""The count of bytes of the files of a batch that is one of several, by which its run is cut."""


def sum_entry_counts(entries: Iterable[LedgerEntry]) -> dict[str, int]:
    """The counts of several batches together."""
    return add_counts(entry.counts for entry in entries)


def add_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sums of several counts by name."""
    sums: dict[str, int] = {}
    for each in counts:
        for name, n in each.items():
            sums[name] = sums.get(name, 0) + n
    return sums
