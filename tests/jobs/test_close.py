"""Periods are closed, reopened and shown; whatever else works on a closed pipeline knows of it."""

import json
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.cli.main import main
from jobs.close import close_period, reopen_period
from jobs.doctor import diagnose
from jobs.erase import erase
from jobs.evidence.accepted_events import AcceptedEvents
from jobs.maintain import maintain
from jobs.publish import publish
from jobs.reconcile import check_range
from jobs.restatements import restatements
from jobs.validate import validate
from tests.oracle import Count, Event, Session, Tumbling
from tests.support.closed_lab import ClosedLab
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, ends_at
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab
from windowing.closed.rule import restated_name
from windowing.errors import ExpectationsFailed, StateRefused, UsageError
from windowing.grid.zone import micros, moment
from windowing.ledger.erased import Erasing
from windowing.ledger.rule import PERIOD_CLOSED, PERIOD_INTENT
from windowing.ledger.table import read_history
from windowing.merge import table as outputs
from windowing.merge.rule import published_name
from windowing.storage import delta, delta_log, upkeep

HOUR = 60 * MINUTE
WINDOWS = (Tumbling("hourly", HOUR), Session("visits", 10 * MINUTE), Count("pairs", 2))


def at(minutes: int, key: str = "a", value: int = 1) -> Event:
    """An event so many minutes after the beginning."""
    return Event(key, BASE + minutes * MINUTE, value, f"{key}{minutes}", minutes)


FIRST = [at(5), at(12), at(50), at(70), at(125), at(5, "b"), at(130, "b")]


@pytest.fixture
def closed(spark: SparkSession, tmp_path: Path) -> ClosedLab:
    """Two hours, of which the first one is closed."""
    lab = Lab(spark, tmp_path, WINDOWS, shows=FEW)
    lab.run(FIRST)
    found = ClosedLab(lab)
    found.close(BASE + HOUR)
    return found


@pytest.mark.slow
def test_what_comes_late_is_stated_and_not_shown(closed: ClosedLab) -> None:
    lab = closed.lab
    closed.check()
    lab.run([at(20, value=4), at(30, "b"), at(140)])
    closed.check()
    lab.run([at(58), at(64)])
    # A session from the closed hour into the next one is held back.
    closed.check()
    lab.backfill(BASE, BASE + 30 * MINUTE)
    closed.check()
    assert validate(lab.spark, lab.pipeline).passed
    assert check_range(lab.spark, lab.pipeline, moment(BASE), moment(BASE + HOUR)).agrees
    found = restatements(lab.spark, lab.pipeline, lab.pipeline.window("hourly"))
    (hourly,) = found.windows
    shown = {each.key["key"]: each for each in hourly.rows}
    assert (hourly.total, found.reason) == (2, "invoiced")
    assert shown["a"].difference == {"n": 2, "total": 5, "opening": 0}
    assert (shown["b"].operation, shown["b"].difference["n"]) == ("update", 1)
    printed = tidemark("restatements", closed, "visits")
    assert printed["windows"][0]["total"] > 0
    closed.reopen()
    closed.check()
    assert restatements(lab.spark, lab.pipeline).until is None
    assert validate(lab.spark, lab.pipeline).passed


@pytest.mark.slow
def test_a_run_says_what_it_restates(closed: ClosedLab) -> None:
    lab = closed.lab
    found = lab.run([at(20, value=4), at(30, "b"), at(140)])
    assert (found.windows["hourly"].restated, found.windows["pairs"].restated) == (2, 0)
    assert lab.backfill(BASE, BASE + 30 * MINUTE).windows["hourly"].restated == 0


@pytest.mark.slow
def test_the_ledger_has_the_time_of_a_close(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, WINDOWS[:1], shows=FEW)
    lab.run(FIRST, BASE + 24 * HOUR)
    ClosedLab(lab).close(BASE + HOUR)
    past = read_history(lab.pipeline)
    begun, done = (e.at or 0 for e in past.entries if e.step in (PERIOD_INTENT, PERIOD_CLOSED))
    assert BASE + 24 * HOUR == past.last_arrival < begun <= done


