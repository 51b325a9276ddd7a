"""An erased key is in no table, no older version and no file; the values of other keys stay.

That is so also when the erase is interrupted.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from pyspark.sql import SparkSession

from jobs.backfill import backfill
from jobs.erase import erase, lift_erasure
from jobs.maintain import maintain
from jobs.publish import publish
from jobs.read import read
from jobs.reconcile import check_range
from jobs.validate import validate
from tests.oracle import Event, Tumbling
from tests.support.command_line import run_command
from tests.support.erased_canary import CANARY, LEFT, WINDOWS
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, Life, ends_at
from tests.support.pipeline_under_test import ARRIVAL, FEW, SCHEMA, Lab
from tests.support.stored_rows import list_stored
from windowing.crash import armed
from windowing.errors import TidemarkError, UsageError
from windowing.grid.zone import micros, moment
from windowing.ledger.erased import Erasing
from windowing.ledger.rule import ERASE_INTENT, ERASE_LIST, LedgerEntry
from windowing.ledger.table import read_history, record_entries
from windowing.report.facts import Facts
from windowing.report.rule import Changed
from windowing.report.table import read_facts
from windowing.spec.load import load_pipeline


def lived(spark: SparkSession, root: Path) -> Life:
    """Two published runs, with the canary on time, late, partly late, duplicate and quarantined."""
    lab = Lab(
        spark,
        root,
        (*WINDOWS, LEFT),
        lateness=60 * MINUTE,
        delay=10 * MINUTE,
        shows=FEW,
    )
    for run, times in enumerate([(0, 5, 180), (1, 100, 170, 5, None, 200)]):
        canary = events_at(CANARY, f"c{run}", times)
        lab.land([*canary, *events_at("a", f"a{run}", times)])
        lab.go()
    lab.windows = WINDOWS
    lab.pipeline = load_pipeline(lab.spec())
    (lab.root / "lab.yaml").write_text(json.dumps(lab.spec()))
    lab.go()
    validate(spark, lab.pipeline)
    publish(lab.pipeline)
    return Life(lab)


@pytest.fixture(scope="module")
def life(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """The pipeline of those tests that go on from one another."""
    return lived(spark, tmp_path_factory.mktemp("erase"))


def events_at(key: str, name: str, minutes: tuple[int | None, ...]) -> list[Event]:
    """Events of one run; those of minute 5 have the same id in both runs, None is no time."""
    events: list[Event] = []
    for n, minute in enumerate(minutes):
        at = None if minute is None else BASE + minute * MINUTE
        event_id = name[0] if minute == 5 else f"{name}-{minute}"
        events.append(Event(key, at, 1, event_id, n))
    return events


def places(life: Life, text: str) -> list[str]:
    """Every file of the pipeline that contains `text`."""
    files = [path for path in life.root.rglob("*") if path.is_file()]
    return [file.name for file in files if text.encode() in file.read_bytes()]


def without_rows_of_canary(life: Life, table: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The rows of an output, by window, that belong to other keys."""
    rows = life.lab.table(table)
    return {place: row for place, row in rows.items() if place[0] != CANARY}


def counts_of_readers(lab: Lab) -> dict[str, int]:
    """How many published rows each output has."""
    return {w.name: read(lab.spark, lab.pipeline, w.name).count() for w in lab.windows}


def rows_of_canary(life: Life, table: str) -> int:
    """How many rows of the canary a table contains."""
    rows = list_stored(life.lab.spark, life.lab.pipeline.table(table))
    return sum(row["key"] == CANARY for row in rows)


def without_canary(life: Life) -> None:
    """Checks that outputs and published versions contain no row of the canary."""
    lab = life.lab
    published = counts_of_readers(lab)
    for window in lab.windows:
        rows = lab.table(window.name)
        assert CANARY not in {place[0] for place in rows}
        assert published[window.name] == len(rows)
    assert validate(lab.spark, lab.pipeline).passed


def command(life: Life, *words: str) -> Result:
    """`tidemark erase` on the pipeline."""
    return run_command(life.lab, "erase", *words)


