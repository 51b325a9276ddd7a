"""A backfill concurrently with live runs, interrupted between steps, and checked on a copy."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event as Signal
from threading import Thread, Timer

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from jobs.backfill import backfill
from jobs.cli.main import main
from jobs.locking import lock
from jobs.maintain import maintain
from jobs.recompute.plan import CHUNK_US
from jobs.reconcile import COPY, check_range
from jobs.reset import reset
from tests.oracle import Count, Cumulate, Event, Session, Sliding, Tumbling, Window
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, Life, ends_at
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab
from windowing.crash import armed
from windowing.errors import UsageError
from windowing.grid.zone import micros, moment
from windowing.ledger.table import read_history
from windowing.spec.load import load_pipeline
from windowing.storage import delta_log

WINDOWS = (Tumbling("hourly", 60 * MINUTE), Session("visits", 10 * MINUTE))
ORDERED = (Session("short", 10 * MINUTE, max_duration=15 * MINUTE), Count("pairs", 2))
HOUR = 60 * MINUTE
DAY = 24 * HOUR


@pytest.fixture(scope="module")
def life(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Two runs over an afternoon; what is more than an hour behind is late."""
    root = tmp_path_factory.mktemp("backfill")
    lab = Lab(spark, root, WINDOWS, lateness=HOUR, delay=0, shows=FEW)
    (lab.root / "lab.yaml").write_text(json.dumps(lab.spec()))
    for run, minutes in enumerate([(0, 30, 300), (10, 100, 280, 310)]):
        lab.run(events(str(run), minutes))
    return Life(lab)


def event(name: str, minute: int, key: str = "a") -> Event:
    """An event of an hour of this file's day."""
    return Event(key, BASE + minute * MINUTE, 1, name, minute)


def events(prefix: str, minutes: tuple[int, ...], key: str = "a") -> list[Event]:
    """Events of several minutes, whose ids begin with `prefix`."""
    return [event(f"{prefix}-{minute}", minute, key) for minute in minutes]


@contextmanager
def meanwhile(life: Life, *new: Event) -> Iterator[list[str]]:
    """Runs `new` events as soon as a chunk is staged; the list has an entry for each chunk."""
    staged: list[str] = []

    def run_once(name: str) -> None:
        if name == "backfill.staged":
            staged.append(name)
            if len(staged) == 1:
                life.lab.run(new)

    with armed(run_once):
        yield staged


@pytest.mark.deep
@pytest.mark.parametrize(
    ("minutes", "times"),
    [((320, 340), 1), ((330, 20), 2), ((5, 15), 2)],
    ids=["at other times", "some of it late and in the range", "nothing but late rows"],
)
def test_runs_go_on_while_a_chunk_is_read(minutes: tuple[int, ...], times: int, life: Life) -> None:
    with meanwhile(life, *events(str(minutes), minutes, "b")) as staged:
        life.lab.backfill(BASE, BASE + 2 * HOUR)
    assert len(staged) == times
    life.lab.check()


@pytest.mark.deep
def test_what_a_backfill_took_in_is_known_when_it_comes_again(life: Life) -> None:
    late = event("known", 25, "c")
    assert life.lab.run([late]).late == 1
    life.lab.backfill(BASE, BASE + 2 * HOUR)
    assert life.lab.run([late]).duplicate == 1
    life.lab.check()


@pytest.mark.deep
def test_what_was_ahead_of_the_clock_when_it_was_staged_is_not_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, WINDOWS[:1], delay=0, shows=FEW)
    spec = lab.spec()
    lab.pipeline = load_pipeline(
        spec | {"watermark": spec["watermark"] | {"max_future": "0 seconds"}}
    )
    begun = micros(datetime.now(UTC))
    lab.run([Event("a", begun - HOUR, 1, "old")], begun)

    def run_once(name: str) -> None:
        if name == "backfill.staged" and len(lab.landed) == 1:
            now = micros(datetime.now(UTC))
            lab.run([Event("a", now, 1, "new")], now)

    with armed(run_once):
        lab.backfill(begun - 2 * HOUR, begun + HOUR)
    assert len(lab.landed) == 2
    lab.check()


