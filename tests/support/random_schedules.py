"""Random schedules: a pipeline of several kinds of windows, and the steps it goes through.

Events arrive within hours of when they happen, some of them before it by the reader's clock. So the
arrival clamps the watermark, `max_future` quarantines, and a quiet source moves on by the clock.
"""

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from tests.oracle import (
    Count,
    Cumulate,
    Delta,
    Event,
    Global,
    Punctuation,
    RecordSliding,
    Session,
    Sliding,
    Tumbling,
    Window,
)
from tests.support.pipeline_under_test import FAR, SECOND, SUMS, us

MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86400 * SECOND
BASE = us("2036-03-09T05:00:00")
"""Two hours before New York's clocks go forward.

The clock of whoever runs this has not come so far, so a backfill's arrival is that of the last run.
"""
NEW_YORK = "America/New_York"


@dataclass(frozen=True)
class Step:
    """Something that happens to a pipeline; `elsewhere`: in a session with other settings."""

    elsewhere: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Run(Step):
    """A run over `batch`; when half of it has landed, the source "adds" or "widens" a column."""

    batch: tuple[Event, ...]
    arrival: int
    alters: str | None = None


@dataclass(frozen=True)
class Backfill(Step):
    """A backfill of `[start, end)`."""

    start: int
    end: int


@dataclass(frozen=True)
class Maintain(Step):
    """A maintenance."""


@dataclass(frozen=True)
class Respec(Step):
    """The spec has these windows from now on; the next step is the first to see it."""

    windows: tuple[Window, ...]


@dataclass(frozen=True)
class Erase(Step):
    """An erasure of a key, or a `value` in another field; it ends at `place` if it comes there."""

    value: str | int
    place: str | None = None
    field: str = "key"


@dataclass(frozen=True)
class Lift(Step):
    """The erasure of a key, or of a `value` in another field, ends; all times are backfilled."""

    value: str | int
    field: str = "key"


@dataclass(frozen=True)
class Schedule:
    """What one test does: windows, lateness, clocks and steps; the same for the same seed.

    `bound` is how many rows end a batch; None where the spec does not say.
    """

    windows: tuple[Window, ...]
    lateness: int | None
    delay: int
    ids: bool
    idle_after: int | None
    max_future: int
    steps: tuple[Step, ...]
    bound: int | None = None

    @property
    def cost(self) -> float:
        """What its steps take together, as that many runs."""
        return sum(COSTS[type(step)] for step in self.steps)


COSTS: dict[type[Step], float] = {Run: 1, Backfill: 1, Maintain: 1, Respec: 1, Erase: 1, Lift: 1}
ALWAYS = (BASE - DAY, BASE + 3 * DAY)
"""A range with all events."""
_ENDS = ("erase.intended", "erase.deleted", "erase.vacuumed", "erase.done", None, None)


def schedule(seed: int, many: int = 3) -> Schedule:
    """The schedule of a seed, with `many` windows at first."""
    rng = Random(seed)
    kinds = rng.sample(KINDS, many + 1)
    known = tuple(drawn(rng, f"w{n}", kind) for n, kind in enumerate(kinds))
    events = [event(rng, n) for n in range(rng.randrange(12, 30))]
    idle_after = rng.choice([None, None, 10 * MINUTE])
    steps: list[Step] = []
    for batch in split(events, rng):
        steps += _around(rng, batch, events, quiet=idle_after is not None)
    if len(steps) > 1 and rng.random() < 0.4:
        steps = _respecified(rng, steps, known)
    if any(isinstance(step, Respec) for step in steps) and "delta" in kinds:
        steps = [_with_attributes(step) for step in steps]
    return Schedule(
        windows=known[:many],
        lateness=rng.choice([None, 0, 10 * MINUTE, HOUR]),
        delay=rng.choice([0, 5 * MINUTE]),
        ids=seed % 3 != 2,
        idle_after=idle_after,
        max_future=rng.choice([0, 20 * MINUTE, HOUR, HOUR, FAR]),
        steps=tuple(replace(step, elsewhere=rng.random() < 0.3) for step in steps),
        bound=_draw_bound(seed, known),
    )


