"""Alarms of a run: figures that a run should not have, as sentences.

ledger -> `RunFigures` -> `Alarm`

They are said whatever the spec says. They hold the outputs back where its `alarms` are exceeded.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low

from windowing.grid.range import Range
from windowing.ledger.history import LedgerHistory
from windowing.ledger.nulls import WHERE, read_null_counts
from windowing.ledger.rule import CLOSE, DONE, RECENT_RUNS, LedgerEntry, find_times
from windowing.report.text import count, instant_us, plain_fields
from windowing.spec.duration import DAY, Duration
from windowing.spec.pipeline import Alarms

QUARANTINED, LOST_VALUES = "quarantined", "lost_values"
MAX_AGE, AHEAD, ROWS_FACTOR = "max_age", "ahead", "rows_factor"
_MOST = 0.5
"""The share of rows above which a run is said to have quarantined or lost too many."""
_YEAR_US = 365 * DAY
"""How long 1970 was. Numbers that are read in too small a unit lie there."""
_AHEAD_US = 366 * DAY
_FACTOR = 10.0
_LEAST_RUNS, _LEAST_ROWS = 5, 100
"""From so many earlier runs on, and from so many rows on, it is known what is usual."""


@dataclass(frozen=True)
class RunFigures:
    """What one run counted; `times` are of the events that it accepted, None where it did none.

    `lost` has by computed column how many rows lost its value. `earlier` are the rows that each of
    the runs before it read, oldest first.
    """

    read: int
    quarantined: int = 0
    lost: Mapping[str, int] = field(default_factory=dict)
    times: Range | None = None
    arrival_us: int | None = None
    earlier: Sequence[int] = ()


@dataclass(frozen=True)
class Alarm:
    """A figure of a run that is wrong most likely, and whether the spec holds outputs for it.

    `figure` are the rows that it is about, or an event time in microseconds. `limit` is what the
    spec allows where it holds, as it is written there.
    """

    name: str
    text: str
    figure: int
    holds: bool
    limit: str | None = None

    def as_json(self) -> dict[str, object]:
        """The alarm as plain JSON values."""
        return plain_fields(self, "figure")


@dataclass(frozen=True)
class Raised:
    """An alarm of `run`, whose end is the ledger's entry `seq`."""

    run: int
    seq: int
    alarm: Alarm


def find_alarms(figures: RunFigures, limits: Alarms) -> tuple[Alarm, ...]:
    """The alarms of a run; none where it read nothing."""
    if not figures.read:
        return ()
    return (
        *_judge_quarantined(figures, limits.quarantined),
        *_judge_lost_values(figures, limits.lost_values),
        *_judge_oldest(figures, limits.max_age_us),
        *_judge_newest(figures),
        *_judge_rows(figures, limits.rows_factor),
    )


def gather_figures(
    done: Iterable[LedgerEntry],
    counts: Mapping[str, int],
    arrival_us: int | None,
    earlier: Sequence[int],
) -> RunFigures:
    """The figures of a run from its finished batches `done`, and its `counts` of all of them."""
    return RunFigures(
        read=counts.get("read", 0),
        quarantined=counts.get("quarantined", 0),
        lost=read_null_counts(counts),
        times=find_times(done),
        arrival_us=arrival_us,
        earlier=earlier,
    )


def list_alarms(past: LedgerHistory, limits: Alarms) -> tuple[Raised, ...]:
    """The alarms of every closed run, oldest first, as these limits judge them."""
    found = []
    batches: defaultdict[int | None, dict[int | None, LedgerEntry]] = defaultdict(dict)
    earlier: deque[int] = deque(maxlen=RECENT_RUNS)
    for entry in past.entries:
        if entry.step == DONE:
            batches[entry.run][entry.batch] = entry
        elif entry.step == CLOSE:
            done = batches.pop(entry.run, {}).values()
            figures = gather_figures(done, entry.counts, entry.arrival, tuple(earlier))
            for alarm in find_alarms(figures, limits):
                found.append(Raised(entry.run or 0, entry.seq, alarm))
            if figures.read:
                earlier.append(figures.read)
    return tuple(found)


