"""What differs between two publications, or between what is published and the newest rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from windowing.report.text import plain, plain_fields


@dataclass(frozen=True)
class Side:
    """One of the two: a publication by its number, or the newest finished step (None)."""

    publication: int | None
    run: int | None
    at: datetime | None
    watermark: datetime | None


@dataclass(frozen=True)
class ChangedRow:
    """A row on both sides; `before` is None where it was inserted, `after` where it was deleted."""

    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None

    @property
    def values(self) -> Mapping[str, Any]:
        """The row as it is, or as it was where it is gone."""
        return self.after or self.before or {}

    @property
    def change(self) -> str:
        """What became of it."""
        if self.before is None:
            return "inserted"
        return "deleted" if self.after is None else "updated"

    def as_json(self) -> dict[str, object]:
        """The row as plain JSON values."""
        return {"change": self.change, **plain_fields(self)}


@dataclass(frozen=True)
class OutputDifference:
    """How many rows of an output were inserted, updated and deleted, and some of them in order."""

    inserted: int
    updated: int
    deleted: int
    rows: tuple[ChangedRow, ...]

    @property
    def count(self) -> int:
        """How many rows differ."""
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True)
class Compared:
    """What leads from the side `since` to the side `until`, by window that both have.

    Of these windows `until` alone has `added`, and `since` alone `removed`. `changed` is what in
    the spec is not what made the outputs.
    """

    since: Side
    until: Side
    outputs: Mapping[str, OutputDifference]
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The comparison as plain JSON values."""
        return {
            "from": plain(self.since),
            "to": plain(self.until),
            "windows": plain(self.outputs),
            "added": plain(self.added),
            "removed": plain(self.removed),
        }
