"""Periods that are closed at random moments: frozen rows stay, and nothing is lost.

Whatever comes then, late events, copies, backfills, maintenance: a frozen row keeps every byte, the
rows of the output with the restated ones in their place are the oracle's, and once it is reopened
the pipeline has never been closed. TIDEMARK_SCHEDULES=50 plays more schedules, and with it
TIDEMARK_FIRST_SEED begins elsewhere; the number in brackets is the seed. A seed below LONG has five
windows and six runs behind the first one, which takes a minute and a half; the others have two to
four windows, and one to three runs.
"""

import os
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.oracle import (
    Count,
    Cumulate,
    Event,
    Global,
    RecordSliding,
    Session,
    Sliding,
    Tumbling,
    Window,
)
from tests.support.closed_lab import ClosedLab
from tests.support.pipeline_under_test import AGGREGATES, ARRIVAL, FEW, SECOND, Lab, us
from windowing.storage import few_rows

MINUTE = 60 * SECOND
BASE = us("2026-03-01T00:00:00")
SPAN = 6 * 60 * MINUTE
ALL = tuple(AGGREGATES)
LONG = 12
FIRST, MANY = int(os.environ.get("TIDEMARK_FIRST_SEED", "0")), os.environ.get("TIDEMARK_SCHEDULES")
SEEDS = (
    range(FIRST, FIRST + int(MANY))
    if MANY
    else [pytest.param(n, marks=pytest.mark.deep) for n in range(LONG)]
)
SHORT = (
    Session("visits", 20 * MINUTE),
    Sliding("rolling", 60 * MINUTE, 20 * MINUTE),
    Cumulate("so_far", 120 * MINUTE, 0, 30 * MINUTE),
)


def draw_windows(rng: Random, others: int = 4) -> tuple[Window, ...]:
    """A session window, and so many others of all kinds."""
    emit = rng.choice(["on_change", "on_close"])
    known = (
        Tumbling("hourly", 60 * MINUTE, emit=emit),
        Tumbling("filled", 30 * MINUTE, empty=True),
        Sliding("rolling", 60 * MINUTE, 20 * MINUTE, emit=rng.choice(["on_change", "changes"])),
        Cumulate("so_far", 120 * MINUTE, 0, 30 * MINUTE),
        Session("capped", 20 * MINUTE, 45 * MINUTE),
        RecordSliding("near", 15 * MINUTE, MINUTE),
        Tumbling("busy", 60 * MINUTE, having=("count", ">=", 2)),
        Count("pairs", 2),
        Global("all"),
    )
    visits = Session("visits", 20 * MINUTE, emit=rng.choice(["on_change", "on_close"]))
    return (visits, *rng.sample(known, others))


def draw_event(rng: Random, n: int) -> Event:
    t = BASE + rng.randrange(SPAN // MINUTE) * MINUTE
    return Event(rng.choice("ab"), t, rng.randrange(-9, 9), f"e{n}", n, attr=n)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_period_that_is_closed_at_any_moment_keeps_its_rows_and_loses_nothing(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    if seed < LONG:
        play(seed, spark, tmp_path)
        return
    short = Random(f"short {seed}")
    windows = draw_windows(short, short.randint(1, 3))
    shows = short.choice([FEW, ALL])
    play(seed, spark, tmp_path, short.randint(1, 3), windows, shows)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [42])
def test_a_short_schedule_keeps_its_rows_and_loses_nothing(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    """Two runs behind a close, with a session, a sliding and a cumulate window."""
    play(seed, spark, tmp_path, runs=2, windows=SHORT, shows=FEW)


@pytest.mark.deep
@pytest.mark.parametrize("seed", [100, 101])
def test_rows_that_are_many_are_frozen_as_few_are(
    seed: int, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_rows, "_FEW_ROWS", 0)
    monkeypatch.setattr(few_rows, "_FEW_LARGE_ROWS", 0)
    play(seed, spark, tmp_path)


def play(
    seed: int,
    spark: SparkSession,
    root: Path,
    runs: int = 6,
    windows: tuple[Window, ...] | None = None,
    shows: tuple[str, ...] = ALL,
) -> None:
    """Plays a schedule of so many runs behind the first one, of `windows` or of drawn ones."""
    rng = Random(f"closed {seed}")
    drawn = draw_windows(rng)
    lab = Lab(spark, root, windows or drawn, lateness=None, delay=10 * MINUTE, shows=shows)
    closed = ClosedLab(lab)
    events = [draw_event(rng, n) for n in range(90)]
    early = sorted(events[:40], key=lambda e: (e.t or 0) + rng.randrange(90) * MINUTE)
    lab.run(early[:20], ARRIVAL)
    for n in range(runs):
        watermark = closed.watermark() or BASE
        if n in (0, 3) or rng.random() < 0.3:
            span = (watermark - BASE) // (10 * MINUTE)
            until = BASE + rng.randint(span // 2, max(span, 1)) * 10 * MINUTE
            if closed.until is None or until >= closed.until:
                closed.close(min(until, watermark))
                closed.check()
        first = 20 + n * 11
        lab.run([*events[first : first + 11], rng.choice(events[:20])], ARRIVAL)
        closed.check()
        if rng.random() < 0.4:
            start = BASE + rng.randrange(SPAN // MINUTE) * MINUTE
            lab.backfill(start, start + rng.choice([30, 120]) * MINUTE)
            closed.check()
        if rng.random() < 0.2:
            lab.maintain()
            closed.check()
        if n == 2 and rng.random() < 0.5:
            closed.reopen()
            closed.check()
    closed.reopen()
    closed.check()
    lab.check()
