"""The referee of all other tests.

What the output must be, by plain loops over every event ever accepted, in whole microseconds.
"""

import operator
from calendar import monthrange
from collections import Counter
from dataclasses import dataclass, field, replace

from tests.wall_clock import EPOCH, MICROSECOND, instant, wall

Row = dict[str, float | None]

OPERATORS = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


@dataclass(frozen=True)
class Event:
    """A source row: `bad` says why it cannot be read.

    `order` stands for `order_by`, `attr` is Delta's attribute, `mark` Punctuation's.
    """

    key: object
    t: int | None
    value: float | None = None
    id: str | None = None
    order: int = 0
    bad: str | None = None
    attr: float | None = None
    mark: bool = False

    def __lt__(self, other: "Event") -> bool:  # event order; a null id comes first
        return (self.t, self.id is not None, self.id or "", self.order) < (
            other.t,
            other.id is not None,
            other.id or "",
            other.order,
        )


@dataclass(frozen=True)
class Window:
    """What all windows have in common; they are half-open.

    `emit` is on_change, on_close or changes, `having` is (aggregate, operator, number), `empty`
    fills the holes of a key.
    """

    name: str
    emit: str = field(default="on_change", kw_only=True)
    having: tuple[str, str, float] | None = field(default=None, kw_only=True)
    empty: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Tumbling(Window):
    """Windows between neighbouring boundaries of a grid.

    Boundary k lies `k * size`, or `k * months` calendar months, after `origin` on the wall clock of
    `zone` (None: UTC).
    """

    size: int = 0
    months: int = 0
    origin: int = 0
    zone: str | None = None


@dataclass(frozen=True)
class Sliding(Window):
    """Window k is `size` long and starts at `origin + k * slide`, on the clock of `zone` or UTC."""

    size: int
    slide: int
    origin: int = 0
    zone: str | None = None


@dataclass(frozen=True)
class Cumulate(Window):
    """In every period, windows that all begin with it.

    A period is a window of Tumbling. Its windows run from its start to 1, 2, … times `step`, or
    `step_months`, later, and to its end.
    """

    size: int = 0
    months: int = 0
    step: int = 0
    step_months: int = 0
    origin: int = 0
    zone: str | None = None


Grid = Tumbling | Sliding | Cumulate


@dataclass(frozen=True)
class Session(Window):
    """Maximal chains of neighbours at most `gap` apart.

    Each is `[first, last + gap)`; an event `max_duration` after the first begins anew.
    """

    gap: int
    max_duration: int | None = None


@dataclass(frozen=True)
class RecordSliding(Window):
    """Two windows for every event, one back from it and one on from just after it.

    For every t, floored to the tick: `[t - difference, t]`, and if it holds an event
    `[t + tick, t + tick + difference]`. Both ends are inside.
    """

    difference: int
    tick: int = 1000


@dataclass(frozen=True)
class Count(Window):
    """In event order, window i holds `count` events from the one at `i * every` on.

    `every` is `count` where it is not given.
    """

    count: int
    every: int | None = None


@dataclass(frozen=True)
class Delta(Window):
    """In event order, an event whose `attr` is too large closes a window and opens the next.

    Too large is: more than `delta` above that of the window's first event.
    """

    delta: float


class Punctuation(Window):
    """In event order, a marked event closes the window and is in none."""


class Global(Window):
    """One window for all time."""


def reading(window: Grid, k: int) -> int:
    """What the wall clock shows at boundary k.

    Months step from the origin, not from each other, clamped to the month's last day.
    """
    if isinstance(window, Sliding) or not window.months:
        return window.origin + k * (window.slide if isinstance(window, Sliding) else window.size)
    origin = EPOCH + window.origin * MICROSECOND
    year, month = divmod(origin.year * 12 + origin.month - 1 + k * window.months, 12)
    day = min(origin.day, monthrange(year, month + 1)[1])
    return (origin.replace(year=year, month=month + 1, day=day) - EPOCH) // MICROSECOND


def span(window: Grid, k: int) -> tuple[int, int]:
    """Window k, or period k of Cumulate.

    It is empty, `[start, start)`, where its two boundaries coincide.
    """
    end = (
        reading(window, k) + window.size if isinstance(window, Sliding) else reading(window, k + 1)
    )
    return instant(reading(window, k), window.zone), instant(end, window.zone)


def between(window: Grid, first: int, last: int) -> list[tuple[int, int]]:
    """In order, the windows that end after `first` and begin at or before `last`.

    None is empty, and those whose both ends coincide are one.
    """
    found, k = (
        set(),
        (wall(first, window.zone) - window.origin) // (reading(window, 1) - window.origin),
    )
    while span(window, k)[1] > first:
        k -= 1
    while (whole := span(window, k))[0] <= last:
        found.add(whole)
        if isinstance(window, Cumulate):
            steps = Tumbling(
                "steps", window.step, window.step_months, reading(window, k), window.zone
            )
            found |= {
                (whole[0], min(end, whole[1])) for _, end in between(steps, whole[0], whole[1] - 1)
            }
        k += 1
    return sorted((start, end) for start, end in found if start < end and first < end)


