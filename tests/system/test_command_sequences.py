"""Commands after one another as nobody plans them.

What one leaves, or leaves half-way, another meets, and all still adds up.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.erase import erase
from jobs.maintain import maintain
from jobs.publish import publish
from jobs.read import read
from jobs.reconcile import check_range
from jobs.run import run
from jobs.validate import validate
from tests import oracle
from tests.oracle import Event, Session, Tumbling
from tests.support.changing_source import Changing
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, ends_at
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab, us
from tests.system.test_bad_rows import Source
from windowing.errors import StateRefused, UsageError
from windowing.grid.zone import moment
from windowing.ledger.erased import Erasing
from windowing.ledger.table import read_history
from windowing.spec.load import load_pipeline
from windowing.storage import delta, delta_log

HOUR, DAY = 60 * MINUTE, 1440 * MINUTE
HOURLY, DAILY, VISITS = (
    Tumbling("hourly", HOUR),
    Tumbling("daily", DAY),
    Session("visits", 10 * MINUTE),
)


def at(minute: int, name: str, key: str = "a") -> Event:
    """An event of value 1, so many minutes after the beginning."""
    return Event(key, BASE + minute * MINUTE, 1, name, minute)


def adds_up(lab: Lab) -> None:
    """The newest outputs pass, those that compare them with the ledger too."""
    found = validate(lab.spark, lab.pipeline)
    assert found.passed, found.failed


@pytest.mark.deep
def test_what_maintenance_took_from_state_adds_up_after_backfills_and_erasures(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, (HOURLY, DAILY), lateness=0, shows=FEW)
    lab.pipeline = load_pipeline(lab.spec() | {"retention": {"state": "1 day"}})
    lab.truth.horizon = DAY
    lab.run([at(570, "x"), at(630, "y"), at(640, "k", "b"), at(640, "l", "c")])
    lab.run([at(571, "late"), at(5 * 1440, "z")])
    maintain(spark, lab.pipeline)
    lab.backfill(BASE, BASE + DAY)
    lab.check()
    maintain(spark, lab.pipeline)
    assert check_range(spark, lab.pipeline, moment(BASE), moment(BASE + DAY)).agrees
    for key in ("b", "c"):
        erase(spark, lab.pipeline, Erasing({"key": key}))
    adds_up(lab)
    assert read_history(lab.pipeline).total("accepted") == 4


@pytest.mark.deep
def test_an_event_of_a_pane_that_is_gone_changes(spark: SparkSession, tmp_path: Path) -> None:
    lab = Changing(spark, tmp_path, (HOURLY,), lateness=0, shows=FEW)
    lab.pipeline = load_pipeline(lab.spec() | {"retention": {"state": "1 day"}})
    lab.land([at(n, f"e{n}") for n in (1, 2, 3)])
    lab.go()
    lab.land([at(5 * 1440, "far")])
    lab.go()
    maintain(spark, lab.pipeline)
    lab.sql("update {} set value = 7 where id = 'e2'")
    lab.go()
    lab.holds_what_the_source_does()
    adds_up(lab)


@pytest.mark.deep
def test_a_key_that_is_half_erased_is_not_published_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, (HOURLY,), shows=FEW)
    lab.run([at(10, "x"), at(20, "k", "b")])
    adds_up(lab)
    publish(lab.pipeline)
    ends_at(Crasher("publish.pointed"), lambda: erase(spark, lab.pipeline, Erasing({"key": "b"})))
    with pytest.raises(
        UsageError,
        match="nothing is published, because an erase is incomplete; "
        "rerun `tidemark erase`, then publish",
    ):
        publish(lab.pipeline)
    erase(spark, lab.pipeline, Erasing({"key": "b"}))
    assert [row["key"] for row in read(spark, lab.pipeline, "hourly").collect()] == ["a"]
    adds_up(lab)


@pytest.mark.deep
def test_more_windows_without_events_than_may_be_are_refused_before_anything_begins(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, (Tumbling("tens", 10 * MINUTE, empty=True),), lateness=0, shows=FEW)
    lab.pipeline = limited(lab)
    lab.run([at(1440, "x"), at(1470, "y")])
    lab.run([at(0, "stray")])
    before = read_history(lab.pipeline)
    with pytest.raises(
        StateRefused,
        match=r"EMPTY_LIMIT: windows.tens.empty_limit: it would add 143 empty windows, "
        "more than 100; raise",
    ):
        lab.backfill(BASE, BASE + HOUR)
    assert read_history(lab.pipeline) == before
    lab.pipeline = limited(lab, 143)
    lab.backfill(BASE, BASE + HOUR)
    lab.check()
    lab.windows = lab.truth.windows = (*lab.windows, Tumbling("fives", 5 * MINUTE, empty=True))
    lab.pipeline = limited(lab, 200)
    before = read_history(lab.pipeline)
    with pytest.raises(StateRefused, match=r"EMPTY_LIMIT: windows.fives"):
        lab.go()
    assert read_history(lab.pipeline) == before


def limited(lab: Lab, limit: int = 100) -> Any:
    """The lab's pipeline with so many windows without events a run."""
    spec = lab.spec()
    windows = {name: window | {"empty_limit": limit} for name, window in spec["windows"].items()}
    return load_pipeline(spec | {"windows": windows})


