"""Whether a store keeps the conditions of a write, on which commits and locks depend."""

from uuid import uuid4

from windowing.errors import UsageError
from windowing.location import Location
from windowing.storage.store import SharedStore


def check_conditional_put(store: SharedStore, place: Location) -> None:
    """UsageError where the store writes a file although the condition of the write is not met.

    It writes files of its own into the directory `place`, and deletes them.
    """
    home = place / f"_store-{uuid4().hex}"
    try:
        ignored = _find_ignored(store, home / "probe")
    finally:
        store.delete(home)
    if ignored is not None:
        raise UsageError(
            f"{place} is on a store that ignores {ignored}, so two writers could overwrite each "
            "other's commits without noticing; use a store, and a way to it, that keeps the "
            "conditions of a write"
        )


def _find_ignored(store: SharedStore, probe: Location) -> str | None:
    """The condition that is ignored; None where both are kept."""
    store.create(probe, b"1")
    if store.create(probe, b"2"):
        return "If-None-Match"
    first = store.read_tagged(probe)
    if first is None or store.replace(probe, b"3", first.tag) is None:
        return "its own tags"
    return "If-Match" if store.replace(probe, b"4", first.tag) is not None else None