def spans(window: Grid | RecordSliding, t: int) -> set[tuple[int, int]]:
    """Every `[start, end)` of a grid with `start <= t < end`.

    Of RecordSliding, the two windows that an event at t makes.
    """
    if not isinstance(window, RecordSliding):
        return set(between(window, t, t))
    t -= t % window.tick
    return {
        (start, start + window.difference + window.tick)
        for start in (t - window.difference, t + window.tick)
    }


def ends(window: Window, t: int) -> list[int | None]:
    """What an event at t is judged by, for all kinds but Session.

    It is late for the window when it is late for all of them.
    """
    if isinstance(window, RecordSliding):
        return [t - t % window.tick + window.tick + reach for reach in (0, window.difference)]
    if isinstance(window, Grid):
        return [end for _, end in spans(window, t)]
    return [None if isinstance(window, Global) else t + 1]


def in_turn(window: Window, events: list[Event]) -> list[tuple[list[Event], Event | None]]:
    """The windows that events in event order fill one after the other.

    Each comes with the event that completes it, if there is one.
    """
    if isinstance(window, Count):
        parts = [
            events[n : n + window.count]
            for n in range(0, len(events), window.every or window.count)
        ]
        return [(held, held[-1] if len(held) == window.count else None) for held in parts]
    done, held = [], []
    for e in events:
        marked = isinstance(window, Punctuation) and e.mark
        apart = (
            isinstance(window, Session)
            and held
            and (e.t > held[-1].t + window.gap or passed(held[0].t, window.max_duration, e.t))
        )
        if held and (
            marked or apart or (isinstance(window, Delta) and e.attr - held[0].attr > window.delta)
        ):
            done, held = [*done, (held, e)], []
        held = held if marked else [*held, e]
    return [*done, (held, None)] if held else done


def aggregates(events: list[Event]) -> Row:
    """The row of one window: `count` counts events, the others skip null values.

    An integer sum beyond 64 bits is None.
    """
    values = [e.value for e in sorted(events) if e.value is not None]
    row = {"count": len(events), "distinct": len(set(values))}
    if not values:
        return row | dict.fromkeys(("sum", "min", "max", "avg", "first", "last"))
    total = sum(values)
    exact = total if isinstance(total, float) or -(2**63) <= total < 2**63 else None
    return row | {
        "sum": exact,
        "avg": total / len(values),
        "first": values[0],
        "last": values[-1],
        "min": min(values),
        "max": max(values),
    }


def passed(t: int | None, by: int | None, now: int | None) -> bool:
    """Whether `t + by <= now`; never with a None."""
    return None not in (t, by, now) and t + by <= now


@dataclass(frozen=True)
class Admitted:
    """An accepted event, the watermark it was judged by, and the windows it was late for.

    `missed` is {name: end of the last one missed}.
    `settled`: for windows that came later it is on time, unless it has a watermark.
    """

    event: Event
    watermark: int | None = None
    missed: tuple[tuple[str, int], ...] = ()
    settled: bool = False