@pytest.mark.deep
def test_a_spec_changes_while_a_correction_is_due(spark: SparkSession, tmp_path: Path) -> None:
    lab = Changing(spark, tmp_path, (HOURLY,), shows=FEW)
    lab.land([at(n, f"e{n}") for n in (1, 2, 3)])
    lab.go()
    lab.sql("delete from {} where id = 'e2'")
    ends_at(Crasher("run.closed"), lab.go)
    lab.windows = (HOURLY, DAILY)
    lab.pipeline = load_pipeline(lab.spec())
    lab.go()
    lab.holds_what_the_source_does()
    adds_up(lab)


@pytest.mark.deep
@pytest.mark.parametrize("gone", ["id > 'e1'", "true"], ids=["the later", "all"])
def test_windows_come_back_after_their_events_have_left_the_source(
    gone: str, spark: SparkSession, tmp_path: Path
) -> None:
    own = (HOURLY, VISITS, oracle.RecordSliding("around", HOUR), oracle.Count("pairs", 2))
    lab = Changing(spark, tmp_path, own, shows=FEW)
    lab.land([at(n, f"e{i}") for i, n in enumerate((1, 2, 600, 601))])
    lab.go()
    for windows in ((HOURLY,), own):
        lab.windows = windows
        lab.pipeline = load_pipeline(lab.spec())
        lab.go()
        if windows != own:
            lab.sql(f"delete from {{}} where {gone}")
            lab.go()
    lab.holds_what_the_source_does()
    adds_up(lab)


@pytest.mark.deep
def test_a_spec_changes_before_anything_was_read(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, (HOURLY,), shows=("n", "least"))
    lab.land([])
    lab.go()
    maintain(spark, lab.pipeline)
    lab.windows = lab.truth.windows = (HOURLY, replace(VISITS, emit="on_close"))
    lab.shows = FEW
    spec = lab.spec()
    lab.pipeline = load_pipeline(spec | {"aggregates": spec["aggregates"] | {"least": "min(id)"}})
    maintain(spark, lab.pipeline)
    lab.truth = oracle.Oracle(0, None, 10**15, None, lab.windows, None)
    lab.run([at(10, "x")])
    lab.run([at(20, "y")])
    assert [row["least"] for row in delta.read(spark, lab.pipeline.table("hourly")).collect()] == [
        "x"
    ]
    assert (
        delta_log.setting(spark, lab.pipeline.table("visits"), "delta.enableChangeDataFeed")
        == "true"
    )


@pytest.mark.deep
def test_a_spec_changes_after_a_maintenance_that_was_killed(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, (HOURLY,), shows=FEW)
    lab.run([at(10, "x")])
    ends_at(Crasher("maintain.intended"), lambda: maintain(spark, lab.pipeline))
    lab.shows = (*FEW, "most")
    lab.pipeline = load_pipeline(lab.spec())
    assert lab.go().evolved == ("windows.hourly aggregate most",)
    lab.check()


@pytest.mark.slow
def test_tables_of_others_are_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, (HOURLY,), shows=FEW)
    lab.land([at(10, "x")])
    other = lab.pipeline.table("daily")
    spark.sql("select 1 as price, 'b' as key").write.format("delta").save(other.text)
    with pytest.raises(
        StateRefused,
        match="TABLE_FOREIGN: .*: daily hold rows, and no run of this pipeline wrote them; "
        "move them away",
    ):
        lab.go()
    moved = other.local.rename(tmp_path / "daily")
    lab.go()
    lab.windows = (HOURLY, DAILY)
    lab.pipeline = load_pipeline(lab.spec())
    moved.rename(other.local)
    with pytest.raises(StateRefused, match="TABLE_FOREIGN: .*daily"):
        lab.go()
    lab.windows = (HOURLY,)
    lab.pipeline = load_pipeline(lab.spec())
    erase(spark, lab.pipeline, Erasing({"key": "b"}))
    assert (delta_log.version(spark, other), delta.read(spark, other).columns) == (
        0,
        ["price", "key"],
    )


