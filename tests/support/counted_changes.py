"""How many rows of an output a step has written, as the ledger counts them."""

from collections.abc import Mapping

from windowing.ledger.counts import FIRST_START, LAST_START


def wrote(
    window: str, inserted: int, updated: int = 0, deleted: int = 0, overflow: int = 0
) -> dict[str, int]:
    """The counts of a step that has written so many rows."""
    names = {"inserted": inserted, "updated": updated, "deleted": deleted, "overflow": overflow}
    return {f"{window}.{name}": n for name, n in names.items()}


def count_rows(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts without the first and the last start of the windows that changed."""
    return {name: n for name, n in counts.items() if not name.endswith((FIRST_START, LAST_START))}