def check_erasure(life: Life, erase_canary: Callable[[], None]) -> None:
    """The canary is there in every way, and nowhere after `erase_canary`; other keys stay."""
    lab = life.lab
    others = {window.name: without_rows_of_canary(life, window.name) for window in lab.windows}
    for table in ("_late", "_quarantine", "_duplicates"):
        assert rows_of_canary(life, table) > 0, table
    assert places(life, CANARY), "the canary can be found where it is"
    for table in ("hourly", "_seen"):
        life.leave_killed_write(table, CANARY)
    assert rows_of_canary(life, "left") > 0
    erase_canary()
    again = Crasher("erase.vacuumed", nth=0)
    with armed(again):
        assert not erase(lab.spark, lab.pipeline, Erasing({"key": CANARY})).resumed
    assert again.seen == 0, "tables that hold nothing of their past are left as they are"
    life.forget()
    without_canary(life)
    assert {w.name: lab.table(w.name) for w in lab.windows} == others
    assert places(life, CANARY) == []
    ids = {row["event_id"] for row in list_stored(lab.spark, lab.pipeline.table("_seen"))}
    assert ids and not any(i.startswith("c") for i in ids)


def shown_by_report(life: Life) -> Facts:
    """The facts of the report page."""
    return read_facts(life.lab.pipeline, lambda: life.lab.spark)


def interrupt_erasure(life: Life, place: str) -> None:
    """An erasure of the canary that ends at `place`."""
    lab = life.lab
    ends_at(Crasher(place), lambda: erase(lab.spark, lab.pipeline, Erasing({"key": CANARY})))


@pytest.mark.slow
def test_a_key_is_nowhere_any_more(life: Life) -> None:
    """In hourly windows the canary has minutes 0 and 5, 100, 170, and 180 with 200."""

    def erase_by_command() -> None:
        interrupt_erasure(life, "erase.intended")
        assert shown_by_report(life).unfinished == ("an erasure",)
        result = command(life, "--key", CANARY, "--yes", "--json")
        assert result.exit_code == 0, result.output
        done = json.loads(result.stdout)
        assert done["rows"]["hourly"] == 4
        assert done["resumed"]
        assert "This erase also finished one that was interrupted" in result.stderr
        assert "erase that key again" not in result.stderr, "which key it was is recorded"
        facts = shown_by_report(life)
        assert facts.unfinished == ()
        (hourly,) = [output for output in facts.outputs if output.name == "hourly"]
        assert hourly.changes[0] == ("erasure", Changed(deleted=4))

    check_erasure(life, erase_by_command)


PLACES = (
    "erase.intended",
    "erase.kept",
    "erase.deleted",
    "publish.noted",
    "erase.vacuumed",
    "erase.done",
)


@pytest.mark.deep
def test_an_erasure_that_ends_anywhere_is_finished(spark: SparkSession, tmp_path: Path) -> None:
    life = lived(spark, tmp_path)

    def interrupt_everywhere() -> None:
        for place in PLACES:
            interrupt_erasure(life, place)

    check_erasure(life, interrupt_everywhere)


