"""Random schedules through Spark and Delta: the oracle's tables.

Any windows, any split of any events, copies, quiet times, clocks that are behind, backfills.
Between runs the source's schema changes, windows come and go, and maintenance tidies up. Some
commands work in a session with other settings.

The usual schedules are the first twenty of at most three steps; they are deep. The quick suite has
a few that together have what all of these have. TIDEMARK_SCHEDULES=500 runs more, whatever their
length; TIDEMARK_FIRST_SEED with it begins elsewhere. The number in brackets is the seed.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, islice, pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.microbatch import outputs
from jobs.shortcuts import run_size
from tests.jobs.sessions.test_exact_session import ELSEWHERE
from tests.oracle import Event, Oracle
from tests.support.pipeline_under_test import Lab
from tests.support.random_schedules import (
    KINDS,
    Backfill,
    Maintain,
    Respec,
    Run,
    Schedule,
    Step,
    crowded,
    schedule,
    straggling,
)
from windowing.errors import SpecError
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.storage import few_rows


def short(seed: int) -> bool:
    """Whether its schedule costs at most as much as three runs."""
    return schedule(seed).cost <= 3


def traits(seed: int) -> set[object]:
    """What its schedule has: windows, emissions, clocks and steps."""
    drawn = schedule(seed)
    windows = drawn.windows
    return {
        *((type(w), getattr(w, "max_duration", None) is None) for w in windows),
        *(w.emit for w in windows),
        *(("shown", w.empty, w.having is None) for w in windows),
        ("late", drawn.lateness is None, drawn.lateness == 0),
        ("idle", drawn.idle_after is None),
        ("bound", drawn.bound is None),
        *((type(step), step.elsewhere) for step in drawn.steps),
        *(step.alters for step in drawn.steps if isinstance(step, Run)),
    }


def covering(seeds: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...]:
    """Some of the seeds whose schedules have every trait of those that are wanted.

    Each adds the most that it can.
    """
    missing = set[object]().union(*map(traits, wanted))
    chosen: list[int] = []
    while missing:
        chosen.append(max(seeds, key=lambda seed: len(missing & traits(seed))))
        missing -= traits(chosen[-1])
    return tuple(chosen)


SHORT = tuple(islice(filter(short, count()), 200))
USUAL = SHORT[:20]
QUICK = covering(SHORT, USUAL)


def mark_by_cost(seed: int) -> tuple[pytest.MarkDecorator, ...]:
    """One of the quick suite is always played, the others of it are slow, and all others deep."""
    if seed not in QUICK:
        return (pytest.mark.deep,)
    return () if seed == QUICK[2] else (pytest.mark.slow,)


FIRST, MANY = int(os.environ.get("TIDEMARK_FIRST_SEED", "0")), os.environ.get("TIDEMARK_SCHEDULES")
SEEDS = (
    range(FIRST, FIRST + int(MANY))
    if MANY
    else [
        pytest.param(seed, marks=mark_by_cost(seed), id=str(seed))
        for seed in dict.fromkeys([*USUAL, *QUICK])
    ]
)
LARGE = SEEDS if MANY else [QUICK[1], pytest.param(QUICK[0], marks=pytest.mark.deep)]
"""The schedules whose runs are carried through as large ones."""

PART = 6
"""How many events a commit has where batches are bounded."""
ALONE = (*USUAL[:3], 381, 624, 861)
"""Schedules that are played with events that come alone.

