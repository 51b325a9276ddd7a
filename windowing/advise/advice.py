"""What a history says about the watermark of a pipeline, as values and as JSON."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from windowing.advise.cost import Cost
from windowing.advise.groups import MOST, NEARLY_ALL, SHARES, Lateness
from windowing.advise.history import History
from windowing.advise.keys import Finding
from windowing.advise.reading import Reading
from windowing.advise.rule import Settings, Step
from windowing.advise.share import Check
from windowing.grid.zone import moment
from windowing.spec.duration import SECOND

EVER_US = 2**61
"""A lateness that no event of the calendar exceeds."""


@dataclass(frozen=True)
class Wanted:
    """What a proposal is to achieve, and how the pipeline is to run.

    At least the share `on_time` arrives before any of its windows has closed, and at least the
    share `counted` is counted in all of them. The pipeline runs every `every_us`, or where that is
    0 after each commit of the source.
    """

    on_time: Fraction = MOST
    counted: Fraction = NEARLY_ALL
    every_us: int = 0


@dataclass(frozen=True)
class Named:
    """How late the events of something are that has a name, such as a group or an hour."""

    name: str
    lateness: Lateness


@dataclass(frozen=True)
class Target:
    """With the delay and the lateness of `reach_us` together, the share misses no window.

    `cost` is that of a delay alone, rounded up.
    """

    share: Fraction
    reach_us: int
    cost: Cost


@dataclass(frozen=True)
class OpenWindow:
    """A window of an output that has not closed, with the events that have arrived of all keys.

    `events` is None where some of what arrived since the window began was not read.
    `expected_share` is the share of its events that has probably arrived; None where the history
    is too short to know it.
    """

    output: str
    start: datetime
    end: datetime
    events: int | None
    expected_share: float | None


@dataclass(frozen=True)
class Checked:
    """How well expected shares of an output's windows were met, within its own history."""

    output: str
    check: Check


@dataclass(frozen=True)
class Advice:
    """What the history of a source says about the watermark of a pipeline.

    `judged` events arrived after the first commit, and only of these it is known how late they
    were: where there are none, `unknown` says why and what is needed, and all that follows is
    empty. `present` is what the spec's own settings cost, `proposed` those of the proposal.
    `others` are groups that are not among `groups`.
    """

    pipeline: str
    source: str
    reading: Reading
    history: History
    judged: int
    unknown: str | None = None
    all: Lateness | None = None
    histogram: tuple[Step, ...] = ()
    groups: tuple[Named, ...] = ()
    others: int = 0
    hours: tuple[Named, ...] = ()
    periods: tuple[Named, ...] = ()
    present: Cost | None = None
    targets: tuple[Target, ...] = ()
    proposed: Cost | None = None
    odd_keys: tuple[tuple[str, Finding], ...] = ()
    windows: tuple[OpenWindow, ...] = ()
    checks: tuple[Checked, ...] = ()
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The advice as plain JSON values; times are ISO 8601 in UTC, lengths are seconds."""
        return {
            "pipeline": self.pipeline,
            "source": self.source,
            "unknown": self.unknown,
            "history": self._describe_history(),
            "lateness": None if self.all is None else _lateness_json(self.all),
            "histogram": [
                {
                    "from_seconds": step.low_us / SECOND,
                    "to_seconds": step.high_us / SECOND,
                    "events": step.count,
                }
                for step in self.histogram
            ],
            "groups": _named_json(self.groups),
            "other_groups": self.others,
            "hours": _named_json(self.hours),
            "periods": _named_json(self.periods),
            "present": None if self.present is None else _cost_json(self.present),
            "targets": [
                {
                    "share": float(target.share),
                    "needs_seconds": target.reach_us / SECOND,
                    **_cost_json(target.cost),
                }
                for target in self.targets
            ],
            "proposed": None if self.proposed is None else _cost_json(self.proposed),
            "odd_keys": [
                {"key": key, "what": finding.what, "text": finding.text}
                for key, finding in self.odd_keys
            ],
            "windows": [
                {
                    "window": window.output,
                    "window_start": window.start.isoformat(),
                    "window_end": window.end.isoformat(),
                    "events": window.events,
                    "expected_share": window.expected_share,
                }
                for window in self.windows
            ],
            "checks": [
                {
                    "window": each.output,
                    "age_seconds": each.check.age_us / SECOND,
                    "expected_share": each.check.expected,
                    "share": each.check.was,
                    "windows": each.check.windows,
                }
                for each in self.checks
            ],
            "notes": list(self.notes),
        }

    def _describe_history(self) -> dict[str, object]:
        reading, batches = self.reading, self.reading.batches.arrived_us.tolist()
        return {
            "first_version": reading.first,
            "last_version": reading.last,
            "begins_because": reading.reach,
            "commits": len(reading.batches.arrived_us),
            "first_arrival": moment(batches[0]).isoformat() if batches else None,
            "last_arrival": moment(batches[-1]).isoformat() if batches else None,
            "events": len(self.history.events.time),
            "judged": self.judged,
            "invalid": reading.invalid,
            "ahead": self.history.ahead,
            "copies": self.history.copies,
            "left_out": [vars(each) for each in reading.left_out],
        }


def is_forever(settings: Settings) -> bool:
    """Whether windows accept events forever."""
    return settings.lateness_us == EVER_US


def _named_json(named: Iterable[Named]) -> list[dict[str, object]]:
    return [{"name": each.name, **_lateness_json(each.lateness)} for each in named]


def _lateness_json(lateness: Lateness) -> dict[str, object]:
    each = zip(SHARES, lateness.behind_us, lateness.age_us, strict=True)
    return {
        "events": lateness.events,
        "quantiles": [
            {
                "share": float(share),
                "behind_seconds": behind_us / SECOND,
                "age_seconds": age_us / SECOND,
            }
            for share, behind_us, age_us in each
        ],
    }


def _cost_json(cost: Cost) -> dict[str, object]:
    settings = cost.settings
    return {
        "delay_seconds": settings.delay_us / SECOND,
        # Forever is null, as in a pipeline.
        "allowed_lateness_seconds": (
            None if is_forever(settings) else settings.lateness_us / SECOND
        ),
        "events": cost.events,
        "missing": cost.missing,
        "refused": cost.refused,
        "correcting": cost.correcting,
        "corrections": cost.corrections,
        "wait_seconds": None if cost.wait_us is None else cost.wait_us / SECOND,
        "long_wait_seconds": None if cost.long_wait_us is None else cost.long_wait_us / SECOND,
        "open_rows": cost.open_rows,
    }
