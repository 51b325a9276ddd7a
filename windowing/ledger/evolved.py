"""What state and outputs were rebuilt for, as the notes of ledger entries say it."""

from json import loads

OF_ERASURE = "erasure"
"""The note of an `evolve_done` that finishes the rebuild of an erasure; others have none."""


def read_evolved(note: str | None) -> tuple[str, ...]:
    """The windows and aggregates that an `evolve_intent` adds and removes, by its note.

    There are none where a value is being erased.
    """
    fields = loads(note or "{}")
    return (*fields.get("came", ()), *fields.get("went", ()))