In the last three such an event begins a window that it is late for.
"""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_schedule_gives_the_oracles_tables(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    play_schedule(schedule(seed), seed, spark, tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize("seed", SEEDS if MANY else ALONE)
def test_events_that_come_alone_give_the_oracles_tables(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    play_schedule(straggling(seed), seed, spark, tmp_path)


CROWDED = SEEDS if MANY else [12]
"""The schedules that are played with a dozen windows more."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", CROWDED)
def test_a_dozen_windows_more_give_the_oracles_tables(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    play_schedule(crowded(seed), seed, spark, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", LARGE)
def test_runs_of_many_rows_give_the_oracles_tables(
    seed: int, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few rows are carried through a run as many are, and Spark writes them."""
    monkeypatch.setattr(run_size, "FEW_ROWS", 0)
    monkeypatch.setattr(few_rows, "_FEW_ROWS", 0)
    monkeypatch.setattr(few_rows, "_FEW_LARGE_ROWS", 0)
    monkeypatch.setattr(outputs, "_MANY_BYTES", 0)
    play_schedule(schedule(seed), seed, spark, tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize("seed", LARGE)
def test_runs_over_many_rows_give_the_oracles_tables(
    seed: int, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few stored rows are read as many are."""
    monkeypatch.setattr(outputs, "_MANY_BYTES", 0)
    play_schedule(schedule(seed), seed, spark, tmp_path)


def play_schedule(
    drawn: Schedule,
    seed: int,
    spark: SparkSession,
    root: Path | Location,
    make_lab: Callable[..., Lab] = Lab,
) -> Lab:
    """Plays the schedule of `seed` and compares every table with the oracle's."""
    plain, elsewhere = session(spark), session(spark, **ELSEWHERE)
    if seed % 2:
        # Outputs of small files are rewritten, unless they were created like this.
        plain.conf.set("spark.databricks.delta.properties.defaults.enableDeletionVectors", "true")
    lab = make_lab(
        plain,
        root,
        drawn.windows,
        drawn.lateness,
        drawn.delay,
        drawn.ids,
        drawn.idle_after,
        max_future=drawn.max_future,
    )
    if drawn.bound is not None:
        lab.bound({"rows": drawn.bound})
    if any(isinstance(step, Run) and step.alters == "widens" for step in drawn.steps):
        made_with_a_spare_column(lab)
    for before, step in pairwise([None, *drawn.steps]):
        if isinstance(step, Backfill) and not isinstance(before, Respec):
            lab.check()
        with working_in(lab, elsewhere if step.elsewhere else plain):
            take(lab, step, plain)
    lab.check()
    return lab


def session(spark: SparkSession, **settings: str) -> SparkSession:
    """A session with these settings and small shuffles."""
    own = spark.newSession()
    for name, value in {"spark.sql.shuffle.partitions": "2", **settings}.items():
        own.conf.set(name, value)
    return own


@contextmanager
def working_in(lab: Lab, spark: SparkSession) -> Iterator[None]:
    """Meanwhile the lab's commands get this session."""
    own, lab.spark = lab.spark, spark
    try:
        yield
    finally:
        lab.spark = own


def take(lab: Lab, step: Step, plain: SparkSession) -> None:
    """Does one step; what it lands was written in the session `plain`."""
    match step:
        case Run():
            with working_in(lab, plain):
                landed = land(lab, step)
            run_over(lab, landed, step.arrival)
        case Respec():
            lab.respecify(step.windows)
        case Backfill():
            lab.backfill(step.start, step.end, lab.truth.arrival)
        case Maintain():
            lab.maintain()


def run_over(lab: Lab, landed: list[Event], arrival: int) -> None:
    """A run over what has landed, in one batch where several might judge sessions otherwise."""
    bound = lab.batch
    before = read_history(lab.pipeline)
    try:
        lab.run_over(landed, arrival)
    except SpecError as refused:
        assert refused.field == "source.batch"
        assert lab.lateness is not None and lab.pipeline.chained
        assert not [e for e in read_history(lab.pipeline).entries[len(before.entries) :] if e.batch]
        lab.bound(None)
        lab.run_over(landed, arrival)
        lab.bound(bound)


def land(lab: Lab, step: Run) -> list[Event]:
    """What the batch brings to the source, whose schema may change in the middle of it."""
    if step.alters is None:
        return land_in_parts(lab, step.batch)
    half = len(step.batch) // 2
    first = land_in_parts(lab, step.batch[:half])
    if step.alters == "adds":
        add_column(lab)
    else:
        widen_column(lab)
    return [*first, *land_in_parts(lab, step.batch[half:])]


def land_in_parts(lab: Lab, events: Sequence[Event]) -> list[Event]:
    """The events in one commit, or in several where a batch may end between them."""
    if lab.batch is None or not events:
        return lab.land(events)
    landed = []
    for n in range(0, len(events), PART):
        landed += lab.land(events[n : n + PART])
    return landed


def add_column(lab: Lab) -> None:
    """The source has a column more, and every row from now on a text in it."""
    name = f"note_{len(lab.more)}"
    lab.spark.sql(f"alter table {lab.pipeline.source.table.sql} add columns ({name} string)")
    lab.schema += f", {name} string"
    lab.more[name] = "x"


SPARE, WIDE = ", spare smallint", ", spare bigint"


def made_with_a_spare_column(lab: Lab) -> None:
    """The source has a column of small numbers, whose type may become wider."""
    lab.schema += SPARE
    lab.more["spare"] = 7
    properties = "tblproperties ('delta.enableTypeWidening' = 'true')"
    lab.spark.sql(
        f"create table {lab.pipeline.source.table.sql} ({lab.schema}) using delta {properties}"
    )


def widen_column(lab: Lab) -> None:
    """The spare column takes large numbers, and gets one from now on."""
    lab.spark.sql(f"alter table {lab.pipeline.source.table.sql} alter column spare type bigint")
    lab.schema = lab.schema.replace(SPARE, WIDE)
    lab.more["spare"] = 2**40


def test_the_usual_schedules_hold_every_kind_emission_and_lateness() -> None:
    drawn = [schedule(seed) for seed in USUAL]
    windows = [w for s in drawn for w in s.windows]
    assert (
        len({type(w) for w in windows}) == len(set(KINDS)) - 1
    )  # sessions with and without a cap are one type of the oracle
    assert {w.emit for w in windows} == {"on_change", "on_close", "changes"}
    assert any(w.empty for w in windows)
    assert any(w.having for w in windows)
    assert {s.lateness is None for s in drawn} == {True, False}
    assert 0 in {s.lateness for s in drawn}
    assert any(s.idle_after for s in drawn)


def test_the_quick_schedules_have_what_the_usual_have() -> None:
    assert len(QUICK) < len(USUAL) / 2
    quick, usual = (set[object]().union(*map(traits, seeds)) for seeds in (QUICK, USUAL))
    assert quick == usual


def test_much_happens_in_the_usual_schedules() -> None:
    drawn = [schedule(seed) for seed in USUAL]
    steps = [step for s in drawn for step in s.steps]
    many = Counter(type(step) for step in steps)
    assert many[Backfill] >= 8
    assert many[Maintain] >= 3
    assert many[Respec] >= 4
    assert sum(step.elsewhere for step in steps) >= 8
    altered = {step.alters for step in steps if isinstance(step, Run)}
    assert altered == {None, "adds", "widens"}


def test_the_clocks_of_the_usual_schedules_matter() -> None:
    ahead = clamped = quiet = 0
    for seed in USUAL:
        drawn = schedule(seed)
        clocks = (drawn.delay, drawn.lateness, drawn.max_future)
        truth = Oracle(*clocks, None, drawn.windows, drawn.idle_after)
        for step in drawn.steps:
            if not isinstance(step, Run):
                continue
            before, known = truth.watermark, len(truth.accepted)
            truth.run([*step.batch], step.arrival)
            new = [a.event.t for a in truth.accepted[known:]]
            clamped += any(t > truth.arrival for t in new)
            quiet += not new and truth.watermark != before
            latest = truth.arrival + drawn.max_future
            ahead += any(e.t is not None and e.t > latest for e in step.batch)
    assert ahead >= 5, "of few runs a row is quarantined for its time"
    assert clamped >= 5, "the watermark of few runs is that of their arrival"
    assert quiet >= 1, "no run moves the watermark without a row"