@dataclass
class Oracle:
    """Remembers every row read and its outcome.

    Tables are computed from the accepted events and the watermark, and nothing else.
    """

    delay: int
    lateness: int | None  # None: forever
    max_future: int
    horizon: int | None
    windows: tuple[Window, ...]
    idle_after: int | None = None
    by_arrival: bool = False
    watermark: int | None = None  # None: minus infinity
    arrival: int | None = None
    reached: int | None = (
        None  # the highest event time of any run, none beyond the arrival of its run
    )
    active: int | None = None  # the arrival of the last run that accepted a row
    outcomes: list[tuple[Event, str]] = field(default_factory=list)
    accepted: list[Admitted] = field(default_factory=list)
    erased: set[tuple[str, object]] = field(default_factory=set)  # values whose rows count nowhere

    def run(self, batch: list[Event], arrival: int) -> dict[str, int]:
        """Judges every row by the watermark of the run before, then moves the watermark once.

        Gives the counts of the run. One that reads nothing and moves no watermark was never there:
        the next run doesn't know its arrival.
        """
        known, before = self.arrival, self.watermark
        self.arrival = max({arrival, self.arrival} - {None})
        judged = self._judge(
            [replace(e, t=self.arrival) for e in batch] if self.by_arrival else batch
        )
        self.outcomes += judged
        if times := [e.t for e, outcome in judged if outcome == "accepted"]:
            self.active, self.reached = (
                self.arrival,
                max({self.reached, min(max(times), self.arrival)} - {None}),
            )
        if times or passed(self.active, self.idle_after, self.arrival):
            self.watermark = max(
                {self.watermark, self.reached + self.arrival - self.active - self.delay} - {None}
            )
        if not batch and self.watermark == before:
            self.arrival = known
        return {"read": len(batch)} | {
            o: [said for _, said in judged].count(o)
            for o in ("accepted", "late", "duplicate", "quarantined", "erased")
        }

    def _judge(self, batch: list[Event]) -> list[tuple[Event, str]]:
        """The outcome of every row.

        Rows with an erased value are as if they were not there. Of the copies of an id, the first
        in event order that is not late is accepted.
        """
        gone = [(e, "erased") for e in batch if vars(e).items() & self.erased]
        batch = [e for e in batch if not vars(e).items() & self.erased]
        known = {
            a.event.id for a in self.accepted if not passed(a.event.t, self.horizon, self.watermark)
        } - {None}
        unfit = [e for e in batch if self._unfit(e, self.arrival)]
        fresh = [e for e in batch if e not in unfit and e.id not in known]
        missed = {e: self._missed(e, fresh) for e in fresh}
        judged = [
            (e, "quarantined" if e in unfit else "duplicate") for e in batch if e not in missed
        ]
        for e in sorted(fresh, key=lambda e: (missed[e][1], e)):
            outcome = "duplicate" if e.id in known else "late" if missed[e][1] else "accepted"
            judged.append((e, outcome))
            if outcome == "accepted":
                known |= {e.id} - {None}
                self.accepted.append(Admitted(e, self.watermark, missed[e][0]))
        return judged + gone

    def _unfit(self, e: Event, arrival: int) -> bool:
        lacks = any(isinstance(w, Delta) for w in self.windows) and (
            e.attr is None or e.attr != e.attr
        )
        null = None in (e.t, *(e.key if isinstance(e.key, tuple) else (e.key,)))
        return e.bad is not None or null or lacks or e.t > arrival + self.max_future

    def _missed(self, e: Event, fresh: list[Event]) -> tuple[tuple[tuple[str, int], ...], bool]:
        """The windows the event is late for, as (name, end of the last one missed).

        The second value is whether it is late for all it belongs to.
        """
        missed, in_time = [], False
        for window in (w for w in self.windows if not (isinstance(w, Punctuation) and e.mark)):
            own = (
                [self._chain_end(window, e, fresh)]
                if isinstance(window, Session)
                else ends(window, e.t)
            )
            gone = [end for end in own if passed(end, self.lateness, self.watermark)]
            missed += [(window.name, max(gone))] if gone else []
            in_time = in_time or len(gone) < len(own)
        return tuple(missed), bool(missed) and not in_time

    def _chain_end(self, window: Session, event: Event, fresh: list[Event]) -> int:
        """The end of the final session that the event touches.

        Where there is none, the end of its chain among the run's events and the other sessions.
        """
        gap, held = window.gap, [a.event for a in self._held(window, event.key)]
        final = [
            c
            for c, _ in in_turn(window, held)
            if passed(c[-1].t + 2 * gap, self.lateness, self.watermark)
        ]
        walls = {
            e: [c[-1].t for c in final if c[0].t - gap <= e.t <= c[-1].t + gap]
            for e in fresh
            if e.key == event.key
        }
        free = [e for e in walls if not walls[e]] + held[sum(len(c) for c in final) :]
        chains = in_turn(replace(window, max_duration=None), sorted(free))
        return gap + max(
            walls[event] or [c[-1].t for c, _ in chains if c[0].t <= event.t <= c[-1].t]
        )

    def _held(self, window: Window, key: object) -> list[Admitted]:
        """The events of a key, in event order, but for those late for every window of this kind."""
        mine = sorted((a for a in self.accepted if a.event.key == key), key=lambda a: a.event)
        if isinstance(window, Session):
            return [a for a in mine if window.name not in dict(a.missed)]
        return [
            a
            for a in mine
            if not all(passed(end, self.lateness, a.watermark) for end in ends(window, a.event.t))
        ]

    def _aligned(
        self, window: Window, held: list[Admitted]
    ) -> dict[tuple[int | None, ...], tuple[Row, int | None]]:
        """The windows that hold an event; with `empty` those between them too.

        For `changes`, those that differ from the one before.
        """
        rows, before, period = {}, aggregates([]), None
        made = {
            place
            for a in held
            for place in spans(window, a.event.t)
            if not passed(place[1], self.lateness, a.watermark)
        }
        for start, end in (
            between(window, min(made)[0], max(made)[1])
            if made and (window.empty or window.emit == "changes")
            else made
        ):
            row = aggregates(
                [
                    a.event
                    for a in held
                    if start <= a.event.t < end and not passed(end, self.lateness, a.watermark)
                ]
            )
            before = aggregates([]) if isinstance(window, Cumulate) and start != period else before
            hole = window.empty and min(made) <= (start, end) <= max(made)
            if (row != before) if window.emit == "changes" else (row["count"] or hole):
                rows[start, end] = row, end
            before, period = row, start
        return rows

    def _sequential(
        self, window: Window, held: list[Admitted]
    ) -> dict[tuple[int | None, ...], tuple[Row, int | None]]:
        """The windows that events in event order fill one after the other."""
        rows = {}
        for n, (events, closing) in enumerate(in_turn(window, [a.event for a in held])):
            first, last, row = events[0].t, events[-1].t, aggregates(events)
            if isinstance(window, Session):
                end = (
                    last + window.gap
                    if window.max_duration is None
                    else min(last + window.gap, first + window.max_duration)
                )
                rows[first, end] = row | {"last_event": last}, last + 2 * window.gap
            elif isinstance(window, Global):
                rows[None, None] = row, None
            else:
                rows[first, last + 1, n] = row | {"window_index": n}, closing and closing.t + 1
        return rows

    def closed_final(self, name: str) -> dict[tuple[object, ...], tuple[bool, bool]]:
        """For each row of the table, whether it is closed and whether it is final.

        Closed: W has passed its end. Final: nothing but a backfill can change it any more.
        """
        return {place: (closed, final) for place, (_, closed, final) in self._shown(name).items()}

    def table(self, name: str) -> dict[tuple[object, ...], Row]:
        """The rows by (key, start, end).

        For Count, Delta and Punctuation, which can coincide, they are by (key, start, end,
        window_index).
        """
        return {place: row for place, (row, _, _) in self._shown(name).items()}

    def _shown(self, name: str) -> dict[tuple[object, ...], tuple[Row, bool, bool]]:
        """The rows that `emit`, `empty` and `having` let through.

        Each comes with whether it is closed and whether it is final.
        """
        window, shown = next(w for w in self.windows if w.name == name), {}
        aggregate, compare, number = window.having or ("count", ">=", 0)
        for key in {a.event.key for a in self.accepted}:
            rows = self._aligned if isinstance(window, Grid | RecordSliding) else self._sequential
            for place, (row, by) in rows(window, self._held(window, key)).items():
                closed, final = (
                    passed(place[1], 0, self.watermark),
                    passed(by, self.lateness, self.watermark),
                )
                fits = row[aggregate] is not None and OPERATORS[compare](row[aggregate], number)
                if fits and (window.emit == "on_change" or (closed and by is not None)):
                    shown[key, *place] = row, closed, final
        return shown

    def respecify(self, windows: tuple[Window, ...]) -> None:
        """Windows come and go.

        An event that was late for a window there was is judged by its watermark for those that
        come; all others are on time for them.
        """
        self.accepted = [a if a.settled else self._settled(a) for a in self.accepted]
        self.windows = windows

    def _settled(self, a: Admitted) -> Admitted:
        """A marker was late for the window that it would have closed, too."""
        marks = a.event.mark and any(isinstance(w, Punctuation) for w in self.windows)
        late = a.missed or (marks and passed(a.event.t + 1, self.lateness, a.watermark))
        return replace(a, watermark=a.watermark if late else None, settled=True)

    def backfill(self, source: list[Event], start: int, end: int, arrival: int) -> None:
        """Accepts each event of `[start, end)` that a run has read and that `source` still has.

        The tables become what they were had the events been on time; W stays.
        """
        live = Counter(a.event for a in self.accepted if start <= a.event.t < end)
        self.accepted = [a for a in self.accepted if a.event not in live]
        taken, was_read = (
            {a.event.id for a in self.accepted} - {None},
            Counter(replace(e, bad=None) for e, _ in self.outcomes),
        )
        found = [
            e
            for e in (Counter(source) & was_read).elements()
            if not (vars(e).items() & self.erased or self._unfit(e, arrival)) and start <= e.t < end
        ]
        for e in sorted(found, key=lambda e: (live[e] == 0, e)):
            if live[e] > 0 or e.id not in taken:
                live[e], taken = live[e] - 1, taken | ({e.id} - {None})
                self.accepted.append(Admitted(e))

    def erase(self, value: object, name: str = "key") -> None:
        """Nothing with the value in that field was ever accepted, nor is from now on; W stays."""
        self.erased.add((name, value))
        self.accepted = [a for a in self.accepted if not vars(a.event).items() & self.erased]

    def lift(self, value: object, name: str = "key") -> None:
        """What is read from now on counts again, and what was read before by a backfill."""
        self.erased.discard((name, value))
