"""What a close and a reopening of a period have done. No Spark."""

from dataclasses import dataclass
from datetime import datetime

from windowing.report.rule import Changed
from windowing.report.text import plain_fields


@dataclass(frozen=True)
class ClosedPeriod:
    """What is closed: rows of outputs that end at or before `until`.

    `frozen` has the number of frozen rows by window, and `not_frozen` the windows whose rows are
    never. `published` says whether readers see these rows: the newest ones are published; None
    where nothing was published yet. Nothing has `changed` where the same period was closed before.
    """

    until: datetime
    reason: str
    frozen: dict[str, int]
    not_frozen: tuple[str, ...]
    published: bool | None
    changed: bool = True

    def as_json(self) -> dict[str, object]:
        """The period as plain JSON values."""
        return plain_fields(self)


@dataclass(frozen=True)
class ReopenedPeriod:
    """What has become of the outputs; `until` is None where nothing was closed, nor changed.

    `windows` are empty where an interrupted reopening was finished, because that can't be counted.
    """

    until: datetime | None
    windows: dict[str, Changed]

    def as_json(self) -> dict[str, object]:
        """The result as plain JSON values."""
        return plain_fields(self)
