"""What random schedules do not come to, each against the oracle.

Windows without events, ids that are forgotten, state that is gone.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.maintain import maintain
from jobs.publish import publish
from jobs.read import read
from jobs.validate import validate
from tests.oracle import Count, Event, Global, Punctuation, Session, Tumbling, Window
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, ends_at
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab
from windowing.admit.digest import with_row_digest
from windowing.aggregates.algebra import Input, rows_part
from windowing.aggregates.sums import sum_of
from windowing.columns import BASE as COUNTED_FROM
from windowing.columns import DIGEST, ORDER, TIME
from windowing.errors import ExpectationsFailed
from windowing.spec.kinds import Delta
from windowing.spec.load import load_pipeline
from windowing.storage import delta
from windowing.windows import ordered

pytestmark = pytest.mark.deep
HOUR, DAY = 60 * MINUTE, 1440 * MINUTE
HOURLY = Tumbling("hourly", HOUR)


def at(minute: int, name: str, key: str = "a", *, mark: bool = False) -> Event:
    """An event of value 1, so many minutes after the beginning."""
    return Event(key, BASE + minute * MINUTE, 1, name, minute, mark=mark)


def test_a_backfill_where_ids_were_forgotten_and_state_is_gone(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, (HOURLY, Tumbling("daily", DAY)), lateness=0, shows=FEW)
    spec = lab.spec() | {"retention": {"state": "1 day"}}
    lab.pipeline = load_pipeline(
        spec | {"watermark": spec["watermark"] | {"dedupe_horizon": "1 hour"}}
    )
    lab.truth.horizon = HOUR
    lab.run([at(570, "x"), at(630, "y"), at(635, "y")])
    assert lab.run([at(750, "x")]).accepted == 1, "its id is forgotten"
    lab.run([at(5 * 1440, "z", "b")])
    assert {t.name: t.expired for t in maintain(spark, lab.pipeline).tables}["_panes_1h"] > 0
    lab.check()
    for hour in (10, 12):
        lab.backfill(BASE + hour * HOUR, BASE + (hour + 1) * HOUR)
        lab.check()
    lab.pipeline = replace(lab.pipeline, retention=replace(lab.pipeline.retention, state_us=None))
    lab.backfill(BASE + 9 * HOUR, BASE + 10 * HOUR)
    lab.check()


def test_a_copy_of_an_event_whose_id_was_forgotten_stays_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, (HOURLY,), lateness=0, shows=FEW)
    spec = lab.spec()
    lab.pipeline = load_pipeline(
        spec | {"watermark": spec["watermark"] | {"dedupe_horizon": "1 hour"}}
    )
    lab.truth.horizon = HOUR
    assert lab.run([at(630, "y"), at(635, "y")]).duplicate == 1
    lab.run([at(5 * 1440, "z", "b")])
    maintain(spark, lab.pipeline)
    lab.backfill(BASE + 635 * MINUTE, BASE + 640 * MINUTE)
    lab.check()


@pytest.mark.parametrize("place", ["run.emitted", "run.marked"])
def test_a_quiet_run_that_was_ended_and_then_reads_an_event_closes_no_more_than_it_says(
    place: str, spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(
        spark,
        tmp_path,
        (Session("visits", 20 * MINUTE, emit="on_close"),),
        delay=10 * MINUTE,
        idle_after=HOUR,
        shows=FEW,
    )
    lab.run([at(710, "e1")], BASE + 720 * MINUTE)
    ends_at(Crasher(place), lambda: lab.go(BASE + 840 * MINUTE))
    lab.run([at(705, "e2", "c")], BASE + 845 * MINUTE)
    lab.check()


def test_readers_see_as_closed_what_a_run_that_read_nothing_has_closed(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, (HOURLY,), delay=10 * MINUTE, idle_after=HOUR, shows=FEW)
    lab.run([at(710, "e1")], BASE + 720 * MINUTE)
    for arrival in (BASE + 720 * MINUTE, BASE + 1000 * MINUTE):
        lab.go(arrival)
        validate(spark, lab.pipeline)
        publish(lab.pipeline)
    assert [row["is_closed"] for row in read(spark, lab.pipeline, "hourly").collect()] == [True]
    lab.run([at(1100, "e3")], BASE + 1101 * MINUTE)
    with pytest.raises(ExpectationsFailed, match="run 3 has not been validated"):
        publish(lab.pipeline)


def test_names_that_only_mapped_columns_can_have_come_later(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab, spec, source = _mapped(
        spark, tmp_path, Count("pairs", 2), "key string, ts timestamp, `Dep Delay` int"
    )
    _insert(spark, source, [("a", at(n, "").t, delay) for n, delay in ((600, 90), (601, 10))])
    lab.go()
    late = {"late": {"call": "count()", "where": "`Dep Delay` > 60"}}
    lab.pipeline = load_pipeline(spec | {"aggregates": spec["aggregates"] | late})
    lab.go()
    assert [
        (row["n"], row["late"]) for row in delta.read(spark, lab.pipeline.table("pairs")).collect()
    ] == [(2, 1)]


def test_a_source_gets_a_column_of_a_name_that_refused_rows_could_not_have(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab, _, source = _mapped(spark, tmp_path, HOURLY, "key string, ts timestamp")
    _insert(spark, source, [("a", at(600, "").t), ("a", None)])
    assert lab.go().quarantined == 1
    spark.sql(f"alter table {source} add column `Dep Delay` int")
    _insert(spark, source, [("a", None, 7)])
    assert lab.go().quarantined == 1
    kept = delta.read(spark, lab.pipeline.table("_quarantine")).orderBy("run").collect()
    assert [row["Dep Delay"] for row in kept] == [None, 7]


def _mapped(
    spark: SparkSession, root: Path, window: Window, columns: str
) -> tuple[Lab, dict[str, Any], str]:
    """A pipeline over an empty source that maps its columns, its spec, and the source's name."""
    source = f"delta.`{root}/source`"
    spark.sql(
        f"create table {source} ({columns}) using delta tblproperties "
        f"('delta.columnMapping.mode' = 'name')"
    )
    lab = Lab(spark, root, (window,), lateness=0, ids=False, shows=("n",))
    spec = lab.spec()
    spec["source"].pop("order_by")
    lab.pipeline = load_pipeline(spec)
    return lab, spec, source


