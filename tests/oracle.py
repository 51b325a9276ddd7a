"""What the output must be, by loops over every event ever accepted: slow, plain, and the referee of all other tests.

All times are integer microseconds: instants since 1970-01-01T00:00Z, or readings of a wall clock since 1970-01-01T00:00 on that clock.
Every window is half-open, `[start, end)`. A watermark of None is minus infinity, a lateness of None is forever.
"""

from calendar import monthrange
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

Key = tuple[object, ...] | str
Place = tuple[Key, int]  # (key, event time): all that lateness depends on
Refusal = tuple["Event", str, int]  # (event, reason, run)
Row = dict[str, int | float | None]

MICROSECOND = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1) // MICROSECOND


@dataclass(frozen=True)
class Event:
    """One source row; `bad` is the reason why it cannot be read, `order` stands for the columns the spec orders by."""

    key: Key
    t: int | None
    value: int | float | None = None
    id: str | None = None
    order: int = 0
    bad: str | None = None


@dataclass(frozen=True)
class Tumbling:
    """Boundary k lies `k * size`, or `k * months` calendar months, after `origin` on the wall clock of `zone` (None: UTC)."""

    name: str
    size: int = 0
    months: int = 0
    origin: int = 0
    zone: str | None = None


@dataclass(frozen=True)
class Sliding:
    """Window k runs from `origin + k * slide` for `size` on the wall clock of `zone` (None: UTC)."""

    name: str
    size: int
    slide: int
    origin: int = 0
    zone: str | None = None


@dataclass(frozen=True)
class Session:
    """Maximal chains of one key's events whose neighbours are at most `gap` apart: `[first, last + gap)`."""

    name: str
    gap: int


Window = Tumbling | Sliding | Session


def wall(t: int, zone: str | None) -> int:
    """What the wall clock of `zone` shows at the instant t."""
    if zone is None:
        return t
    return ((EPOCH + t * MICROSECOND).astimezone(ZoneInfo(zone)).replace(tzinfo=UTC) - EPOCH) // MICROSECOND


def instant(local: int, zone: str | None) -> int:
    """The first instant at which the wall clock of `zone` shows `local` or later: the earlier in a fold, the transition in a gap."""
    if zone is None:
        return local
    reading = (EPOCH + local * MICROSECOND).replace(tzinfo=ZoneInfo(zone))
    earlier = (reading.astimezone(UTC) - EPOCH) // MICROSECOND
    if wall(earlier, zone) == local:
        return earlier
    # The clock jumped over `local`: read with the offset after the jump it lies before the transition, with the one before not before it.
    before, after = (reading.replace(fold=1).astimezone(UTC) - EPOCH) // MICROSECOND, earlier
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (middle, after) if wall(middle, zone) < local else (before, middle)
    return after


