"""What one command did, as values: the run's figures and each output's changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypedDict

from windowing.grid.range import Range
from windowing.grid.zone import moment
from windowing.ledger.changed import ShownChange
from windowing.ledger.nulls import read_null_counts
from windowing.ledger.rule import COUNTS, ROW_BY_ROW
from windowing.report.alarms import Alarm
from windowing.report.changed import Days
from windowing.report.text import plain, plain_fields
from windowing.source.rule import Followed


@dataclass(frozen=True)
class Changed:
    """How many rows of an output were inserted, updated and deleted.

    `restated` is how many changes of a closed period were stated beside the output instead.
    """

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    restated: int = 0

    def __add__(self, other: "Changed") -> "Changed":
        return Changed(
            self.inserted + other.inserted,
            self.updated + other.updated,
            self.deleted + other.deleted,
            self.restated + other.restated,
        )


@dataclass(frozen=True)
class RunReport:
    """The figures of one run or backfill.

    For a run, read = accepted + late + duplicate + quarantined + erased, where the last are rows of
    keys that were erased. For a backfill, `erased` are those of its range.

    `corrections` is the number of ranges that were reprocessed because the source changed its past;
    what that changed is part of `windows`. `evolved` names the windows and aggregates that the spec
    added or removed, and that were rebuilt or dropped before the run read anything. `gave_null` has
    by computed column for how many rows it was NULL although each column that it names had a value,
    and under `source.where` how many rows were left out for that reason; none of these is 0.
    `published` is true where the run found nothing new and readers use the newest outputs already.
    `followed` is what was done about rows that were updated or deleted in the source; None where no
    row differs, and where the run did not follow such rows. `versions_unread` is how many versions
    of the source are newer than the one that a backfill has read; it is 0 for a run.
    `alarms` are figures of a run that are wrong most likely; a backfill has none. `changed_days`
    has by window all days from that of the first window that changed to that of the last one.
    `row_by_row` counts the batches of a large run that could not be read as files; Spark has passed
    on their rows one by one, which is slower. `caught_up` has by window how many partly late events
    it had missed and counts since a backfill; none of these is 0.
    """

    run: int | None
    batches: int = 0
    read: int = 0
    accepted: int = 0
    late: int = 0
    duplicate: int = 0
    quarantined: int = 0
    watermark: datetime | None = None
    windows: Mapping[str, Changed] = field(default_factory=dict)
    corrections: int = 0
    evolved: tuple[str, ...] = ()
    gave_null: Mapping[str, int] = field(default_factory=dict)
    published: bool = False
    row_by_row: int = 0
    followed: Followed | None = None
    versions_unread: int = 0
    erased: int = 0
    alarms: tuple[Alarm, ...] = ()
    changed_days: Mapping[str, Days] = field(default_factory=dict)
    caught_up: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """The report as plain JSON values; times are ISO 8601 in UTC."""
        followed = None if self.followed is None else _followed_as_json(self.followed)
        return {**plain_fields(self), "followed": followed}


class Published(TypedDict):
    """What readers see of an output: its `version`, the `run` that left it, and its `rows`.

    `watermark` is that of the run. They see it since the publication that is the ledger's `entry`,
    at a time in ISO 8601. Before they saw the version `previous`; None where there was none.
    """

    version: int
    run: int | None
    rows: int
    previous: int | None
    entry: int
    at: str
    watermark: str | None


@dataclass(frozen=True)
class Publication:
    """What is published: the run, and each output by its window.

    `number` is that of the publication, which readers see since `at`, and `watermark` that of the
    run; both are times in ISO 8601. They are None where nothing is published, and the last one also
    where no event was accepted. `accepted` is the reason that was given for publishing although
    expectations failed. `held` has the outputs that were not published, and the expectations that
    they fail. `changed_days` are by window the days that this publication changed, without outputs
    in which no row differs; None where nothing is published or that is not recorded. `changes` has
    by window the days that each publication changed, oldest first. `is_new` is whether readers saw
    anything else before the command.
    """

    run: int
    outputs: dict[str, Published]
    accepted: str | None = None
    held: Mapping[str, Sequence[str]] = field(default_factory=dict)
    number: int | None = None
    at: str | None = None
    watermark: str | None = None
    changed_days: Mapping[str, Days] | None = None
    changes: Mapping[str, Sequence[ShownChange]] = field(default_factory=dict)
    is_new: bool = True

    def as_json(self) -> dict[str, object]:
        """The publication as plain JSON values."""
        outputs = {
            window: {**shown, "changes": list(map(_change_as_json, self.changes.get(window, ())))}
            for window, shown in self.outputs.items()
        }
        changed = plain(self.changed_days)
        return {
            **self.as_pointer(),
            "outputs": outputs,
            "changed_days": changed,
            "changed": self.is_new,
        }

    def as_pointer(self) -> dict[str, object]:
        """What the pointer says of it, as plain JSON values: no history."""
        return {
            "publication": self.number,
            "at": self.at,
            "run": self.run,
            "watermark": self.watermark,
            "outputs": self.outputs,
            "accepted": self.accepted,
            "held": {window: list(broken) for window, broken in self.held.items()},
        }


def _change_as_json(change: ShownChange) -> dict[str, object]:
    days = None
    if change.days is not None:
        days = [{"first": str(first), "last": str(last)} for first, last in change.days]
    return {
        "publication": change.number,
        "at": moment(change.at_us).isoformat(),
        "days": days,
    }


def _followed_as_json(followed: Followed) -> dict[str, object]:
    return {
        "rows": followed.rows,
        # Each range is [from, to).
        "ranges": [plain(half_open(times)) for times in followed.ranges],
        "left_out": [plain(half_open(times)) for times in followed.left_out],
    }


def half_open(times: Range) -> tuple[datetime, datetime]:
    """The range as [from, to)."""
    return moment(times.low_us), moment(times.high_us + 1)


def run_report(
    run: int | None,
    batches: int,
    counts: Mapping[str, int],
    watermark_us: int | None,
    names: list[str],
) -> RunReport:
    """A report from a ledger's counts (`read`, ..., `hourly.inserted`, ...)."""
    outcomes: dict[str, Any] = {name: counts.get(name, 0) for name in COUNTS}
    return RunReport(
        run,
        batches,
        **outcomes,
        watermark=None if watermark_us is None else moment(watermark_us),
        windows={name: read_changed(counts, name) for name in names},
        gave_null=read_null_counts(counts),
        row_by_row=counts.get(ROW_BY_ROW, 0),
    )