@pytest.mark.slow
def test_an_erasure_is_open_as_long_as_files_are_newer_than_the_clock(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As behind a clock that was set back; VACUUM leaves them, without a word."""
    lab = Lab(spark, tmp_path, WINDOWS[:1], shows=("n",))
    lab.land([Event("a", BASE, 1, "of a"), Event("b", BASE, 1, "of b")])
    lab.go()
    hourly = lab.pipeline.table("hourly").local
    (file,) = hourly.glob("*.parquet")
    others = hourly / "_SUCCESS"
    others.touch()
    now = file.stat().st_mtime
    os.utime(file, (now, now + 86_400))
    for _ in range(2):
        with pytest.raises(TidemarkError, match=r"^lab: 1 file of hourly may still contain what "):
            erase(spark, lab.pipeline, Erasing({"key": "b"}))
        assert read_history(lab.pipeline).open_erasure is not None
    os.utime(file, (now, now))
    assert erase(spark, lab.pipeline, Erasing({"key": "b"})).resumed
    assert not file.exists()
    assert others.exists(), "VACUUM passes over it"
    assert read_history(lab.pipeline).open_erasure is None
    check_total(lab, 1)


@pytest.mark.slow
def test_the_next_run_goes_on_without_the_key(life: Life) -> None:
    """In hourly windows, in refused rows and in the watermark, however far ahead it is."""
    lab = life.lab
    lab.land(
        [
            Event("a", BASE + 210 * MINUTE, 1, "later"),
            Event(CANARY, BASE + 211 * MINUTE, 1, "again"),
            Event(CANARY, None, 1, "never"),
            Event(CANARY, BASE + 900 * MINUTE, 1, "far ahead"),
        ]
    )
    report = lab.go(ARRIVAL)
    assert (report.read, report.accepted, report.erased) == (4, 1, 3)
    assert (report.late, report.duplicate, report.quarantined) == (0, 0, 0)
    assert report.watermark == moment(BASE + 200 * MINUTE)
    assert places(life, CANARY) == []
    (row,) = [row for row in shown_by_report(life).runs if row.run == report.run]
    assert (row.read, row.erased) == (4, 3)


@pytest.mark.deep
def test_a_backfill_leaves_the_key_out(spark: SparkSession, tmp_path: Path) -> None:
    """The source has seven rows of it with a time in the range, and a run was after the erasure."""
    life = lived(spark, tmp_path)
    lab = life.lab
    erase(lab.spark, lab.pipeline, Erasing({"key": CANARY}))
    lab.land([Event("a", BASE + 210 * MINUTE, 1, "later")])
    lab.go(ARRIVAL)
    start, end = moment(BASE - 60 * MINUTE), moment(BASE + 800 * MINUTE)
    assert check_range(lab.spark, lab.pipeline, start, end).accepted == 1, "the late one of a"
    report = backfill(lab.spark, lab.pipeline, start, end)
    in_range = [e for e in lab.landed if e.key == CANARY and e.t is not None and e.t < micros(end)]
    assert report.erased == len(in_range) > 5
    assert places(life, CANARY) == []
    assert validate(lab.spark, lab.pipeline).passed


@pytest.mark.slow
def test_the_key_is_read_again_once_that_is_lifted(life: Life) -> None:
    lab = life.lab
    entries = len(read_history(lab.pipeline).entries)
    for key, lifted in (("nobody", False), (CANARY, True), (CANARY, False)):
        result = command(life, "--key", key, "--lift", "--json")
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout) == {"pipeline": "lab", "lifted": lifted}
        said = "count again" if lifted else "was not erased, so nothing was changed"
        assert said in result.stderr
    assert len(read_history(lab.pipeline).entries) == entries + 1
    lab.land(
        [
            Event("a", BASE + 212 * MINUTE, 1, "later still"),
            Event(CANARY, BASE + 213 * MINUTE, 1, "once again"),
        ]
    )
    assert lab.go(ARRIVAL).accepted == 2
    assert [place[0] for place in lab.table("hourly")].count(CANARY) == 1


@pytest.mark.slow
def test_readers_that_see_an_older_run_come_first(life: Life) -> None:
    with pytest.raises(
        UsageError,
        match="the published run 2 is not the newest, so erase would delete .*`tidemark publish`",
    ):
        erase(life.lab.spark, life.lab.pipeline, Erasing({"key": CANARY}))


@pytest.mark.deep
def test_a_run_that_came_between_is_published_before_an_erasure_is_finished(life: Life) -> None:
    lab = life.lab
    validate(lab.spark, lab.pipeline)
    publish(lab.pipeline)
    published = read_history(lab.pipeline).last_run
    interrupt_erasure(life, "erase.vacuumed")
    lab.land(
        [
            Event("a", BASE + 220 * MINUTE, 1, "between"),
            Event(CANARY, BASE + 221 * MINUTE, 1, "once more"),
        ]
    )
    lab.go()
    before = counts_of_readers(lab)
    with pytest.raises(UsageError, match=f"the published run {published} is not the newest"):
        erase(lab.spark, lab.pipeline, Erasing({"key": CANARY}))
    assert counts_of_readers(lab) == before
    assert validate(lab.spark, lab.pipeline).passed, (
        "although the ledger still counts what is erased in part"
    )
    # What is published now was validated, and one more run has not been.
    lab.land([Event("a", BASE + 222 * MINUTE, 1, "unjudged")])
    lab.go()
    publish(lab.pipeline)
    before = counts_of_readers(lab)
    with pytest.raises(UsageError, match=f"the published run {published + 1} is not the newest"):
        erase(lab.spark, lab.pipeline, Erasing({"key": CANARY}))
    assert counts_of_readers(lab) == before
    validate(lab.spark, lab.pipeline)
    publish(lab.pipeline)
    assert erase(lab.spark, lab.pipeline, Erasing({"key": CANARY})).resumed
    without_canary(life)


FIVE_DAYS = 5 * 1440 * MINUTE


def lab_with_old_events(spark: SparkSession, root: Path, shows: tuple[str, ...] = ("n",)) -> Lab:
    """Three events of b whose panes maintenance deletes; a and c have a newer one each."""
    lab = Lab(spark, root, WINDOWS[:1], lateness=0, ids=False, shows=shows)
    lab.pipeline = load_pipeline(lab.spec() | {"retention": {"state": "1 day"}})
    lab.land([Event("b", BASE + n * MINUTE, 1) for n in range(3)])
    lab.go()
    lab.land([Event(key, BASE + FIVE_DAYS, 1) for key in "ac"])
    lab.go()
    return lab


def lab_without_old_panes(spark: SparkSession, root: Path, shows: tuple[str, ...] = ("n",)) -> Lab:
    """The same after maintenance."""
    lab = lab_with_old_events(spark, root, shows)
    maintain(spark, lab.pipeline)
    return lab


def check_total(lab: Lab, accepted: int) -> None:
    """The ledger counts so many accepted events, and the outputs add up to it."""
    assert read_history(lab.pipeline).total("accepted") == accepted
    assert validate(lab.spark, lab.pipeline).passed


@pytest.mark.deep
@pytest.mark.parametrize("shows", [("n",), ("total",)], ids=["counted", "not counted"])
def test_a_key_that_comes_again_where_state_is_gone_is_erased_again(
    shows: tuple[str, ...], spark: SparkSession, tmp_path: Path
) -> None:
    lab = lab_without_old_panes(spark, tmp_path, shows)
    erase(spark, lab.pipeline, Erasing({"key": "b"}))
    check_total(lab, 2)
    lift_erasure(spark, lab.pipeline, Erasing({"key": "b"}))
    lab.land([Event("b", BASE + FIVE_DAYS + MINUTE, 1)])
    lab.go()
    check_total(lab, 3)
    erase(spark, lab.pipeline, Erasing({"key": "b"}))
    check_total(lab, 2)
    assert {place[0] for place in lab.table("hourly")} == {"a", "c"}


@pytest.mark.slow
def test_a_rebuild_counts_no_copy_of_what_was_erased_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    hourly, daily = Tumbling("hourly", 60 * MINUTE), Tumbling("daily", 1440 * MINUTE)
    lab = Lab(spark, tmp_path, (hourly,), shows=("n",))
    lab.run([Event("a", BASE, 1, "a"), Event("b", BASE, 1, "b")])
    lab.run([Event("b", BASE, 1, "b", 1)])
    erase(spark, lab.pipeline, Erasing({"key": "b"}))
    lift_erasure(spark, lab.pipeline, Erasing({"key": "b"}))
    lab.respecify((hourly, daily))
    lab.go()
    assert [place[0] for place in lab.table("hourly")] == ["a"]
    assert [place[0] for place in lab.table("daily")] == ["a"]
    backfill(spark, lab.pipeline, moment(BASE), moment(BASE + MINUTE))
    for window in ("hourly", "daily"):
        assert {place[0]: row["count"] for place, row in lab.table(window).items()} == {
            "a": 1,
            "b": 1,
        }
    assert validate(spark, lab.pipeline).passed


INTERRUPTED = [("erase.intended", 1), ("erase.deleted", 2)]
"""After the intent, and after panes and output have lost the key."""


@pytest.mark.deep
@pytest.mark.parametrize(("place", "nth"), INTERRUPTED)
def test_what_comes_while_an_erasure_is_interrupted_counts_nowhere(
    place: str, nth: int, spark: SparkSession, tmp_path: Path
) -> None:
    lab = lab_without_old_panes(spark, tmp_path)
    ends_at(Crasher(place, nth), lambda: erase(spark, lab.pipeline, Erasing({"key": "b"})))
    lab.land([Event("b", BASE + FIVE_DAYS + MINUTE, 1)])
    assert lab.go().erased == 1
    assert erase(spark, lab.pipeline, Erasing({"key": "b"})).resumed
    check_total(lab, 2)
    assert {place[0] for place in lab.table("hourly")} == {"a", "c"}


@pytest.mark.deep
@pytest.mark.parametrize(("place", "nth"), INTERRUPTED)
def test_an_erasure_is_finished_by_that_of_another_key(
    place: str, nth: int, spark: SparkSession, tmp_path: Path
) -> None:
    lab = lab_without_old_panes(spark, tmp_path)
    ends_at(Crasher(place, nth), lambda: erase(spark, lab.pipeline, Erasing({"key": "b"})))
    done = erase(spark, lab.pipeline, Erasing({"key": "a"}))
    assert done.resumed and not done.unknown
    check_total(lab, 1)
    assert {place[0] for place in lab.table("hourly")} == {"c"}
    again = erase(spark, lab.pipeline, Erasing({"key": "b"}))
    assert not again.resumed and not any(again.rows.values())
    check_total(lab, 1)


@pytest.mark.deep
@pytest.mark.parametrize("shows", [("n",), ("total",)], ids=["counted", "not counted"])
def test_an_erasure_that_an_earlier_release_began_is_finished(
    shows: tuple[str, ...], spark: SparkSession, tmp_path: Path
) -> None:
    """The ledger does not say which key that was; it was another one, or it was this one."""
    lab = lab_without_old_panes(spark, tmp_path, shows)
    past = read_history(lab.pipeline)
    begun = LedgerEntry(ERASE_INTENT, run=past.last_run, at=past.last_arrival)
    record_entries(lab.pipeline, past, [begun])
    done = erase(spark, lab.pipeline, Erasing({"key": "a"}))
    assert done.resumed and done.unknown
    check_total(lab, 4)
    assert erase(spark, lab.pipeline, Erasing({"key": "b"})).rows["hourly"] == 1
    check_total(lab, 1)


@pytest.mark.deep
def test_a_key_is_erased_before_anything_is_read(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, WINDOWS[:1], shows=("n",))
    lab.land([Event("a", BASE, 1, "x"), Event("b", BASE, 1, "y")])
    ends_at(Crasher("erase.listed"), lambda: erase(spark, lab.pipeline, Erasing({"key": "b"})))
    assert not erase(spark, lab.pipeline, Erasing({"key": "b"})).rows
    assert [entry.step for entry in read_history(lab.pipeline).entries] == [ERASE_LIST]
    report = lab.go()
    assert (report.accepted, report.erased) == (1, 1)
    assert {place[0] for place in lab.table("hourly")} == {"a"}


@pytest.mark.deep
def test_no_erasure_is_lifted_while_one_is_interrupted(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, WINDOWS[:1], shows=("n",))
    lab.land([Event("a", BASE, 1, "x"), Event("b", BASE, 1, "y")])
    lab.go()
    ends_at(Crasher("erase.intended"), lambda: erase(spark, lab.pipeline, Erasing({"key": "b"})))
    with pytest.raises(UsageError, match="an erase was interrupted"):
        lift_erasure(spark, lab.pipeline, Erasing({"key": "b"}))
    erase(spark, lab.pipeline, Erasing({"key": "b"}))
    assert lift_erasure(spark, lab.pipeline, Erasing({"key": "b"})).lifted


@pytest.mark.deep
def test_what_expires_while_an_erasure_is_interrupted_is_not_erased(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = lab_with_old_events(spark, tmp_path)
    ends_at(Crasher("erase.intended"), lambda: erase(spark, lab.pipeline, Erasing({"key": "a"})))
    maintain(spark, lab.pipeline)
    erase(spark, lab.pipeline, Erasing({"key": "a"}))
    check_total(lab, 4)


@pytest.mark.deep
def test_a_key_that_can_be_none_is_refused_before_an_erasure_is_recorded(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = SCHEMA.replace("key string", "key int")
    lab = Lab(spark, tmp_path, WINDOWS[:1], shows=("n",), schema=schema)
    lab.land([Event(7, BASE, 1, "x"), Event(8, BASE, 1, "y")])
    lab.go()
    before = read_history(lab.pipeline).entries
    with pytest.raises(UsageError, match="'abc' is not a value of 'key', which is of type int"):
        erase(spark, lab.pipeline, Erasing({"key": "abc"}))
    assert read_history(lab.pipeline).entries == before
    assert erase(spark, lab.pipeline, Erasing({"key": "7"})).rows["hourly"] == 1
    assert {place[0] for place in lab.table("hourly")} == {8}


@pytest.mark.deep
def test_an_event_id_that_another_key_has_was_accepted_and_stays(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, WINDOWS[:1], shows=("n",))
    lab.land([Event("a", BASE, 1, "of a"), Event("b", BASE, 1, "of b")])
    assert lab.go().accepted == 2
    lab.land([Event("b", BASE, 1, "of a"), Event("a", BASE, 1, "of b")])
    assert lab.go().duplicate == 2
    assert erase(spark, lab.pipeline, Erasing({"key": "b"})).rows["_seen"] == 1
    lab.land([Event("a", BASE, 1, "of a"), Event("b", BASE, 1, "of b")])
    lab.land([Event("a", BASE, 1, "of b")])
    report = lab.go()
    assert (report.accepted, report.duplicate, report.erased) == (1, 1, 1)
    counted = {place[0]: row["count"] for place, row in lab.table("hourly").items()}
    assert counted == {"a": 2}, "the id that only the erased key had was free again"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "erase takes one value for each key column of lab: --key COLUMN=VALUE"),
        (("--key", "a", "--key", "b"), "erase takes one value for each key column"),
        (("--key", "a"), "it asks first, and there is no terminal to ask on: give --yes"),
        (("--key", "place=a"), "'place' is not a key column of lab"),
    ],
)
def test_wrong_questions(words: tuple[str, ...], sentence: str, life: Life) -> None:
    result = command(life, *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr and result.stderr.count("\n") == 1
