"""Counts of a step without the starts that changed, where a test is about rows alone."""

from collections.abc import Mapping

from windowing.ledger.counts import FIRST_START, LAST_START


def leave_out_starts(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts without `{window}.first_start` and `{window}.last_start`."""
    return {name: n for name, n in counts.items() if not name.endswith((FIRST_START, LAST_START))}