def boundary(window: Tumbling, k: int) -> int:
    """The instant of boundary k; months step from the origin, not from each other, and are clamped to the month's last day."""
    if not window.months:
        return instant(window.origin + k * window.size, window.zone)
    origin = EPOCH + window.origin * MICROSECOND
    year, month = divmod(origin.year * 12 + origin.month - 1 + k * window.months, 12)
    day = min(origin.day, monthrange(year, month + 1)[1])
    return instant((origin.replace(year=year, month=month + 1, day=day) - EPOCH) // MICROSECOND, window.zone)


def span(window: Tumbling | Sliding, k: int) -> tuple[int, int]:
    """Window k of a grid; empty, `[start, start)`, where its two boundaries coincide."""
    if isinstance(window, Tumbling):
        return boundary(window, k), boundary(window, k + 1)
    start = window.origin + k * window.slide
    return instant(start, window.zone), instant(start + window.size, window.zone)


def spans(window: Tumbling | Sliding, t: int) -> set[tuple[int, int]]:
    """Every `[start, end)` of the grid with `start <= t < end`; windows whose both ends coincide are one."""
    step = window.slide if isinstance(window, Sliding) else window.size or window.months * 30 * DAY
    k = (wall(t, window.zone) - window.origin) // step
    while span(window, k + 1)[0] <= t:
        k += 1
    found = set()
    while span(window, k)[1] > t:
        found.add(span(window, k))
        k -= 1
    return {(start, end) for start, end in found if start <= t}


def chains(times: Iterable[int], gap: int) -> list[list[int]]:
    """The distinct times cut wherever two neighbours are more than `gap` apart."""
    found: list[list[int]] = []
    for t in sorted(set(times)):
        if found and t - found[-1][-1] <= gap:
            found[-1].append(t)
        else:
            found.append([t])
    return found


def at(event: Event) -> int:
    """The event time of an event that is not quarantined."""
    assert event.t is not None
    return event.t


def event_order(event: Event) -> tuple[int, bool, str, int]:
    """(event time, event id with null first, order)."""
    return at(event), event.id is not None, event.id or "", event.order


def total(values: list[int | float]) -> int | float | None:
    """The exact sum; None without values, or when an integer sum does not fit 64 bits."""
    if not values:
        return None
    result = sum(values)
    return None if isinstance(result, int) and not -(2**63) <= result < 2**63 else result


def aggregates(events: list[Event]) -> Row:
    """The row of one window: `count` counts events, the others skip null values."""
    values = [e.value for e in sorted(events, key=event_order) if e.value is not None]
    return {
        "count": len(events),
        "sum": total(values),
        "min": min(values, default=None),
        "max": max(values, default=None),
        "avg": sum(values) / len(values) if values else None,
        "distinct": len(set(values)),
        "first": values[0] if values else None,
        "last": values[-1] if values else None,
    }


@dataclass(frozen=True)
class Admitted:
    """An accepted event, the watermark it was judged by, and the windows it was late for: {name: end of the last one missed}."""

    event: Event
    watermark: int | None = None
    missed: tuple[tuple[str, int], ...] = ()


@dataclass
class Oracle:
    """Remembers every accepted event; a table is computed from those and nothing else."""

    delay: int
    lateness: int | None
    max_future: int
    horizon: int | None
    windows: tuple[Window, ...]
    watermark: int | None = None
    arrival: int | None = None
    runs: int = 0
    read: Counter[Event] = field(default_factory=Counter)
    accepted: list[Admitted] = field(default_factory=list)
    late: list[Refusal] = field(default_factory=list)
    duplicates: list[Refusal] = field(default_factory=list)
    quarantine: list[Refusal] = field(default_factory=list)
    partial: list[tuple[Event, list[tuple[str, int]]]] = field(default_factory=list)
    resolved: list[Event] = field(default_factory=list)

    def run(self, batch: list[Event], arrival: int) -> dict[str, int]:
        """Judges every row by the watermark of the run before, then moves the watermark once; gives the counts of the run."""
        self.runs += 1
        self.arrival = arrival if self.arrival is None else max(arrival, self.arrival)
        self.read.update(replace(e, bad=None) for e in batch)
        remembered, fresh = self._remembered(), []
        for e in batch:
            if reason := self._unfit(e, self.arrival):
                self.quarantine.append((e, reason, self.runs))
            elif e.id in remembered:
                self.duplicates.append((e, "its id was accepted before", self.runs))
            else:
                fresh.append(e)
        times = [at(e) for e in self._admit(fresh)]
        if times:
            reached = min(max(times), self.arrival) - self.delay
            self.watermark = reached if self.watermark is None else max(self.watermark, reached)
        refused = {"late": self.late, "duplicate": self.duplicates, "quarantined": self.quarantine}
        counts = {name: sum(run == self.runs for _, _, run in rows) for name, rows in refused.items()}
        return {"read": len(batch), "accepted": len(times)} | counts

    def _unfit(self, event: Event, arrival: int) -> str | None:
        if event.bad is not None:
            return event.bad
        if event.t is None or event.key is None or None in (event.key if isinstance(event.key, tuple) else ()):
            return "event time or a key part is null"
        return "too far ahead of the arrival" if event.t > arrival + self.max_future else None

    def _remembered(self) -> set[str]:
        """The ids of accepted events, but for those whose `t + horizon <= W`."""
        events = [a.event for a in self.accepted]
        if self.horizon is not None and self.watermark is not None:
            events = [e for e in events if at(e) + self.horizon > self.watermark]
        return {e.id for e in events if e.id is not None}

    def _admit(self, fresh: list[Event]) -> list[Event]:
        """Accepts, of every id, the first event in event order that is not late for all its windows."""
        missed, late = self._judge({(e.key, at(e)) for e in fresh})
        in_time = {e.id for e in fresh if e.id is not None and (e.key, at(e)) not in late}
        winners: list[Event] = []
        taken: set[str] = set()
        for e in sorted(fresh, key=event_order):
            place = e.key, at(e)
            if place in late and e.id not in in_time:
                self.late.append((e, "late for " + ", ".join(name for name, _ in missed[place]), self.runs))
            elif place in late or e.id in taken:
                self.duplicates.append((e, "a copy of it is accepted", self.runs))
            else:
                winners.append(e)
                taken |= {e.id} if e.id is not None else set()
                self.accepted.append(Admitted(e, self.watermark, tuple(missed[place])))
                self.partial += [(e, missed[place])] if missed[place] else []
        return winners

    def _is_late(self, end: int, watermark: int | None) -> bool:
        return self.lateness is not None and watermark is not None and end + self.lateness <= watermark

    def _judge(self, places: set[Place]) -> tuple[dict[Place, list[tuple[str, int]]], set[Place]]:
        """For each place the windows it is late for, as (name, end of the last one missed); and the places late for every window."""
        missed: dict[Place, list[tuple[str, int]]] = {place: [] for place in places}
        late = set(places)
        for window in self.windows:
            for place, ends in self._ends(window, places).items():
                gone = [end for end in ends if self._is_late(end, self.watermark)]
                missed[place] += [(window.name, max(gone))] if gone else []
                late -= {place} if len(gone) < len(ends) else set()
        return missed, late

    def _ends(self, window: Window, places: set[Place]) -> dict[Place, list[int]]:
        """The ends of the windows each place would be in: for a session that of a final one it touches, else of its whole chain."""
        if not isinstance(window, Session):
            return {place: [end for _, end in spans(window, place[1])] for place in places}
        ends: dict[Place, list[int]] = {}
        stored = self._stored(window)
        for key in {key for key, _ in places}:
            new = {t for k, t in places if k == key}
            final = [c for c in stored.get(key, []) if self._is_late(c[-1] + 2 * window.gap, self.watermark)]
            chain_of = {t: c for t in new for c in final if c[0] - window.gap <= t <= c[-1] + window.gap}
            free = (new - set(chain_of)).union(*(c for c in stored.get(key, []) if c not in final))
            chain_of |= {t: c for c in chains(free, window.gap) for t in c}
            ends |= {(key, t): [chain_of[t][-1] + window.gap] for t in new}
        return ends

    def _stored(self, window: Session) -> dict[Key, list[list[int]]]:
        """The sessions of each key, each as the times of its events."""
        times: dict[Key, list[int]] = {}
        for a in self.accepted:
            if window.name not in dict(a.missed):
                times.setdefault(a.event.key, []).append(at(a.event))
        return {key: chains(found, window.gap) for key, found in times.items()}

    def table(self, window_name: str) -> dict[tuple[Key, int, int], Row]:
        """The rows of one output by (key, start, end); those of sessions also have `last_event`."""
        (window,) = (w for w in self.windows if w.name == window_name)
        rows = defaultdict(list)
        for a, start, end in self._sessions(window) if isinstance(window, Session) else self._grid(window):
            rows[a.event.key, start, end].append(a.event)
        last_event = {row: {"last_event": row[2] - window.gap} if isinstance(window, Session) else {} for row in rows}
        return {row: aggregates(events) | last_event[row] for row, events in rows.items()}

    def _grid(self, window: Tumbling | Sliding) -> Iterator[tuple[Admitted, int, int]]:
        for a in self.accepted:
            yield from ((a, start, end) for start, end in spans(window, at(a.event)) if not self._is_late(end, a.watermark))

    def _sessions(self, window: Session) -> Iterator[tuple[Admitted, int, int]]:
        stored = self._stored(window)
        for a in self.accepted:
            if window.name not in dict(a.missed):
                chain = next(c for c in stored[a.event.key] if at(a.event) in c)
                yield a, chain[0], chain[-1] + window.gap

    def backfill(self, source: list[Event], start: int, end: int, arrival: int) -> None:
        """Makes each event of `[start, end)` that a run has read, and `source` still has, as if it had been on time; W stays."""
        fit = [e for e in source if self._unfit(e, arrival) is None and start <= at(e) < end]
        outside = [a for a in self.accepted if not start <= at(a.event) < end]
        inside = [a for a in self.accepted if start <= at(a.event) < end]
        live, elsewhere = Counter(a.event for a in inside), {a.event.id for a in outside}
        copies = defaultdict(list)
        for e in (Counter(fit) & self.read).elements():
            copies[e.id].append(e)
        winners = copies.pop(None, [])
        for name, found in copies.items():
            kept = list((Counter(found) & live).elements())
            winners += kept or [min(found, key=event_order)] * (name not in elsewhere)
        self.resolved += (Counter(winners) - Counter(a.event for a in inside if not a.missed)).elements()
        self.accepted = outside + [Admitted(e) for e in winners]