def _insert(spark: SparkSession, source: str, rows: list[tuple[object, ...]]) -> None:
    """Rows of a key, a time in microseconds and whatever else."""
    for key, t, *more in rows:
        time = "null" if t is None else f"timestamp_micros({t})"
        spark.sql(f"insert into {source} values ({', '.join([repr(key), time, *map(str, more)])})")


def test_a_late_window_without_events_is_not_shown(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, (replace(HOURLY, empty=True), Global("all")), lateness=0, shows=FEW)
    lab.run([at(570, "e1"), at(720, "e2", "b")])
    lab.run([at(630, "e3")])
    lab.check()


@pytest.mark.parametrize("place", ["run.emitted"])
def test_windows_without_events_that_come_late_come_once(
    place: str, spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(
        spark, tmp_path, (Tumbling("tens", 10 * MINUTE, empty=True, emit="on_close"),), shows=FEW
    )
    lab.run([at(635, "e1"), at(660, "e2", "b")])
    late = lab.land([at(605, "e3")])
    ends_at(Crasher(place), lab.go)
    lab.go()
    lab.truth.run(late, ARRIVAL)
    lab.check()


def test_a_late_marker_ends_nothing_when_state_is_made_anew_until_a_backfill_takes_it_in(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, (Punctuation("marked"),), lateness=0, shows=FEW)
    lab.run([at(600, "e1"), at(630, "e2"), at(720, "e3", "b")])
    assert lab.run([at(615, "m", mark=True)]).accepted == 1
    lab.check()
    lab.shows = (*FEW, "most")
    lab.pipeline = load_pipeline(lab.spec())
    lab.go()
    lab.check()
    kept = (
        delta.read(spark, lab.pipeline.table("_late"))
        .select("id", "outcome", "missed.window")
        .collect()
    )
    assert [tuple(row) for row in kept] == [("m", "partial", ["marked"])]
    lab.backfill(BASE + 600 * MINUTE, BASE + 620 * MINUTE)
    lab.check()


def test_a_digest_tells_where_a_value_is_missing_and_not_which_columns_there_are(
    spark: SparkSession,
) -> None:
    rows = spark.sql("select * from values ('a', 20, null), ('a', null, 20) as t(key, warm, wet)")
    digests = [row[DIGEST] for row in with_row_digest(rows, {}).collect()]
    assert len(set(digests)) == 2
    assert [
        row[DIGEST]
        for row in with_row_digest(rows.withColumn("new", F.lit(None).cast("string")), {}).collect()
    ] == digests
    nested = rows.withColumn("tags", F.struct(F.create_map(F.lit("x"), "warm")))
    assert [row[DIGEST] for row in with_row_digest(nested, {}).collect()] == digests, (
        "maps have no order"
    )


def test_a_sum_that_left_its_type_stays_lost(spark: SparkSession) -> None:
    algebra = sum_of(Input("v", F.col("v"), T.DecimalType(38, 18), ()))
    most = "60000000000000000000"
    values = spark.sql(
        f"select n, cast(v as decimal(38,18)) v from values (1, {most}), (2, {most}), (3, 7) as "
        f"t(n, v)"
    )
    merged = (
        values.groupBy("n")
        .agg(*(part.lift.alias(part.name) for part in algebra.parts))
        .withColumn("pair", F.col("n") < 3)
    )
    for group in (["pair"], []):
        merged = merged.groupBy(*group).agg(*(part.merged() for part in algebra.parts))
    assert [tuple(row) for row in merged.select(algebra.lower, algebra.overflow).collect()] == [
        (None, True)
    ]


def test_attributes_as_far_apart_as_can_be_are_in_two_windows(spark: SparkSession) -> None:
    window = Delta("w", "level", "5", None, ())
    most = "9" * 38
    rows = spark.sql(
        f"select * from values ('a', 1, -{most}BD), ('a', 2, {most}BD), ('a', 3, -{most}BD) as "
        f"t(key, {TIME}, level)"
    )
    events = rows.withColumns(
        {
            ORDER: F.struct(TIME),
            COUNTED_FROM: F.lit(0).cast("bigint"),
            TIME: F.col(TIME).cast("bigint"),
        }
    )
    found = (
        ordered.cut_windows(events, window, ("key",), [rows_part()])
        .select("window_index", "rows")
        .orderBy("window_index")
        .collect()
    )
    assert [tuple(row) for row in found] == [(0, 1), (1, 2)]