LONG_AGO = BASE - 700 * DAY
"""Before the clock of the host, so that a backfill accepts such events."""
WAITING: tuple[Window, ...] = (
    Tumbling("closed", HOUR, emit="on_close"),
    Tumbling("filled", HOUR, emit="on_close", empty=True),
    Sliding("rolling", HOUR, 20 * MINUTE, emit="on_close", empty=True),
    Sliding("steps", HOUR, 20 * MINUTE, emit="changes"),
    Cumulate("parts", 2 * HOUR, 0, HOUR, emit="changes"),
    Session("visits", 10 * MINUTE, emit="on_close"),
    Count("pairs", 2, emit="on_close"),
)


def named(windows: tuple[Window, ...], *names: str) -> tuple[Window, ...]:
    """The windows with these names."""
    return tuple(window for window in windows if window.name in names)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("key", "windows"),
    [
        ("c", named(WAITING, "closed", "filled", "visits")),
        ("a", WAITING),
        ("c", WAITING),
    ],
    ids=["of another key", "of a key it brought, every kind", "of another key, every kind"],
)
def test_what_a_backfill_brought_before_any_watermark_is_shown_once_it_is_passed(
    key: str, windows: tuple[Window, ...], spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, windows, shows=FEW, max_future=HOUR)
    ahead = [
        Event(name, LONG_AGO + hour * HOUR, hour, f"{name}{hour}", hour)
        for name in "ab"
        for hour in (0, 1, 5, 9)
    ]
    assert lab.run(ahead, LONG_AGO - DAY).quarantined == len(ahead)
    lab.backfill(LONG_AGO, LONG_AGO + 7 * HOUR)
    lab.check()
    later = LONG_AGO + 20 * DAY
    lab.run([Event(key, later, 1, "later")], later)
    assert lab.table("closed"), "the watermark has passed what the backfill brought"
    lab.check()


PASSED_LATER: tuple[Window, ...] = (
    *WAITING,
    Tumbling("open", HOUR, empty=True),
    Tumbling("busy", HOUR, emit="on_close", having=("count", ">=", 1)),
    Sliding("still", HOUR, 20 * MINUTE, emit="on_close", empty=True, having=("count", "<", 1)),
    Tumbling("days", DAY, zone="America/New_York", emit="on_close", empty=True),
    Sliding("local", 2 * HOUR, HOUR, zone="America/New_York", emit="changes"),
)


def brought_before_any_watermark(lab: Lab) -> None:
    """Events of two keys that no run could take, and that a backfill does."""
    hours = (0, 1, 5, 26, 27)
    ahead = [Event(k, LONG_AGO + n * HOUR, n, f"{k}{n}", n) for k in "ab" for n in hours]
    lab.run(ahead, LONG_AGO - DAY)
    assert not lab.truth.accepted
    lab.backfill(LONG_AGO, LONG_AGO + 2 * DAY)
    assert lab.truth.watermark is None


def at_once(lab: Lab, key: str, hour: int) -> list[Event]:
    """An event that arrives when it happens, landed and not yet run."""
    return lab.land([Event(key, LONG_AGO + hour * HOUR, 1, f"{key} at {hour}")])


@pytest.mark.deep
@pytest.mark.parametrize(
    ("lateness", "windows"),
    [
        (0, named(PASSED_LATER, "closed", "filled", "days")),
        (0, PASSED_LATER),
        (None, PASSED_LATER),
    ],
    ids=["late at once", "late at once, every kind", "never late, every kind"],
)
def test_the_first_watermark_passes_a_part_of_what_a_backfill_brought_and_is_killed(
    lateness: int | None, windows: tuple[Window, ...], spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, windows, lateness, shows=FEW, max_future=HOUR)
    brought_before_any_watermark(lab)
    lab.check()
    first = at_once(lab, "c", 4)
    ends_at(Crasher("run.emitted"), lambda: lab.go(LONG_AGO + 4 * HOUR))
    lab.run_over(first, LONG_AGO + 4 * HOUR)
    assert lab.table("closed") and not lab.table("days")
    lab.check()
    lab.run_over(at_once(lab, "a", 80), LONG_AGO + 80 * HOUR)
    assert lab.table("days")
    lab.check()


@pytest.mark.deep
def test_windows_that_come_before_any_watermark_show_what_a_backfill_brought(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, WINDOWS[:1], shows=FEW, max_future=HOUR)
    brought_before_any_watermark(lab)
    lab.respecify((*WINDOWS[:1], *PASSED_LATER))
    maintain(spark, lab.pipeline)
    lab.check()
    lab.run_over(at_once(lab, "c", 80), LONG_AGO + 80 * HOUR)
    assert lab.table("filled") and lab.table("steps")
    lab.check()