@pytest.mark.deep
def test_a_sum_that_was_lost_is_told_until_it_is_published(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Source(spark, tmp_path)
    most = 2**63 - 1
    source.land(
        f"'a', 'a', timestamp'2026-01-01 10:00', {most}", "'b', 'a', timestamp'2026-01-01 10:30', 1"
    )
    ends_at(Crasher("batch.processed"), source.run)
    source.run()
    source.land("'c', 'b', timestamp'2026-01-01 12:30', 1")
    for _ in range(2):
        assert [o.expectation for o in validate(spark, source.pipeline).failed] == [
            "sums_fit_their_type"
        ]
        source.run()
    publish(source.pipeline, "it is known")
    source.land("'d', 'b', timestamp'2026-01-01 12:40', 1")
    source.run()
    assert validate(spark, source.pipeline).passed


@pytest.mark.deep
def test_refused_rows_that_leave_the_source_take_none_that_counts_along(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Changing(spark, tmp_path, (HOURLY,), lateness=0, shows=FEW)
    lab.land([at(605, "e1"), at(720, "e2")])
    lab.go()
    lab.land([at(630, "a")])
    assert lab.go().late == 1
    lab.sql("delete from {} where ts < timestamp'2026-01-05 11:00:00'")
    lab.land([at(605, "e1"), at(630, "a")])
    lab.go()
    lab.holds_what_the_source_does()
    lab.sql("update {} set value = 5 where id = 'e1'")
    lab.go()
    lab.windows = (HOURLY, DAILY)
    lab.pipeline = load_pipeline(lab.spec())
    lab.go()
    lab.holds_what_the_source_does()
    adds_up(lab)


@pytest.mark.deep
def test_events_that_missed_a_window_are_counted_in_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Changing(spark, tmp_path, (HOURLY, DAILY), lateness=0, shows=FEW)
    lab.land([at(605, "e1"), at(720, "e2")])
    lab.go()
    lab.land([at(630, "a")])
    assert lab.go().accepted == 1
    for value in (5, 6):
        lab.sql(f"update {{}} set value = {value} where id = 'a'")
        lab.go()
        adds_up(lab)
    lab.holds_what_the_source_does()


@pytest.mark.deep
@pytest.mark.parametrize("window", [HOURLY, VISITS], ids=["tumbling", "session"])
def test_events_before_the_calendar_of_today(
    window: oracle.Window, spark: SparkSession, tmp_path: Path
) -> None:
    lab, long_ago = Lab(spark, tmp_path, (window,), shows=FEW), us("1500-06-15T10:10:00")
    for n in range(3):
        lab.run([Event("a", long_ago + n * MINUTE, 1, f"e{n}", n)])
    lab.check()
    lab.backfill(long_ago - HOUR, long_ago + HOUR)
    lab.check()


@pytest.mark.deep
def test_sessions_alone_add_up_after_late_events_are_taken_in(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, (VISITS, Session("days", DAY)), lateness=0, shows=FEW)
    lab.run([at(600, "x"), at(720, "y")])
    assert lab.run([at(630, "z")]).accepted == 1
    adds_up(lab)
    lab.backfill(BASE + 600 * MINUTE, BASE + 660 * MINUTE)
    lab.check()
    adds_up(lab)
    erase(spark, lab.pipeline, Erasing({"key": "b"}))
    adds_up(lab)


ODD = """id string, `Flight Nr` string, key string, ts timestamp, value bigint,
first_event boolean, source_note string, extra struct<`Dep Delay`: int>, whatever variant"""


@pytest.mark.deep
def test_columns_that_only_mapped_tables_can_have_and_types_that_nothing_compares(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Source(spark, tmp_path, aggregates={"n": "count()", "numbers": "count_distinct(nr)"})
    spark.sql(
        f"create table delta.`{source.table}` ({ODD}) using delta tblproperties "
        f"('delta.columnMapping.mode' = 'name')"
    )
    windows = {
        "hourly": {"kind": "tumbling", "size": "1 hour"},
        "pairs": {"kind": "count", "count": 2},
    }
    spec = source.spec()
    spec["source"] |= {"columns": {"nr": "`Flight Nr`"}}
    pipeline = load_pipeline(spec | {"windows": windows})
    for rows in (
        [("a", "10:00"), ("b", "12:30")],
        [("a", "10:00"), ("c", "10:30"), ("d", None), ("e", "12:40")],
    ):
        put(source, rows)
        run(spark, pipeline, moment(ARRIVAL))
    assert {t: delta.read(spark, pipeline.table(t)).count() for t in ("_late", "_duplicates",
      "_quarantine")} == {
        "_late": 1, "_duplicates": 1, "_quarantine": 1}  # fmt: skip
    assert [
        row["n"]
        for row in delta.read(spark, pipeline.table("hourly")).orderBy("window_start").collect()
    ] == [1, 2]
    assert (
        check_range(
            spark, pipeline, moment(us("2026-01-01T10:00:00")), moment(us("2026-01-01T11:00:00"))
        ).accepted
        == 1
    )


def put(source: Source, rows: Iterable[tuple[str, str | None]]) -> None:
    """Appends rows with an id and an hour of the day."""
    times = {name: f"timestamp'2026-01-01 {hour}'" if hour else "null" for name, hour in rows}
    values = [f"('{name}', 'LH 1', 'a', {time}, 1)" for name, time in times.items()]
    more = "true, 'x', named_struct('Dep Delay', 1), parse_json('{}')"
    source.spark.sql(
        f"insert into delta.`{source.table}` select *, {more} from values {', '.join(values)}"
    )


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            "1 as judged_by",
            "source.table: its column 'judged_by' has the name of one that state keeps; rename it",
        ),
        (
            "1 as event_time, 1 as source_event_time",
            "columns 'event_time' and 'source_event_time' would both be 'source_event_time' among",
        ),
    ],
    ids=["of state", "of refused rows"],
)
def test_names_that_tables_keep_are_refused(
    columns: str, sentence: str, spark: SparkSession, tmp_path: Path
) -> None:
    source = Source(spark, tmp_path)
    row = spark.sql(
        f"select 'a' as id, 'a' as key, timestamp'2026-01-01 10:00' as ts, 1L as value, {columns}"
    )
    row.write.format("delta").save(source.table)
    with pytest.raises(Exception, match=sentence):
        source.run()