def _draw_bound(seed: int, known: tuple[Window, ...]) -> int | None:
    """After how many rows a batch ends, where no window counts the empty ones of a whole run."""
    if any(window.empty for window in known):
        return None
    return Random(f"bound {seed}").choice([None, 1, 7])


def straggling(seed: int) -> Schedule:
    """The schedule of a seed, after which a few events come alone, each in a run of its own.

    They happen on round minutes, where windows begin, and most of them are late for some windows.
    """
    drawn, rng = schedule(seed), Random(f"straggling {seed}")
    arrival = max(step.arrival for step in drawn.steps if isinstance(step, Run))
    runs = []
    for n in range(4):
        t = BASE + rng.randrange(36) * 5 * MINUTE
        alone = replace(event(rng, 1000 + n), t=t, id=f"straggler {n}", attr=rng.randrange(60))
        runs.append(Run((alone,), arrival))
    return replace(drawn, steps=(*drawn.steps, *runs))


def crowded(seed: int) -> Schedule:
    """The schedule of a seed with a dozen windows more, most of which are plain ones on a grid.

    They stay when the others come and go.
    """
    plain, rng = schedule(seed), Random(f"crowded {seed}")
    grid = [drawn(rng, f"m{n}", kind) for n, kind in enumerate(KINDS[:4] * 3)]
    shown = [replace(w, emit="on_change", having=None, empty=False) for w in grid[3:]]
    more = (*grid[:3], *shown, drawn(rng, "visits", "session"), drawn(rng, "all", "global"))
    steps = tuple(
        replace(step, windows=(*step.windows, *more)) if isinstance(step, Respec) else step
        for step in plain.steps
    )
    return replace(plain, windows=(*plain.windows, *more), steps=steps)


def erasing(seed: int) -> Schedule:
    """The schedule of a seed in which keys are erased, and now and then one no more.

    Erasures end half-way, and other steps come between. The last one is finished, then events of
    both keys come, and all times are backfilled.
    """
    drawn, rng = schedule(seed, many=2), Random(f"erasing {seed}")
    arrival = max(step.arrival for step in drawn.steps if isinstance(step, Run))
    steps: list[Step] = []
    key = rng.choice("ab")
    for n, step in enumerate(drawn.steps):
        if rng.random() < (0.35 if n else 0.15):
            steps.append(Erase(key, rng.choice(_ENDS)))
        if isinstance(step, Respec):
            # A spec that changes while an erasure is incomplete is refused.
            steps.append(Erase(key))
        steps.append(step)
    steps.append(Erase(key))
    if rng.random() < 0.4:
        steps.append(Lift(key))
        key = rng.choice("ab")
        steps += [Erase(key, rng.choice(_ENDS)), Erase(key)]
    known = [event for step in drawn.steps if isinstance(step, Run) for event in step.batch]
    fresh = [replace(event(rng, 2000 + n), id=f"after {n}", attr=n) for n in range(6)]
    steps.append(Run((*fresh, rng.choice(known)), arrival))
    if rng.random() < 0.5:
        steps.append(Respec(drawn.windows[:1]))
    steps.append(Backfill(*ALWAYS))
    return replace(drawn, steps=tuple(steps))


def erasing_values(seed: int) -> Schedule:
    """The same with values instead of keys: events have one of four, and two of them are erased."""
    drawn, rng = erasing(seed), Random(f"values {seed}")
    return replace(drawn, steps=tuple(_with_values(step, rng) for step in drawn.steps))


_VALUES = 4
_ENDS_OF_VALUES = (
    "evolve.intended",
    "state.swapped",
    "output.corrected",
    "evolve.filled",
    "evolve.done",
    "erase.deleted",
    "erase.vacuumed",
)


