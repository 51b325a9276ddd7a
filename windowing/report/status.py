"""How a pipeline stands at a time: how far, how fresh, what is open. Values from values.

ledger + newest validation + who is at work + time -> `Status`
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from windowing.grid.zone import micros, moment
from windowing.ledger.counts import sum_entry_counts
from windowing.ledger.history import LedgerHistory, until_own_publication
from windowing.ledger.rule import CLOSE, COUNTS, FINISHED, LedgerEntry
from windowing.report.alarms import Alarm, list_last_alarms
from windowing.report.text import left_open, plain_fields
from windowing.spec.duration import DAY, HOUR, MINUTE, SECOND, Duration
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import join_names


@dataclass(frozen=True)
class Judgement:
    """The newest validation: of which run and entry of the ledger, when, and whether it passed."""

    run: int
    seq: int
    at_us: int
    passed: bool


@dataclass(frozen=True)
class Status:
    """How a pipeline stood at the time `at`. All times are aware, and None before the first one.

    `watermark` is that of the newest finished run, and `shown_watermark` that of what readers see;
    where nothing is published both are the same. A lag is how far one lies behind `at`, in whole
    seconds. `counts` are the rows of the newest run by outcome, `totals` those of all runs.
    `passed` is whether the newest validation passed or was accepted. `held` are the outputs that
    readers see as an older run left them, `unseen` those that a run has filled and no publication
    has shown yet, and `added` those that the next run fills for the first time. `open` has each
    step that was begun and not finished, with what finishes it, and `writer` who is at work on it.
    `reasons` says why somebody should look at the pipeline. `project` and `target` give it places,
    where its spec does not say all. Rows that end at or before `closed_until` are frozen, for
    `closed_reason`.
    """

    pipeline: str
    at: datetime
    watermark: datetime | None = None
    shown_watermark: datetime | None = None
    freshness_us: int | None = None
    run: int | None = None
    ran_at: datetime | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    totals: Mapping[str, int] = field(default_factory=dict)
    alarms: tuple[Alarm, ...] = ()
    published_run: int | None = None
    published_at: datetime | None = None
    held: tuple[str, ...] = ()
    validated_run: int | None = None
    validated_at: datetime | None = None
    passed: bool | None = None
    open: tuple[str, ...] = ()
    writer: str | None = None
    lake: str = ""
    project: str | None = None
    target: str | None = None
    closed_until: datetime | None = None
    closed_reason: str | None = None
    unseen: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    @property
    def lag_seconds(self) -> int | None:
        """How far the watermark lies behind; negative where it is ahead."""
        return self._seconds_since(self.watermark)

    @property
    def shown_lag_seconds(self) -> int | None:
        """How far the watermark of what readers see lies behind."""
        return self._seconds_since(self.shown_watermark)

    @property
    def lag(self) -> str | None:
        """The lag of the watermark in words."""
        seconds = self.lag_seconds
        return None if seconds is None else describe_age(seconds * SECOND)

    @property
    def ran(self) -> str | None:
        """How long ago the newest run ended, in words."""
        seconds = self._seconds_since(self.ran_at)
        return None if seconds is None else f"{describe_age(seconds * SECOND)} ago"

    @property
    def state(self) -> str:
        """The first reason to look at it in one word, or whether it is fresh or running.

        Without `freshness` in the spec it is not known whether it is fresh, and it is ok.
        """
        if self.is_stale:
            return "stale"
        if self.passed is False:
            return "failed"
        if self.open:
            return "running" if self.writer else "open"
        if self.run is None:
            return "no run"
        return "ok" if self.freshness_us is None else "fresh"

    @property
    def is_stale(self) -> bool:
        """Whether that is more than the `freshness` of the spec, or nothing is there to be seen."""
        if self.freshness_us is None:
            return False
        if self.shown_watermark is None:
            return True
        return micros(self.at) - micros(self.shown_watermark) > self.freshness_us

    @property
    def is_left_open(self) -> bool:
        """Whether a step is open that nobody works on."""
        return bool(self.open) and self.writer is None

    @property
    def needs_attention(self) -> bool:
        """Whether it is stale, or left open, or its newest validation failed."""
        return self.is_stale or self.is_left_open or self.passed is False

    @property
    def reasons(self) -> tuple[str, ...]:
        """A sentence for each thing that somebody should look at, alarms of the last run too."""
        found = []
        if self.is_stale and self.freshness_us is not None:
            allowed = Duration(self.freshness_us)
            found.append(f"stale: {self._describe_lag()}; freshness is {allowed}")
        if self.is_left_open:
            found += [f"open: {step}" for step in self.open]
        if self.passed is False:
            found.append(f"failed: run {self.validated_run} does not meet its expectations")
        if self.held:
            found.append(f"held: readers see an older version of {join_names(self.held)}")
        if self.unseen:
            found.append(f"unseen: readers see nothing of {join_names(self.unseen)} yet")
        if self.added:
            found.append(_describe_added(self.added))
        found += [f"alarm: {alarm.text}" for alarm in self.alarms]
        return tuple(found)

    def as_json(self) -> dict[str, object]:
        """The status as plain JSON values; times are ISO 8601 in UTC, lengths whole seconds."""
        freshness = None if self.freshness_us is None else self.freshness_us // SECOND
        return {
            **plain_fields(self, "freshness_us"),
            "needs_attention": self.needs_attention,
            "reasons": list(self.reasons),
            "stale": self.is_stale,
            "freshness_seconds": freshness,
            "lag_seconds": self.lag_seconds,
            "shown_lag_seconds": self.shown_lag_seconds,
        }

    def _seconds_since(self, then: datetime | None) -> int | None:
        return None if then is None else (micros(self.at) - micros(then)) // SECOND

    def _describe_lag(self) -> str:
        if self.shown_watermark is None:
            return "there is no watermark yet"
        lag = describe_age(micros(self.at) - micros(self.shown_watermark))
        whose = "" if self.published_run is None else " of what readers see"
        return f"the watermark{whose} is {lag} behind"


def describe_status(
    pipeline: Pipeline,
    past: LedgerHistory,
    judged: Judgement | None,
    writer: str | None,
    now: datetime,
) -> Status:
    """How the pipeline stands at `now`; `writer` is who holds its lock, where a step is open."""
    closed, published, by = past.closed, past.published, pipeline.placed_by
    period = past.period
    runs = tuple(entry for entry in past.entries if entry.step == CLOSE)
    return Status(
        pipeline=pipeline.name,
        at=now,
        watermark=_moment(past.watermark),
        shown_watermark=_moment(_find_shown_watermark(pipeline, past)),
        freshness_us=pipeline.freshness_us,
        run=None if closed is None else closed.run,
        ran_at=None if closed is None else _moment(closed.at),
        counts=_select_counts(() if closed is None else (closed,)),
        totals=_select_counts(runs),
        alarms=list_last_alarms(past, pipeline.alarms),
        published_run=None if published is None else published.run,
        published_at=None if published is None else _moment(published.at),
        held=_list_held(pipeline, past),
        unseen=_list_unseen(pipeline, past),
        added=_list_added(pipeline, past),
        validated_run=None if judged is None else judged.run,
        validated_at=None if judged is None else _moment(judged.at_us),
        passed=None if judged is None else judged.passed or _was_accepted(past, judged),
        open=left_open(past),
        writer=writer,
        lake=pipeline.lake.text,
        project=None if by is None else by.project,
        target=None if by is None else by.target,
        closed_until=None if period is None else _moment(period.until_us),
        closed_reason=None if period is None else period.reason,
    )


def describe_age(us: int) -> str:
    """A length by its two largest units, rounded down, and none below minutes beside them.

    >>> describe_age(3 * DAY + 5 * HOUR + 59 * MINUTE), describe_age(90 * SECOND)
    ('3 d 5 h', '1 min')
    >>> describe_age(2 * HOUR), describe_age(-5)
    ('2 h', '0 s')
    """
    if us < MINUTE:
        return f"{max(us, 0) // SECOND} s"
    days, rest = divmod(us, DAY)
    hours, rest = divmod(rest, HOUR)
    parts = [(days, "d"), (hours, "h"), (rest // MINUTE, "min")]
    shown = [f"{number:,} {unit}" for number, unit in parts if number]
    return " ".join(shown[:1] if days and not hours else shown[:2])


def _find_shown_watermark(pipeline: Pipeline, past: LedgerHistory) -> int | None:
    """W of the oldest run that readers see of an output; of the newest run before anything is."""
    shown = [past.run_shown(window.name) for window in pipeline.windows]
    runs = [run for run in shown if run is not None]
    return past.watermark_of(min(runs)) if runs else past.watermark


def _list_held(pipeline: Pipeline, past: LedgerHistory) -> tuple[str, ...]:
    """The outputs that the newest publication has not brought to its run.

    One that a rollback has left as it was shows a newer run, and is not held.
    """
    published = past.published
    if published is None:
        return ()
    shown = {window.name: past.run_shown(window.name) for window in pipeline.windows}
    return tuple(
        name for name, run in shown.items() if run is not None and run < (published.run or 0)
    )


def _list_unseen(pipeline: Pipeline, past: LedgerHistory) -> tuple[str, ...]:
    """The outputs that have rows, and are in no publication although there is one."""
    if past.published is None or past.newest is None:
        return ()
    names = [window.name for window in pipeline.windows if window.name in past.newest.versions]
    return tuple(name for name in names if past.run_shown(name) is None)


def _list_added(pipeline: Pipeline, past: LedgerHistory) -> tuple[str, ...]:
    """The outputs that have come into the spec since the newest run."""
    if past.newest is None:
        return ()
    names = [window.name for window in pipeline.windows]
    return tuple(name for name in names if name not in past.newest.versions)


def _describe_added(names: Sequence[str]) -> str:
    are, them = ("is", "it") if len(names) == 1 else ("are", "them")
    return f"{join_names(names)} {are} new in the spec, and the next run fills {them}"


def _was_accepted(past: LedgerHistory, judged: Judgement) -> bool:
    """Whether readers see what was judged, as after `publish --accept`, or what is left of it."""
    steps = (entry for entry in past.entries if entry.seq == judged.seq)
    published = until_own_publication(past)
    return any(entry.step in FINISHED and published.shows(entry) for entry in steps)


def _select_counts(entries: tuple[LedgerEntry, ...]) -> dict[str, int]:
    sums = sum_entry_counts(entries)
    return {name: sums.get(name, 0) for name in COUNTS}


def _moment(us: int | None) -> datetime | None:
    return None if us is None else moment(us)