def list_last_alarms(past: LedgerHistory, limits: Alarms) -> tuple[Alarm, ...]:
    """The alarms of the newest closed run, as these limits judge them."""
    newest = None if past.closed is None else past.closed.seq
    return tuple(each.alarm for each in list_alarms(past, limits) if each.seq == newest)


def name_alarm_count(alarm: Alarm) -> str:
    """The name of the figure of an alarm in the ledger; no window's count has this name.

    >>> name_alarm_count(Alarm("quarantined", "all", 9, False))
    'alarm(quarantined)'
    """
    return f"alarm({alarm.name})"


def _judge_quarantined(figures: RunFigures, limit: float | None) -> Iterator[Alarm]:
    is_beyond, holds = _exceeds(figures.quarantined, figures.read, limit)
    if is_beyond:
        text = f"{_some_of(figures.quarantined, figures.read)} quarantined"
        yield Alarm(QUARANTINED, text, figures.quarantined, holds, _write(limit, holds=holds))


def _judge_lost_values(figures: RunFigures, limit: float | None) -> Iterator[Alarm]:
    """At most one alarm, of the column that lost most values."""
    worst = max(figures.lost, key=lambda column: figures.lost[column], default=None)
    if worst is None:
        return
    lost = figures.lost[worst]
    # Rows that are left out are not among those read.
    of = figures.read + lost if worst == WHERE else figures.read
    is_beyond, holds = _exceeds(lost, of, limit)
    if is_beyond:
        text = f"{worst} gave no value (NULL) for {lost:,} of {count(of, 'row')} that had one"
        yield Alarm(LOST_VALUES, text, lost, holds, _write(limit, holds=holds))


def _exceeds(rows: int, of: int, limit: float | None) -> tuple[bool, bool]:
    """Whether that is said, and whether it is beyond what the spec allows."""
    share = rows / of
    holds = limit is not None and share > limit
    return holds or share > _MOST, holds


def _judge_oldest(figures: RunFigures, limit_us: int | None) -> Iterator[Alarm]:
    if figures.times is None:
        return
    first_us, arrival_us = figures.times.low_us, figures.arrival_us
    at = instant_us(first_us)
    if limit_us is not None and arrival_us is not None and arrival_us - first_us > limit_us:
        limit = str(Duration(limit_us))
        text = f"the first accepted event is of {at}, more than {limit} old"
        yield Alarm(MAX_AGE, text, first_us, holds=True, limit=limit)
    elif 0 <= first_us < _YEAR_US:
        text = (
            f"the first accepted event is of {at}; numbers since 1970 lie there where they are "
            "read in too small a unit, such as seconds as milliseconds"
        )
        yield Alarm(MAX_AGE, text, first_us, holds=False)


def _judge_newest(figures: RunFigures) -> Iterator[Alarm]:
    if figures.times is None or figures.arrival_us is None:
        return
    last_us = figures.times.high_us
    if last_us - figures.arrival_us <= _AHEAD_US:
        return
    text = (
        f"the last accepted event is of {instant_us(last_us)}, more than a year after its arrival; "
        "watermark.max_future refuses such rows"
    )
    yield Alarm(AHEAD, text, last_us, holds=False)


def _judge_rows(figures: RunFigures, limit: float | None) -> Iterator[Alarm]:
    if len(figures.earlier) < _LEAST_RUNS:
        return
    usual = median_low(figures.earlier)
    fewer, more = sorted((figures.read, usual))
    if more < _LEAST_ROWS:
        return
    holds = limit is not None and more > fewer * limit
    if holds or more > fewer * _FACTOR:
        before = f"the median of the last {count(len(figures.earlier), 'run')} is {usual:,}"
        text = f"{count(figures.read, 'row')} read, and {before}"
        yield Alarm(ROWS_FACTOR, text, figures.read, holds, _write(limit, holds=holds))


def _write(limit: float | None, *, holds: bool) -> str | None:
    """A limit of the spec that is exceeded."""
    return None if limit is None or not holds else f"{limit:g}"


def _some_of(rows: int, of: int) -> str:
    were = "was" if rows == 1 else "were"
    return f"{rows:,} of {count(of, 'row')} {were}"