def _with_values(step: Step, rng: Random) -> Step:
    match step:
        case Run():
            batch = [replace(e, value=e.value and e.value % _VALUES) for e in step.batch]
            return replace(step, batch=tuple(batch))
        case Erase(value=key, place=place):
            ends_at = place and rng.choice(_ENDS_OF_VALUES)
            return replace(step, value="ab".index(str(key)), place=ends_at, field="value")
        case Lift(value=key):
            return replace(step, value="ab".index(str(key)), field="value")
    return step


def in_the_past(drawn: Schedule) -> Schedule:
    """The schedule eleven years before, where New York's clocks go forward at the same time.

    The command line takes no arrival that the host's clock has not come to.
    """
    earlier = us("2025-03-09T05:00:00") - BASE
    return replace(drawn, steps=tuple(_shifted(step, earlier) for step in drawn.steps))


def _shifted(step: Step, by: int) -> Step:
    match step:
        case Run():
            batch = tuple(e if e.t is None else replace(e, t=e.t + by) for e in step.batch)
            return replace(step, batch=batch, arrival=step.arrival + by)
        case Backfill():
            return replace(step, start=step.start + by, end=step.end + by)
    return step


def _around(rng: Random, batch: list[Event], events: list[Event], *, quiet: bool) -> list[Step]:
    """A run over `batch` and copies, and what happens until the next one."""
    newest = max((e.t for e in batch if e.t is not None), default=BASE)
    arrival = newest + rng.choice([-90, -20, 0, 10, 120]) * MINUTE
    copies = [rng.choice(events) for _ in range(rng.randrange(3))]
    alters = rng.choice(["adds", "widens"]) if rng.random() < 0.2 else None
    more: list[Step] = []
    if rng.random() < 0.45:
        more.append(Backfill(*_range(rng, events)))
    if rng.random() < 0.2:
        more.append(Maintain())
    if quiet and rng.random() < 0.6:
        known = tuple(rng.choice(events) for _ in range(rng.randrange(2)))
        more.append(Run(known, arrival + rng.choice([5, 12, 200]) * MINUTE))
    rng.shuffle(more)
    return [Run(tuple(batch + copies), arrival, alters), *more]


def _range(rng: Random, events: list[Event]) -> tuple[int, int]:
    """A part of the times there are; now and then it goes from one event to another."""
    times = sorted({e.t for e in events if e.t is not None})
    if rng.random() < 0.3:
        start, end = sorted(rng.sample(times, 2))
        return start, end
    start = BASE + rng.randrange(150) * MINUTE
    return start, start + rng.choice([7 * MINUTE, HOUR, 3 * HOUR])


def _respecified(rng: Random, steps: list[Step], known: tuple[Window, ...]) -> list[Step]:
    """The steps; before one or two of them the spec changes to other windows of those `known`."""
    places = rng.sample(range(1, len(steps)), min(len(steps) - 1, rng.choice([1, 1, 2])))
    changed: list[Step] = []
    for n, step in enumerate(steps):
        if n in places:
            kept = sorted(rng.sample(range(len(known)), rng.randrange(1, len(known) + 1)))
            changed.append(Respec(tuple(known[i] for i in kept)))
        changed.append(step)
    return changed


def _with_attributes(step: Step) -> Step:
    """No event lacks its attribute.

    One that was accepted without it would be refused by a delta window that comes, and so would be
    the spec.
    """
    if not isinstance(step, Run):
        return step
    return replace(step, batch=tuple(replace(e, attr=e.attr or 0) for e in step.batch))


def _shown(rng: Random, kind: str) -> dict[str, Any]:
    """What of the windows of `kind` an output shows."""
    shown: dict[str, Any] = {}
    if kind != "global" and rng.random() < 0.4:
        shown["emit"] = "on_close"
    if rng.random() < 0.25:
        shown["having"] = rng.choice(
            [("count", ">=", 2), ("count", "<", 4), ("sum", ">", 0), ("max", "!=", 7)]
        )
    if kind in ("tumbling", "sliding") and rng.random() < 0.3:
        shown["empty"] = True
    if kind in ("sliding", "cumulate") and not shown.get("empty") and rng.random() < 0.4:
        return {"emit": "changes"}
    return shown