@pytest.mark.deep
def test_a_pipeline_that_started_over_meanwhile_is_not_written_to(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, WINDOWS[:1], shows=FEW)
    lab.run([event("0", 0)])

    def start_over(name: str) -> None:
        if name == "backfill.staged":
            reset(lab.pipeline)
            # Delta caches the state of tables by path, and these tables are deleted.
            delta_log.forget_all(spark)
            lab.go()

    with (
        armed(start_over),
        pytest.raises(UsageError, match="lab was reset while this backfill was running"),
    ):
        lab.backfill(BASE, BASE + HOUR)
    lab.check()


@pytest.mark.deep
def test_a_session_that_grew_meanwhile_is_read_whole(life: Life) -> None:
    life.lab.run(events("chain", (300, 308, 316), "c"))
    with meanwhile(life, *events("chain", (323, 330), "c")) as staged:
        life.lab.backfill(BASE + 300 * MINUTE, BASE + 310 * MINUTE)
    assert len(staged) == 2
    life.lab.check()


@pytest.mark.deep
def test_a_swap_waits_for_whoever_holds_the_lock(life: Life) -> None:
    held, free = Signal(), Signal()

    def hold_lock() -> None:
        with lock.writer(life.lab.spark, life.lab.pipeline):
            held.set()
            free.wait(30)

    def take_lock_meanwhile(name: str) -> None:
        if name == "backfill.staged" and not held.is_set():
            other.start()
            assert held.wait(30)
            Timer(1.5, free.set).start()
        elif name == "backfill.intended":
            assert free.is_set()

    other = Thread(target=hold_lock)
    with armed(take_lock_meanwhile):
        life.lab.backfill(BASE, BASE + HOUR)
    assert free.is_set()
    life.lab.check()


def intents(life: Life) -> int:
    """How many chunks were begun so far."""
    entries = read_history(life.lab.pipeline).entries
    return sum(entry.step == "backfill_intent" for entry in entries)


@pytest.mark.deep
@pytest.mark.parametrize("windows", [WINDOWS[:1], WINDOWS], ids=["grid", "both"])
def test_a_backfill_of_many_chunks_goes_on_where_it_was_killed(
    windows: tuple[Window, ...], spark: SparkSession, tmp_path: Path
) -> None:
    days = CHUNK_US // DAY
    life = Life(Lab(spark, tmp_path, windows, lateness=HOUR, shows=FEW))
    life.lab.run([event("0", 0), event("far", (days + 2) * 24 * 60, "d")])
    life.lab.run([event(f"late-{d}", d * 24 * 60 + 1, "d") for d in (1, days + 1)])
    wide = (BASE, BASE + (days + 3) * DAY)
    before = intents(life)
    ends_at(Crasher("backfill.rebuilt"), lambda: life.lab.backfill(*wide))
    life.lab.backfill(*wide)
    assert intents(life) - before == 2
    life.lab.check()
    ends_at(Crasher("backfill.staged", 2), lambda: life.lab.backfill(*wide))
    assert intents(life) - before == 2 + 1, "a range that was finished begins anew"
    life.lab.run([event("late again", 24 * 60 + 2, "d")])
    life.lab.backfill(*wide)
    assert intents(life) - before == 2 + 1 + 2, (
        "the first chunk is done again, it has a late row since"
    )
    life.lab.check()


def list_copied(life: Life) -> list[str]:
    """What a check has left of its copy."""
    return [path.name for path in (life.root / COPY / "lab").iterdir()]


def files(life: Life) -> set[Path]:
    """Every commit of every table."""
    return {*life.root.rglob("*.json")}