@pytest.mark.slow
def test_what_is_not_restated_is_not_read_to_validate(
    closed: ClosedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = closed.lab
    lab.run([at(20), at(140)])
    closed.reopen()
    monkeypatch.setattr(outputs, "read_version", lambda *_: pytest.fail("read"))
    assert validate(lab.spark, lab.pipeline).passed
    closed.close(BASE + HOUR)
    lab.run([at(200)])
    assert validate(lab.spark, lab.pipeline).passed


@pytest.mark.slow
def test_what_was_validated_before_a_close_is_not_published_after_it(closed: ClosedLab) -> None:
    lab = closed.lab
    lab.run([at(130)])
    assert validate(lab.spark, lab.pipeline).passed
    lab.run([at(62), at(131)])
    closed.close(BASE + 2 * HOUR)
    with pytest.raises(ExpectationsFailed, match="validate"):
        publish(lab.pipeline)
    assert validate(lab.spark, lab.pipeline).passed
    publish(lab.pipeline)
    shown = delta.read(lab.spark, lab.pipeline.table("hourly"))
    seen = delta.read(lab.spark, lab.pipeline.table(published_name("hourly")))
    columns = ["key", "window_start", "n", "total"]
    assert seen.select(*columns).exceptAll(shown.select(*columns)).isEmpty()
    assert shown.select(*columns).exceptAll(seen.select(*columns)).isEmpty()


@pytest.mark.slow
def test_rows_are_frozen_as_readers_see_them(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, WINDOWS, shows=FEW)
    lab.run(FIRST)
    validate(spark, lab.pipeline)
    publish(lab.pipeline)
    lab.run([at(20)])
    closed = ClosedLab(lab)
    with pytest.raises(UsageError, match=r"newest rows of hourly, visits that end until .*publish"):
        closed.close(BASE + HOUR)
    assert read_history(lab.pipeline).open_period is None
    validate(spark, lab.pipeline)
    publish(lab.pipeline)
    # What ends behind the border may wait for its publication.
    lab.run([at(100)])
    closed.close(BASE + HOUR)
    lab.run([at(25)])
    closed.check()
    found = restatements(spark, lab.pipeline, lab.pipeline.window("hourly"))
    assert [(each.operation, each.run) for each in found.windows[0].rows] == [("update", 4)]


@pytest.mark.slow
def test_the_steps_are_told_that_brought_what_is_restated(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, WINDOWS[:2], shows=FEW, lateness=3 * HOUR)
    lab.run([at(5), at(12), at(50), at(70), at(5, "b"), at(8, "c"), at(125)])
    closed = ClosedLab(lab)
    closed.close(BASE + HOUR)
    # The second close freezes what comes in minute 75, so that restates nothing.
    lab.run([at(75), at(20), at(22), at(9, "b"), at(50)])
    closed.close(BASE + 2 * HOUR)
    lab.run([at(30), at(90), at(130), at(300)])
    assert lab.run([at(38), at(41, "c")]).late == 2
    lab.backfill(BASE, BASE + HOUR)
    closed.check()
    three = [("run", 2), ("run", 1), ("backfill", 1)]
    assert brought_by(closed, "hourly") == {
        ("a", 0): three,
        ("a", 60): [("run", 1)],
        ("b", 0): [("run", 1)],
        ("c", 0): [("backfill", 1)],
    }
    assert brought_by(closed, "visits") == {
        ("a", 5): three,
        ("a", 90): [("run", 1)],
        ("b", 5): [("run", 1)],
        ("c", 41): [("backfill", 1)],
    }
    (first, *_) = tidemark("restatements", closed, "hourly", "--events=1")["windows"][0]["rows"]
    of_run, _, of_backfill = (each["events"] for each in first["brought_by"])
    assert [each["event_id"] for each in of_run["ids"]] == ["a20"]
    assert of_backfill["latest_behind_seconds"] == 262 * 60


@pytest.mark.slow
def test_a_session_that_frozen_ones_hold_back_counts_from_their_close(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, WINDOWS[1:2], shows=FEW)
    lab.run([at(50), at(300)])
    closed = ClosedLab(lab)
    closed.close(BASE + HOUR)
    lab.run([at(41), at(56)])
    # The session that would be there now ends within what is closed only here.
    closed.close(BASE + 2 * HOUR)
    assert brought_by(closed, "visits") == {("a", 41): [("run", 2)], ("a", 50): [("run", 1)]}


def brought_by(closed: ClosedLab, window: str) -> dict[tuple[str, int], list[tuple[str, int]]]:
    """By key and minute of the start, the kinds of steps and how many events each has accepted."""
    lab = closed.lab
    found = restatements(lab.spark, lab.pipeline, lab.pipeline.window(window), events=2)
    told = {}
    for row in found.windows[0].rows:
        assert isinstance(row.start, datetime)
        minute = (micros(row.start) - BASE) // MINUTE
        steps = []
        for each in row.brought_by or ():
            assert isinstance(each.events, AcceptedEvents)
            steps.append((str(each.step.cause), each.events.count))
        told[row.key["key"], minute] = steps
    return told


def tidemark(command: str, closed: ClosedLab, *words: str) -> dict[str, Any]:
    """What a command prints as JSON."""
    file = closed.lab.root / "lab.yaml"
    file.write_text(json.dumps(closed.lab.spec()))
    said = CliRunner().invoke(main, [command, str(file), *words, "--json"], prog_name="tidemark")
    assert said.exit_code == 0, said.output
    found: dict[str, Any] = json.loads(said.stdout)
    return found


@pytest.mark.slow
def test_a_close_and_a_reopening_that_end_at_any_place_are_finished(closed: ClosedLab) -> None:
    lab = closed.lab
    for n, place in enumerate(("period.intended", "period.frozen", "period.done")):
        later = BASE + 2 * HOUR + n * MINUTE
        closes = partial(close_period, lab.spark, lab.pipeline, moment(later), "invoiced")
        ends_at(Crasher(place), closes)
        # The first two are finished by the same command, and the last one was done.
        done = closes()
        assert (done.changed, done.frozen["hourly"] > 0) == (place != "period.done", True)
        closed.close(later)
        closed.check()
    for place, late in (("output.corrected", (20, 58)), ("period.restated", (33, 64))):
        landed = lab.land([at(minute) for minute in late])
        ends_at(Crasher(place), lab.go)
        lab.go()
        lab.truth.run(landed, ARRIVAL)
        closed.check()
    for place in ("period.intended", "period.released", "period.opened"):
        ends_at(Crasher(place), lambda: reopen_period(lab.spark, lab.pipeline, "wrong"))
    found = reopen_period(lab.spark, lab.pipeline, "wrong")
    assert found.until == moment(later), "it was finished, and what it changed is not known"
    assert found.windows == {}
    assert reopen_period(lab.spark, lab.pipeline, "wrong").until is None
    lab.go()
    assert read_history(lab.pipeline).period is None
    closed.until = None
    closed.check()


@pytest.mark.slow
def test_the_doctor_finds_a_frozen_row_that_was_changed(closed: ClosedLab) -> None:
    lab = closed.lab
    assert diagnose(lab.spark, lab.pipeline) == ()
    output = lab.pipeline.table("hourly")
    older = F.col("key") == "b"
    # While a run is open the version of an output is not compared.
    landed = lab.land([at(200)])
    ends_at(Crasher("batch.done"), lab.go)
    upkeep.update_rows(lab.spark, output, older, {"`total`": F.lit(9).cast("bigint")})
    lab.go()
    lab.truth.run(landed, ARRIVAL)
    (found,) = diagnose(lab.spark, lab.pipeline)
    assert (found.code, "rows of hourly" in found.message) == ("FROZEN_CHANGED", True)
    # A command that writes new digests would hide it.
    later = moment(BASE + 2 * HOUR)
    for step in (
        partial(close_period, lab.spark, lab.pipeline, later, "invoiced"),
        partial(erase, lab.spark, lab.pipeline, Erasing({"key": "a"})),
    ):
        with pytest.raises(StateRefused, match=r"FROZEN_CHANGED.*rows of hourly"):
            step()
    ends_at(Crasher("maintain.intended"), lambda: maintain(lab.spark, lab.pipeline))
    assert [each.code for each in diagnose(lab.spark, lab.pipeline)] == ["FROZEN_CHANGED"]
    reopen_period(lab.spark, lab.pipeline, "a row was changed")
    lab.backfill(BASE, BASE + 4 * HOUR)
    closed.until = None
    closed.check()


@pytest.mark.slow
def test_an_erased_key_is_erased_from_frozen_and_restated_rows(closed: ClosedLab) -> None:
    lab = closed.lab
    lab.run([at(20), at(30, "b")])
    with pytest.raises(UsageError, match="reopen"):
        erase(lab.spark, lab.pipeline, Erasing({"value": "1"}, "value"))
    erase(lab.spark, lab.pipeline, Erasing({"key": "b"}))
    for name in ("hourly", restated_name("hourly"), "visits", restated_name("visits")):
        keys = delta.read(lab.spark, lab.pipeline.table(name)).select("key").distinct().collect()
        assert [row["key"] for row in keys] == ["a"], name
    assert diagnose(lab.spark, lab.pipeline) == ()


@pytest.mark.slow
def test_maintenance_keeps_frozen_rows(closed: ClosedLab) -> None:
    lab = closed.lab
    lab.run([at(20), at(30, "b")])
    maintain(lab.spark, lab.pipeline, moment(ARRIVAL) + timedelta(days=40))
    path = lab.pipeline.table(restated_name("hourly"))
    assert delta_log.file_retention(lab.spark, path) == timedelta(days=30)
    closed.check()
    assert diagnose(lab.spark, lab.pipeline) == ()


def test_what_a_close_refuses(closed: ClosedLab) -> None:
    lab = closed.lab
    watermark = closed.watermark() or 0
    for until, why in ((watermark + 1, "watermark"), (BASE, "forward")):
        with pytest.raises(UsageError, match=why):
            close_period(lab.spark, lab.pipeline, moment(until), "invoiced")
    with pytest.raises(UsageError, match="reason"):
        close_period(lab.spark, lab.pipeline, moment(BASE + HOUR), " ")
    again = close_period(lab.spark, lab.pipeline, moment(BASE + HOUR), "again")
    assert (again.changed, again.reason, again.not_frozen) == (False, "invoiced", ("pairs",))
    lab.respecify(WINDOWS[:2])
    with pytest.raises(StateRefused, match=r"SPEC_CHANGED.*closed until.*reopen"):
        lab.go()


def test_before_the_first_run_nothing_is_closed(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, WINDOWS[:1], shows=FEW)
    lab.land(FIRST[:1])
    with pytest.raises(UsageError, match="nothing was computed"):
        close_period(spark, lab.pipeline, datetime.fromisoformat("2026-01-05T00:00Z"), "invoiced")
    assert reopen_period(spark, lab.pipeline, "wrong").until is None