def drawn(rng: Random, name: str, kind: str) -> Window:
    """A window of `kind`, with an emission it can have."""
    shown = _shown(rng, kind)
    if (
        shown.get("emit") != "changes"
        and (shown.get("having") or ("count",))[0] in ("count", "sum")
        and rng.random() < 0.3
    ):
        name += SUMS
    match kind:
        case "tumbling":
            size, zone = rng.choice([(HOUR, NEW_YORK), (25 * MINUTE, None), (DAY, NEW_YORK)])
            return Tumbling(name, size, origin=rng.choice([0, 3 * MINUTE]), zone=zone, **shown)
        case "sliding":
            size, slide = rng.choice(
                [
                    (25 * MINUTE, 10 * MINUTE),
                    (HOUR, 20 * MINUTE),
                    (30 * MINUTE, 30 * MINUTE),
                    (2 * HOUR, 15 * MINUTE),
                ]
            )
            return Sliding(
                name,
                size,
                slide,
                rng.choice([0, 3 * MINUTE]),
                rng.choice([None, NEW_YORK]),
                **shown,
            )
        case "cumulate":
            size, step, zone = rng.choice(
                [
                    (2 * HOUR, 20 * MINUTE, NEW_YORK),
                    (HOUR, 25 * MINUTE, None),
                    (DAY, 7 * HOUR, NEW_YORK),
                ]
            )
            return Cumulate(
                name, size, 0, step, origin=rng.choice([0, 5 * MINUTE]), zone=zone, **shown
            )
        case "session":
            return Session(name, rng.choice([3, 7, 20]) * MINUTE, **shown)
        case "capped":
            return Session(
                name, rng.choice([7, 20]) * MINUTE, rng.choice([20, 45]) * MINUTE, **shown
            )
        case "record_sliding":
            return RecordSliding(
                name, rng.choice([5, 15]) * MINUTE, rng.choice([1000, MINUTE]), **shown
            )
        case "count":
            return Count(name, *rng.choice([(4, None), (4, 2), (3, 2), (1, 1), (5, 1)]), **shown)
        case "delta":
            return Delta(name, rng.choice([0, 10, 25]), **shown)
        case "punctuation":
            return Punctuation(name, **shown)
    return Global(name, **shown)


KINDS = (
    "tumbling",
    "sliding",
    "sliding",
    "cumulate",
    "session",
    "capped",
    "record_sliding",
    "count",
    "delta",
    "punctuation",
    "global",
)


def event(rng: Random, n: int) -> Event:
    """An event of one of two keys, within three hours.

    Now and then its clock is far ahead, or it lacks its time, value, id or attribute.
    """
    t = (
        None
        if rng.random() < 0.03
        else BASE + rng.choice([rng.randrange(3 * HOUR), rng.randrange(36) * 5 * MINUTE])
    )
    t = t and t + (rng.randrange(30 * HOUR) if rng.random() < 0.03 else 0)
    value = None if rng.random() < 0.1 else rng.randrange(-50, 50)
    attr = None if rng.random() < 0.03 else rng.randrange(60)
    return Event(
        rng.choice("ab"),
        t,
        value,
        f"e{n}" if rng.random() < 0.95 else None,
        n,
        attr=attr,
        mark=rng.random() < 0.15,
    )


def split(events: list[Event], rng: Random) -> list[list[Event]]:
    """In landing order, shuffled a little or wholly, cut in one to three batches."""

    def loose(e: Event) -> float:
        return (e.t or BASE) + rng.choice([0, 20 * MINUTE, 3 * HOUR]) * rng.random()

    landed = sorted(events, key=loose)
    cuts = sorted(rng.randrange(1, len(events)) for _ in range(rng.choice([0, 0, 1, 1, 2])))
    return [landed[a:b] for a, b in zip([0, *cuts], [*cuts, len(events)], strict=True) if b > a]
