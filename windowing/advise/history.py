"""What arrived when: events in batches, and how late each one was. Values from values.

Every batch is taken as one run. The events of the first one can't be late, as those of a pipeline's
first run, because nothing had arrived before.
"""

from dataclasses import dataclass, replace

import numpy as np

from windowing.advise.ends import NEVER_US, Ends, find_ends
from windowing.advise.rule import Lengths, Margins
from windowing.grid.boundaries import Flags, Instants
from windowing.spec.pipeline import Pipeline, Watermark

UNKNOWN_US = np.iinfo(np.int64).min
"""The highest event time of a batch of which it is not known; it is before every instant."""


@dataclass(frozen=True)
class Batches:
    """When each batch arrived, never before an earlier one, and its highest event time.

    `high_us` is what is known besides the events that were read: `UNKNOWN_US` where that is none.
    """

    arrived_us: Instants
    high_us: Instants


@dataclass(frozen=True)
class Events:
    """Of each event its batch, its event time, and the numbers of its key and of its group.

    `ids` are numbers of event ids, -1 for none; None where the spec names no column of ids.
    """

    batch: Instants
    time: Instants
    key: Instants
    group: Instants
    ids: Instants | None = None

    def select(self, chosen: Instants | Flags) -> "Events":
        """Those at some places, or where an array of booleans is true."""
        ids = None if self.ids is None else self.ids[chosen]
        return Events(
            self.batch[chosen], self.time[chosen], self.key[chosen], self.group[chosen], ids
        )


@dataclass(frozen=True)
class History:
    """Batches and the events that would have been judged, none quarantined and none a copy.

    So many events had an event time too far `ahead` of their arrival, and so many were `copies`.
    """

    batches: Batches
    events: Events
    ahead: int
    copies: int


def build_history(pipeline: Pipeline, batches: Batches, events: Events, every_us: int) -> History:
    """The history as a pipeline would have read it that runs every `every_us`, or 0: at each batch.

    Batches that arrived within the same stretch of that length are one. Of no batch it is empty.
    """
    run = _number_runs(batches.arrived_us, every_us)
    last = np.flatnonzero(np.diff(run, append=-1))
    arrived = batches.arrived_us[last]
    limit = pipeline.watermark.max_future_us
    # What is quarantined moves no watermark.
    sound = np.where(batches.high_us > arrived[run] + limit, UNKNOWN_US, batches.high_us)
    highs = np.full(len(arrived), UNKNOWN_US)
    np.maximum.at(highs, run, sound)
    events = replace(events, batch=run[events.batch])
    in_time = events.time <= arrived[events.batch] + limit
    kept = events.select(in_time)
    once = kept if kept.ids is None else kept.select(_find_first_copies(kept, kept.ids))
    return History(
        Batches(arrived, highs),
        once,
        ahead=len(events.time) - len(kept.time),
        copies=len(kept.time) - len(once.time),
    )


def _number_runs(arrived: Instants, every_us: int) -> Instants:
    """By batch the number of its run, from 0."""
    if not every_us:
        return np.arange(len(arrived))
    stretch = arrived // every_us
    return np.cumsum(np.diff(stretch, prepend=stretch[:1]) > 0)


def _find_first_copies(events: Events, ids: Instants) -> Instants:
    """The places of the events whose id did not arrive before, and of those without one."""
    order = np.lexsort((events.time, events.batch))
    _, first = np.unique(ids[order], return_index=True)
    chosen = np.zeros(len(ids), bool)
    chosen[order[first]] = True
    return np.flatnonzero(chosen | (ids < 0))


@dataclass(frozen=True)
class Judged:
    """The events after the first batch, and how late each was.

    `behind` is how far its event time lies before the highest one that had arrived in earlier
    batches, 0 where none is higher. `age` is how long after its event time it arrived; it is below
    0 where that was ahead of the clock. `over_first` and `over_last` are the margins of `Margins`.
    """

    events: Events
    arrived: Instants
    behind: Instants
    age: Instants
    ends: Ends
    over_first: Instants
    over_last: Instants


def find_highest(history: History) -> Instants:
    """By batch the highest event time that had arrived with it, each at most its arrival.

    It is `UNKNOWN_US` while nothing is known.
    """
    batches, events = history.batches, history.events
    highs = batches.high_us.copy()
    np.maximum.at(highs, events.batch, events.time)
    return np.maximum.accumulate(np.minimum(highs, batches.arrived_us))


def find_bases(history: History, watermark: Watermark) -> Instants:
    """By batch what the watermark that judges it is the delay behind of; or `UNKNOWN_US`.

    It is the highest event time of earlier batches. With `idle_after` it has advanced over a
    silence as if a run had looked just before the next batch, and as if each batch that brought an
    event had brought one that is accepted.
    """
    base = np.roll(find_highest(history), 1)
    base[0] = UNKNOWN_US
    if watermark.idle_after_us is None:
        return base
    silent = _measure_silences(history)
    is_idle = (silent >= watermark.idle_after_us) & (base != UNKNOWN_US)
    return np.maximum.accumulate(np.where(is_idle, base + silent, base))


def _measure_silences(history: History) -> Instants:
    """By batch how long before it the last earlier one arrived that brought an event."""
    arrived = history.batches.arrived_us
    brought = history.batches.high_us != UNKNOWN_US
    brought[history.events.batch] = True
    last = np.maximum.accumulate(np.where(brought, arrived, arrived[0]))
    before: Instants = np.concatenate([arrived[:1], last[:-1]])
    return arrived - before


def judge(pipeline: Pipeline, history: History) -> Judged:
    """How late every event was that arrived after something else had."""
    base = find_bases(history, pipeline.watermark)[history.events.batch]
    known = base != UNKNOWN_US
    events, base = history.events.select(known), base[known]
    arrived = history.batches.arrived_us[events.batch]
    ends = find_ends(pipeline, events.time)
    return Judged(
        events,
        arrived,
        behind=np.maximum(base - events.time, 0),
        age=arrived - events.time,
        ends=ends,
        over_first=_measure_over(base, ends.first),
        over_last=_measure_over(base, ends.last),
    )


def _measure_over(base: Instants, end: Instants) -> Instants:
    """How far `base` is past each end; as far before as can be where there is no end."""
    over = base - np.where(end == NEVER_US, 0, end)
    found: Instants = np.where(end == NEVER_US, UNKNOWN_US, over)
    return found


def find_margins(judged: Judged) -> Margins:
    """The margins of all events, and those of rows of outputs."""
    events = judged.events
    # What arrives together for one row of an output changes it once.
    order = np.lexsort((judged.ends.first, events.key, events.batch))
    columns = (events.batch, events.key, judged.ends.first)
    is_new = np.zeros(len(order), bool)
    is_new[:1] = True
    for column in columns:
        is_new[1:] |= np.diff(column[order]) != 0
    return Margins(
        Lengths.of(judged.over_first),
        Lengths.of(judged.over_last),
        Lengths.of(judged.over_first[order[is_new]]),
    )