def list_caught_up(counts: Mapping[str, int], names: Sequence[str]) -> dict[str, int]:
    """By window how many partly late events it had missed and counts now.

    `counts` are those of a ledger, which counts such events back.

    >>> list_caught_up({"partial.hourly": -2, "partial.daily": 1}, ["hourly", "daily", "weekly"])
    {'hourly': 2}
    """
    back = {name: -counts.get(f"partial.{name}", 0) for name in names}
    return {name: n for name, n in back.items() if n > 0}


def add_corrections(found: RunReport, counts: Sequence[Mapping[str, int]]) -> RunReport:
    """The report of a run after which ranges were reprocessed; `counts` are those of each range."""
    windows = {}
    for name, change in found.windows.items():
        corrected = [read_changed(each, name) for each in counts]
        windows[name] = sum(corrected, start=change)
    return replace(found, windows=windows, corrections=len(counts))


def read_changed(counts: Mapping[str, int], window: str) -> Changed:
    """What a step changed in the output of `window`, from the counts of its ledger entry."""
    return Changed(
        inserted=counts.get(f"{window}.inserted", 0),
        updated=counts.get(f"{window}.updated", 0),
        deleted=counts.get(f"{window}.deleted", 0),
        restated=counts.get(f"{window}.restated", 0),
    )
