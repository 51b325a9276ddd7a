"""A source without a change feed whose rows are updated and deleted after they were read.

A run is refused, and the repair that its message names makes the outputs those of what the source
then holds.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.publish import publish
from jobs.run import follow_rewrites
from jobs.validate import validate
from tests import oracle
from tests.oracle import Event
from tests.support.changing_source import Changing
from tests.support.command_line import run_command
from tests.support.long_lived_pipeline import MINUTE, Crash, Crasher, ends_at
from tests.support.pipeline_under_test import FEW, us
from tests.support.session_settings import setting_changed
from windowing.crash import armed
from windowing.errors import StateRefused, UsageError
from windowing.grid.zone import moment
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.storage import delta_log
from windowing.storage.files import locate_commit

WINDOWS = (
    oracle.Tumbling("hourly", 60 * MINUTE),
    oracle.Session("visits", 10 * MINUTE),
)
DAY = us("2026-01-05T00:00:00")
HOUR = 60 * MINUTE
FOLLOW = "`tidemark backfill lab --source newest`"


def make_lab(spark: SparkSession, root: Path) -> Changing:
    """A pipeline that has read nine events, one of each hour."""
    lab = Changing(spark, root, WINDOWS, delay=10 * MINUTE, shows=FEW, feed=False)
    lab.land(Event("ab"[n % 2], DAY + n * HOUR, n, f"e{n}", n) for n in range(9))
    lab.go()
    return lab


def follow(lab: Changing, low: int | None = None, high: int | None = None) -> dict[str, object]:
    """What the repair did, of the whole source or of [low, high) alone."""
    start, end = (None if at is None else moment(at) for at in (low, high))
    followed = follow_rewrites(lab.spark, lab.pipeline, start, end).as_json()["followed"]
    assert isinstance(followed, dict)
    return followed


def shown(lab: Changing, column: str) -> dict[int, int]:
    """A column of the hourly output by hour of the day, added up over keys."""
    rows = lab.spark.read.format("delta").load(str(lab.root / "lake/lab/hourly"))
    hours = rows.selectExpr("hour(window_start) as at", column).groupBy("at").sum(column)
    return {row["at"]: row[f"sum({column})"] for row in hours.collect()}


@pytest.mark.slow
def test_bad_rows_that_were_read_are_taken_out(spark: SparkSession, tmp_path: Path) -> None:
    lab = make_lab(spark, tmp_path)
    lab.land(Event("a", DAY + 3 * HOUR + n * MINUTE, 1000, f"bad{n}", 40 + n) for n in range(4))
    lab.go()
    lab.sql("delete from {} where value = 1000")
    lab.land([Event("b", DAY + 9 * HOUR, 1, "new", 90)])
    with pytest.raises(StateRefused) as refused:
        lab.go()
    said = str(refused.value)
    assert "SOURCE_REWRITTEN" in said and FOLLOW in said
    assert "version 3 (DELETE, 4 rows fewer, 2026-01-05 03:00Z to 2026-01-05 03:03Z)" in said
    # A backfill of the range reads what the last run left, and says so.
    assert lab.backfill(DAY, DAY + 24 * HOUR).versions_unread == 2
    assert shown(lab, "n")[3] == 5

    report = follow_rewrites(spark, lab.pipeline)
    assert (report.read, report.accepted, report.corrections) == (1, 1, 1)
    assert report.as_json()["followed"] == {
        "rows": 4,
        "ranges": [["2026-01-05T03:00:00+00:00", "2026-01-05T03:03:00.000001+00:00"]],
        "left_out": [],
    }
    lab.holds_what_the_source_does()
    lab.land([Event("b", DAY + 10 * HOUR, 1, "newer", 91)])
    again = lab.go()
    assert (again.accepted, again.batches) == (1, 1)
    lab.holds_what_the_source_does()


CHANGES: dict[str, Callable[[Random], str]] = {
    "delete": lambda rng: f"delete from {{}} where seq % 7 = {rng.randrange(7)}",
    "delete an hour": lambda rng: f"delete from {{}} where hour(ts) = {rng.randrange(12)}",
    "change a value": lambda rng: (
        f"update {{}} set value = value + 10 where seq % 5 = {rng.randrange(5)}"
    ),
    "move": lambda rng: (
        f"update {{}} set ts = ts + interval {rng.randint(1, 4)} hours, key = 'c' "
        f"where seq % 11 = {rng.randrange(11)}"
    ),
    "lose its time": lambda rng: f"update {{}} set ts = null where seq = {rng.randrange(40)}",
    "nothing": lambda rng: "update {} set value = value where seq % 2 = 0",
    "upsert": lambda rng: (
        f"merge into {{}} t using (select 'e{rng.randrange(20)}' id, 99 v union all "
        f"select 'x{rng.randrange(10**6)}', 5) s on t.id = s.id "
        "when matched then update set value = v when not matched then insert "
        "(id, key, ts, value, seq) values (s.id, 'b', timestamp'2026-01-05 01:11:00', v, 50)"
    ),
    "optimize": lambda rng: "optimize {}",
}
PLACES = ("rewrites.found", "batch.processed", "batch.done", "run.closed", "backfill.rebuilt")


def play(lab: Changing, rng: Random, steps: int) -> None:
    """Changes and appends in any order, each followed, some of the repairs at the second attempt.

    Between them the source gets new rows alone, and a run reads them.
    """
    number = 100
    for _ in range(steps):
        for _ in range(rng.randint(1, 4)):
            if rng.random() < 0.5:
                lab.sql(rng.choice([*CHANGES.values()])(rng))
            else:
                number += 3
                lab.land(
                    Event(rng.choice("ab"), DAY + rng.randrange(12 * 60) * MINUTE, n, f"e{n}", n)
                    for n in range(number, number + 3)
                )
        if rng.random() < 0.5:
            # Where nothing was rewritten, the place is not passed.
            with suppress(Crash), armed(Crasher(rng.choice(PLACES))):
                follow_rewrites(lab.spark, lab.pipeline)
        follow_rewrites(lab.spark, lab.pipeline)
        lab.holds_what_the_source_does()
        number += 3
        lab.land([Event("a", DAY + rng.randrange(12 * 60) * MINUTE, 1, f"e{number}", number)])
        assert lab.go().accepted == 1
        lab.holds_what_the_source_does()


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(1, 7))
def test_outputs_are_those_of_what_the_source_holds(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    lab = make_lab(spark, tmp_path)
    play(lab, Random(seed), 4)
    assert validate(spark, lab.pipeline).passed
    publish(lab.pipeline)
    assert lab.go().published


@pytest.mark.deep
def test_a_repair_that_ends_at_any_place_is_finished_by_the_next(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = make_lab(spark, tmp_path)
    lab.sql("update {} set value = 7, ts = ts + interval 5 hours where seq = 2")
    for place in PLACES:
        ends_at(Crasher(place), lambda: follow_rewrites(spark, lab.pipeline))
        if place in ("rewrites.found", "batch.processed"):
            with pytest.raises(StateRefused, match="SOURCE_REWRITTEN"):
                lab.go()
    # The stream is behind the commits, so any command finishes what is left.
    lab.go()
    lab.holds_what_the_source_does()


@pytest.mark.deep
def test_what_lies_outside_the_range_is_left_out_and_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = make_lab(spark, tmp_path)
    days_later = DAY + 5 * 24 * HOUR
    lab.land([Event("a", days_later, 1, "far", 60)])
    lab.go()
    lab.sql("update {} set value = value + 1 where seq in (2, 4, 60)")
    followed = follow(lab, DAY + 3 * HOUR, DAY + 6 * HOUR)
    assert followed["ranges"] == [["2026-01-05T03:00:00+00:00", "2026-01-05T04:00:00.000001+00:00"]]
    left_out = followed["left_out"]
    assert left_out == [
        ["2026-01-05T02:00:00+00:00", "2026-01-05T03:00:00+00:00"],
        ["2026-01-10T00:00:00+00:00", "2026-01-10T00:00:00.000001+00:00"],
    ]
    totals = shown(lab, "total")
    assert (totals[2], totals[4]) == (2, 5)
    lab.backfill(DAY, days_later + HOUR)
    lab.holds_what_the_source_does()


@pytest.mark.deep
def test_an_event_that_comes_back_elsewhere_is_no_duplicate(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = make_lab(spark, tmp_path)
    lab.sql("delete from {} where id = 'e3'")
    lab.land([Event("a", DAY + 7 * HOUR + MINUTE, 3, "e3", 3)])
    assert follow(lab)["rows"] == 1
    lab.holds_what_the_source_does()


@pytest.mark.deep
def test_an_event_that_comes_back_while_a_repair_is_not_finished_is_no_duplicate(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = make_lab(spark, tmp_path)
    lab.sql("delete from {} where id = 'e3'")
    ends_at(Crasher("backfill.staged"), lambda: follow_rewrites(spark, lab.pipeline))
    lab.land([Event("a", DAY + 7 * HOUR + MINUTE, 3, "e3", 3)])
    lab.go()
    lab.holds_what_the_source_does()


@pytest.mark.deep
def test_an_event_that_moves_between_what_is_followed_and_what_is_left_out_is_not_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = make_lab(spark, tmp_path)
    days_later = DAY + 5 * 24 * HOUR
    lab.sql("update {} set ts = timestamp'2026-01-10 00:30:00' where id = 'e3'")
    followed = follow(lab, days_later, days_later + HOUR)
    assert followed["left_out"] == [
        ["2026-01-05T03:00:00+00:00", "2026-01-05T03:00:00.000001+00:00"]
    ]
    lab.land([Event("b", DAY + 9 * HOUR, 1, "new", 90)])
    lab.go()
    lab.backfill(DAY + 3 * HOUR, DAY + 4 * HOUR)
    lab.holds_what_the_source_does()
    # It is settled then, so a copy is a duplicate again.
    lab.land([Event("b", DAY + 3 * HOUR, 1, "e3", 91)])
    assert lab.go().duplicate == 1


@pytest.mark.deep
def test_copies_that_are_changed_stay_one_event_where_ids_expire(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = make_lab(spark, tmp_path)
    spec = lab.spec()
    spec["watermark"]["dedupe_horizon"] = "30 days"
    spec["name"] = "other"
    lab.pipeline = load_pipeline(spec)
    lab.land([Event("a", DAY + 4 * HOUR, 4, "e4", 4)])
    assert lab.go().duplicate == 1
    lab.sql("update {} set value = value + 1 where id = 'e4'")
    follow(lab)
    lab.holds_what_the_source_does()


@pytest.mark.deep
def test_a_source_whose_columns_grew_is_compared(spark: SparkSession, tmp_path: Path) -> None:
    lab = make_lab(spark, tmp_path)
    source = lab.spark.read.format("delta").load(lab.source)
    for more in ("", ", 'b', 2L"):
        item = f"named_struct('a', 1L{more})"
        wide = source.limit(1).selectExpr("*", f"{item} as item", f"array({item}) as items")
        wide = wide.withColumn("id", F.lit(f"wide{len(more)}"))
        wide.write.format("delta").mode("append").option("mergeSchema", "true").save(lab.source)
        if not more:
            lab.go()
    lab.sql("delete from {} where id = 'e3'")
    assert follow(lab)["rows"] == 1
    lab.holds_what_the_source_does()


@pytest.mark.deep
def test_a_column_that_has_the_name_of_another_one_is_not_taken_for_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = make_lab(spark, tmp_path)
    lab.sql("alter table {} set tblproperties (delta.columnMapping.mode = 'name')")
    lab.sql("alter table {} rename column ts to local")
    lab.sql("alter table {} add column ts timestamp")
    lab.sql("update {} set ts = local - interval 5 hours")
    spec = lab.spec() | {"name": "other"}
    lab.pipeline = load_pipeline(spec)
    lab.go()
    lab.holds_what_the_source_does()
    lab.sql("delete from {} where id = 'e3'")
    assert follow(lab)["rows"] == 1
    lab.holds_what_the_source_does()


@pytest.mark.deep
def test_a_feed_that_is_switched_on_too_late_goes_on_behind_the_repair(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = make_lab(spark, tmp_path)
    lab.sql("delete from {} where seq = 3")
    lab.sql("alter table {} set tblproperties (delta.enableChangeDataFeed = true)")
    spec = lab.spec()
    lab.pipeline = load_pipeline(spec | {"source": spec["source"] | {"changes": "feed"}})
    with pytest.raises(StateRefused, match=f"SOURCE_REWRITTEN.*{FOLLOW}"):
        lab.go()
    follow(lab)
    lab.holds_what_the_source_does()
    lab.sql("delete from {} where seq = 4")
    assert lab.go().corrections == 1
    lab.holds_what_the_source_does()


@pytest.mark.slow
def test_what_was_vacuumed_is_refused_and_nothing_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = make_lab(spark, tmp_path)
    lab.sql("delete from {} where seq = 3")
    with setting_changed(spark, "spark.databricks.delta.retentionDurationCheck.enabled", "false"):
        lab.sql("vacuum {} retain 0 hours")
    before = read_history(lab.pipeline).entries
    for _ in range(2):
        with pytest.raises(StateRefused, match=r"SOURCE_VACUUMED: .*`tidemark reset lab`"):
            follow_rewrites(spark, lab.pipeline)
        assert read_history(lab.pipeline).entries == before


@pytest.mark.deep
@pytest.mark.parametrize(
    ("runs", "kept", "said"),
    [
        (1, 0, "versions of the source that are still needed are missing"),
        (2, 0, "versions of the source that were not read yet have been vacuumed"),
        (2, 1, "the version of the source that was read last can't be read any more"),
    ],
    ids=["after a first load", "all but the newest", "all before the one that was read"],
)
def test_a_version_that_the_log_has_lost_is_named(
    runs: int, kept: int, said: str, spark: SparkSession, tmp_path: Path
) -> None:
    lab = make_lab(spark, tmp_path)
    source = Location(lab.source)
    if runs == 2:
        lab.land([Event("b", DAY + 9 * HOUR, 1, "new", 90)])
        lab.go()
    lab.sql("delete from {} where seq = 3")
    delta_log.write_checkpoint(spark, source)
    for version in range(delta_log.version(spark, source) - kept):
        locate_commit(source, version).local.unlink()
    delta_log.forget_all(spark)
    with pytest.raises(StateRefused, match=f"SOURCE_VACUUMED: .*{said}.*`tidemark reset lab`"):
        follow_rewrites(spark, lab.pipeline)


@pytest.mark.slow
def test_without_a_rewrite_it_is_a_run(spark: SparkSession, tmp_path: Path) -> None:
    lab = make_lab(spark, tmp_path)
    lab.land([Event("b", DAY + 9 * HOUR, 1, "new", 90)])
    lab.sql("optimize {}")
    report = follow_rewrites(spark, lab.pipeline)
    assert (report.accepted, report.followed) == (1, None)
    assert follow_rewrites(spark, lab.pipeline).run is None
    lab.holds_what_the_source_does()


def test_events_that_happen_when_they_arrive_have_no_past(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = make_lab(spark, tmp_path)
    spec = lab.spec()
    spec["source"]["event_time"] = "arrival"
    with pytest.raises(UsageError, match="no event time to reprocess"):
        follow_rewrites(spark, load_pipeline(spec))


@pytest.mark.deep
def test_the_command_says_what_it_followed_and_what_it_left(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = make_lab(spark, tmp_path)
    (lab.root / "lab.yaml").write_text(json.dumps(lab.spec()))
    lab.sql("delete from {} where seq in (2, 4)")
    range_ = ("--from", "2026-01-05T04:00", "--to", "2026-01-05T05:00")
    unread = run_command(lab, "backfill", *range_)
    assert unread.exit_code == 0, unread.stderr
    assert "has 1 version that this backfill did not read; `tidemark run " in unread.stdout
    done = run_command(lab, "backfill", *range_, "--source", "newest")
    assert done.exit_code == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert "lab: 2 rows of the source were updated or deleted" in lines
    assert "reprocessed: [2026-01-05 04:00Z, 04:00:00.000001Z)" in lines
    assert any(
        line.startswith(
            "left out, because it is outside the range: [2026-01-05 02:00Z, 04:00Z); `tidemark "
            "backfill "
        )
        for line in lines
    )
    again = run_command(lab, "backfill", "--source", "newest")
    assert again.exit_code == 0, again.stderr
    assert "no row that was read before has been updated or deleted" in again.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--source", "newest", "--dry-run"), "--source newest writes"),
        (("--source", "newest", "--from", "2026-01-05"), "--to: missing"),
        ((), "--from and --to: missing"),
        (("--source", "latest"), "'latest' is not one of 'read', 'newest'"),
    ],
    ids=["dry run", "half a range", "no range", "another version"],
)
def test_what_does_not_fit_together_is_refused(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    (tmp_path / "lab.yaml").write_text(
        "name: lab\nlake: lake\nsource: {table: ./source, event_time: ts, key: [key]}\n"
        "aggregates: {n: count()}\nwindows: {ever: {kind: global}}\n"
    )
    lab = type("Place", (), {"root": tmp_path})()
    found = run_command(lab, "backfill", *words)
    assert found.exit_code == 2
    assert said in found.stderr
