"""Random schedules: a pipeline of several kinds of windows, events in some order, cut into runs, with copies and backfills between."""

from dataclasses import dataclass
from random import Random
from typing import Any

from tests.lab import SECOND, SUMS, us
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

MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86400 * SECOND
BASE = us("2026-03-08T05:00:00")
"""Two hours before New York's clocks go forward."""
NEW_YORK = "America/New_York"


@dataclass(frozen=True)
class Step:
    """One run over `batch`, `idle` microseconds after the one before; then perhaps a backfill of a range."""

    batch: tuple[Event, ...]
    idle: int = 0
    backfill: tuple[int, int] | None = None


@dataclass(frozen=True)
class Schedule:
    """What one test does: windows, lateness, delay and steps; the same for the same seed."""

    windows: tuple[Window, ...]
    lateness: int | None
    delay: int
    ids: bool
    idle_after: int | None
    steps: tuple[Step, ...]


def schedule(seed: int, many: int = 3) -> Schedule:
    """The schedule of a seed, with `many` windows."""
    rng = Random(seed)
    windows = tuple(drawn(rng, f"w{n}", kind) for n, kind in enumerate(rng.sample(KINDS, many)))
    events = [event(rng, n) for n in range(rng.randrange(12, 30))]
    idle_after = rng.choice([None, None, 10 * MINUTE])
    batches = split(events, rng)
    steps = tuple(_step(rng, batch, events, idle_after) for batch in batches)
    lateness = rng.choice([None, 0, 10 * MINUTE, HOUR])
    return Schedule(windows, lateness, rng.choice([0, 5 * MINUTE]), seed % 3 != 2, idle_after, steps)


def _step(rng: Random, batch: list[Event], events: list[Event], idle_after: int | None) -> Step:
    copies = [rng.choice(events) for _ in range(rng.randrange(3))]
    start = BASE + rng.randrange(150) * MINUTE
    backfill = (start, start + rng.choice([7 * MINUTE, HOUR, 3 * HOUR])) if rng.random() < 0.45 else None
    quiet = rng.choice([0, 0, 12 * MINUTE]) if idle_after else 0
    return Step(tuple(batch + copies), quiet, backfill)


def _shown(rng: Random, kind: str) -> dict[str, Any]:
    """What of the windows of `kind` an output shows."""
    shown: dict[str, Any] = {}
    if kind != "global" and rng.random() < 0.4:
        shown["emit"] = "on_close"
    if rng.random() < 0.25:
        shown["having"] = rng.choice([("count", ">=", 2), ("count", "<", 4), ("sum", ">", 0), ("max", "!=", 7)])
    if kind in ("tumbling", "sliding") and rng.random() < 0.3:
        shown["empty"] = True
    if kind in ("sliding", "cumulate") and not shown.get("empty") and rng.random() < 0.4:
        return {"emit": "changes"}
    return shown


def drawn(rng: Random, name: str, kind: str) -> Window:
    """A window of `kind`, with an emission it can have."""
    shown = _shown(rng, kind)
    if shown.get("emit") != "changes" and (shown.get("having") or ("count",))[0] in ("count", "sum") and rng.random() < 0.3:
        name += SUMS
    match kind:
        case "tumbling":
            size, zone = rng.choice([(HOUR, NEW_YORK), (25 * MINUTE, None), (DAY, NEW_YORK)])
            return Tumbling(name, size, origin=rng.choice([0, 3 * MINUTE]), zone=zone, **shown)
        case "sliding":
            size, slide = rng.choice([(25 * MINUTE, 10 * MINUTE), (HOUR, 20 * MINUTE), (30 * MINUTE, 30 * MINUTE), (2 * HOUR, 15 * MINUTE)])
            return Sliding(name, size, slide, rng.choice([0, 3 * MINUTE]), rng.choice([None, NEW_YORK]), **shown)
        case "cumulate":
            size, step, zone = rng.choice([(2 * HOUR, 20 * MINUTE, NEW_YORK), (HOUR, 25 * MINUTE, None), (DAY, 7 * HOUR, NEW_YORK)])
            return Cumulate(name, size, 0, step, origin=rng.choice([0, 5 * MINUTE]), zone=zone, **shown)
        case "session":
            return Session(name, rng.choice([3, 7, 20]) * MINUTE, **shown)
        case "capped":
            return Session(name, rng.choice([7, 20]) * MINUTE, rng.choice([20, 45]) * MINUTE, **shown)
        case "record_sliding":
            return RecordSliding(name, rng.choice([5, 15]) * MINUTE, rng.choice([1000, MINUTE]), **shown)
        case "count":
            return Count(name, *rng.choice([(4, None), (4, 2), (3, 2), (1, 1), (5, 1)]), **shown)
        case "delta":
            return Delta(name, rng.choice([0, 10, 25]), **shown)
        case "punctuation":
            return Punctuation(name, **shown)
    return Global(name, **shown)


KINDS = ("tumbling", "sliding", "sliding", "cumulate", "session", "capped", "record_sliding", "count", "delta", "punctuation", "global")


def event(rng: Random, n: int) -> Event:
    """An event of one of two keys, within three hours; now and then without a time, a value, an id or an attribute."""
    t = None if rng.random() < 0.03 else BASE + rng.choice([rng.randrange(3 * HOUR), rng.randrange(36) * 5 * MINUTE])
    value = None if rng.random() < 0.1 else rng.randrange(-50, 50)
    attr = None if rng.random() < 0.03 else rng.randrange(60)
    return Event(rng.choice("ab"), t, value, f"e{n}" if rng.random() < 0.95 else None, n, attr=attr, mark=rng.random() < 0.15)


def split(events: list[Event], rng: Random) -> list[list[Event]]:
    """In landing order, shuffled a little or wholly, cut in one to three batches."""

    def loose(e: Event) -> float:
        return (e.t or BASE) + rng.choice([0, 20 * MINUTE, 3 * HOUR]) * rng.random()

    landed = sorted(events, key=loose)
    cuts = sorted(rng.randrange(1, len(events)) for _ in range(rng.choice([0, 1, 1, 2])))
    return [landed[a:b] for a, b in zip([0, *cuts], [*cuts, len(events)], strict=True) if b > a]
