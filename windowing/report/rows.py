"""What commands that only read return: rows of outputs, refused rows, state tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windowing.report.text import moment_or_none, plain, plain_fields


@dataclass(frozen=True)
class Rows:
    """The first of `total` rows; every row has every one of `columns`."""

    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    total: int

    def as_json(self) -> dict[str, object]:
        """The rows as plain JSON values."""
        return plain_fields(self, "columns")


NO_ROWS = Rows((), (), 0)


@dataclass(frozen=True)
class Version:
    """One version of an output.

    `run` is the newest run at that version, or the published one; None where it is not known.
    `watermark_us` is the watermark when the version was the newest, in microseconds.
    """

    number: int
    run: int | None
    watermark_us: int | None


@dataclass(frozen=True)
class Seen:
    """Rows of an output and the version they are of.

    Before a run has made the output there is no version, and `missing` is the reason. `changed` is
    what in the spec is not what made the outputs.
    """

    rows: Rows = NO_ROWS
    version: Version | None = None
    missing: str | None = None
    changed: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Version and rows as plain JSON values."""
        number = run = watermark = None
        if self.version is not None:
            number = self.version.number
            run = self.version.run
            if self.version.watermark_us is not None:
                watermark = plain(moment_or_none(self.version.watermark_us))
        return {"version": number, "run": run, "watermark": watermark, **self.rows.as_json()}


@dataclass(frozen=True)
class Refused:
    """Refused rows, newest run first, and how many there are of each outcome.

    `missing` is why there can be none; None where there can.
    """

    counts: Mapping[str, int]
    rows: tuple[Mapping[str, Any], ...]
    missing: str | None = None

    def as_json(self) -> dict[str, object]:
        """The rows as plain JSON values."""
        return {**plain_fields(self, "missing"), "total": sum(self.counts.values())}


@dataclass(frozen=True)
class StateTable:
    """One state table: the windows computed from it, its rows, files, bytes and newest batch."""

    table: str
    windows: tuple[str, ...]
    rows: int
    files: int
    bytes: int
    run: int | None
    batch: int | None