@pytest.mark.deep
@pytest.mark.parametrize("killed", [False, True], ids=["at once", "when killed"])
def test_a_check_says_what_a_backfill_would_change_and_changes_nothing(
    killed: bool,  # noqa: FBT001
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    lab = Lab(spark, tmp_path, WINDOWS[:1], lateness=HOUR, shows=FEW)
    life = Life(lab)
    (lab.root / "lab.yaml").write_text(json.dumps(lab.spec()))
    lab.run(events("0", (0, 30, 300)))
    lab.run([event("unseen", 42, "e"), event("unseen too", 300, "e")])
    before = files(life)
    span = (BASE, BASE + 2 * HOUR)
    start, end = moment(span[0]), moment(span[1])
    if killed:
        ends_at(Crasher("check.cloned"), lambda: check_range(lab.spark, lab.pipeline, start, end))
    spec = str(lab.root / "lab.yaml")
    words = ["backfill", spec, "--from", start.isoformat(), "--to", end.isoformat()]
    said = CliRunner().invoke(main, [*words, "--check", "--json"], prog_name="tidemark")
    assert said.exit_code == 3, said.output
    told = json.loads(said.stdout.splitlines()[-1])
    assert (told["agrees"], told["accepted"]) == (False, 1)
    example = "hourly: {key: e, window_start: 2026-01-05 00:00Z, window_end: 2026-01-05 01:00Z"
    assert example in said.stderr
    assert "`tidemark backfill` of the same range would make these changes" in said.stderr
    assert files(life) == before
    assert list_copied(life) == ["_lock"]
    report = lab.backfill(*span)
    assert told["windows"] == {name: vars(change) for name, change in report.windows.items()}
    again = check_range(lab.spark, lab.pipeline, start, end)
    assert again.agrees
    assert again.read == report.read
    lab.check()


@pytest.mark.deep
def test_a_check_of_windows_made_from_events_finds_them_in_its_copy(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, ORDERED, lateness=HOUR, shows=FEW)
    lab.run([event(str(m), m) for m in (0, 8, 16, 24, 40)])
    span = (moment(BASE), moment(BASE + 30 * MINUTE))
    assert check_range(spark, lab.pipeline, *span).agrees
    lab.run([event("far", 400)])
    lab.run([event("late", 4)])
    found = check_range(spark, lab.pipeline, *span)
    assert found.accepted == 1
    assert {example.table for example in found.examples} == {"short", "pairs"}
    report = lab.backfill(BASE, BASE + 30 * MINUTE)
    assert found.windows == report.windows
    lab.check()


@pytest.mark.deep
def test_what_a_killed_check_left_goes_with_maintenance_and_a_run_left_open_comes_first(
    life: Life,
) -> None:
    lab = life.lab
    left = life.root / COPY / "lab" / "hourly"
    left.mkdir(parents=True)
    (left / "part-0.parquet").write_bytes(b"")
    maintain(lab.spark, lab.pipeline)
    assert list_copied(life) == ["_lock"]
    landed = lab.land([event("open", 400, "e")])
    ends_at(Crasher("batch.processed"), lab.go)
    spec = str(lab.root / "lab.yaml")
    words = ["backfill", spec, "--from", "2026-01-05", "--to", "2026-01-06", "--check"]
    said = CliRunner().invoke(main, words, prog_name="tidemark")
    assert (said.exit_code, said.stdout) == (2, "")
    assert "the next run finishes it; check after that" in said.stderr
    assert said.stderr.count("\n") == 1
    lab.go()
    lab.truth.run(landed, ARRIVAL)
    lab.check()


@pytest.mark.slow
def test_a_backfill_that_finishes_a_killed_one_says_what_that_did(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, WINDOWS[:1], lateness=0, delay=0, shows=FEW)
    lab.run([Event("a", BASE + 300 * MINUTE, 1, "on time")])
    lab.run([Event("a", BASE + n * MINUTE, 1, f"late {n}") for n in range(2)])
    start, end = moment(BASE), moment(BASE + 60 * MINUTE)
    ends_at(Crasher("backfill.intended"), lambda: backfill(spark, lab.pipeline, start, end))
    report = backfill(spark, lab.pipeline, start, end)
    assert (report.read, report.accepted) == (2, 2)
    assert backfill(spark, lab.pipeline, start, end).accepted == 0


@pytest.mark.slow
def test_the_report_counts_the_partly_late_events_that_a_window_had_missed(
    spark: SparkSession, tmp_path: Path
) -> None:
    windows = (Tumbling("hourly", HOUR), Tumbling("daily", DAY))
    lab = Lab(spark, tmp_path, windows, lateness=0, delay=0, shows=FEW)
    lab.run(events("first", (5, 90)))
    lab.run(events("behind", (6, 7, 91)))
    assert lab.backfill(BASE, BASE + DAY).caught_up == {"hourly": 2}
    assert lab.backfill(BASE, BASE + DAY).caught_up == {}