@pytest.mark.slow
def test_decimals_are_compared_and_not_rounded(spark: SparkSession, tmp_path: Path) -> None:
    spec = Source(spark, tmp_path).spec()
    spec["source"] |= {
        "where": (
            "amount > 0.5 and wide > 0.0000000004 and amount not in (1.5) and wide between "
            "0.0000000005 and 1e1"
        )
    }
    spec["aggregates"] = {"n": "count()", "total": "sum(wide)"}
    spec["windows"] = {
        "steps": {"kind": "delta", "attribute": "amount", "delta": 2.5},
        "above": {"kind": "tumbling", "size": "1 hour", "having": "total > 3.9999999999"},
        "same": {"kind": "tumbling", "size": "1 hour", "having": "total = 4.00000000001"},
        "other": {"kind": "tumbling", "size": "1 hour", "having": "total != 4.00000000001"},
    }
    rows = (
        spark.range(6)
        .withColumn("amount", F.col("id").cast("decimal(38,0)"))
        .withColumn("wide", F.lit("1.0").cast("decimal(38,10)"))
    )
    time = "timestamp'2026-01-01 10:00' + make_interval(0, 0, 0, 0, 0, id) ts"
    rows = rows.selectExpr("cast(id as string) id", "'a' key", time, "amount", "wide")
    rows.where("amount <> 2").write.format("delta").save(spec["source"]["table"])
    pipeline = load_pipeline(spec)
    run(spark, pipeline, moment(ARRIVAL))
    found = {
        w.name: delta.read(spark, pipeline.table(w.name)).orderBy("window_start").collect()
        for w in pipeline.windows
    }
    assert [row["n"] for row in found["steps"]] == [2, 2], "1 and 3, then 4 and 5"
    assert {name: len(rows) for name, rows in found.items() if name != "steps"} == {
        "above": 1,
        "same": 0,
        "other": 1,
    }


@pytest.mark.deep
def test_local_times_that_stand_for_never_cost_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """As many clock changes as there are until then would be as many branches of a query."""
    source = Source(
        spark,
        tmp_path,
        "id string, key string, ts string, value bigint",
        {"zone": "America/New_York"},
    )
    times = ("9999-12-31", "9990-06-01 12:00", "0001-01-01", "1900-01-01", "2026-01-01 05:30")
    source.land(*(f"'{n}', 'a', '{time}', 1" for n, time in enumerate(times)))
    assert time_of(source.run) < 60
    quarantined = delta.read(spark, source.pipeline.table("_quarantine")).select("id", "reason")
    kept = {row["id"]: row["reason"] for row in quarantined.collect()}
    no_time = "ts can't be read as a time"
    assert kept == {"0": no_time, "1": "ts is more than 1 hour ahead of the arrival", "2": no_time}
    assert [row["n"] for row in delta.read(spark, source.pipeline.table("hourly")).collect()] == [
        1,
        1,
    ]


def time_of(step: Callable[[], object]) -> float:
    """Seconds that a step takes."""
    begun = monotonic()
    step()
    return monotonic() - begun
