"""A source that changes its past, read by its change feed.

Outputs are those of what the source holds now, also when a run is killed.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.publish import publish
from jobs.run import run
from jobs.shortcuts.nothing_new import find_nothing_new
from jobs.validate import validate
from tests import oracle
from tests.support.changing_source import Changing
from tests.support.long_lived_pipeline import MINUTE, Crasher, ends_at
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab, us
from windowing.errors import SpecError, StateRefused, UsageError
from windowing.grid.range import Range
from windowing.grid.zone import micros, moment
from windowing.location import Location
from windowing.source.rule import MOST, merge_ranges
from windowing.spec.load import load_pipeline
from windowing.storage import delta

WINDOWS = (
    oracle.Tumbling("hourly", 60 * MINUTE),
    oracle.Session("visits", 10 * MINUTE),
)
DAY = us("2026-01-05T00:00:00")


@pytest.fixture(scope="module")
def lab(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Changing:
    """Two runs over a morning."""
    root = tmp_path_factory.mktemp("feed")
    new, rng = Changing(spark, root, WINDOWS, delay=10 * MINUTE, shows=FEW), Random(3)
    for hours in ((0, 4), (2, 8)):
        times = [DAY + rng.randrange(hours[0] * 60, hours[1] * 60) * MINUTE for _ in range(8)]
        new.land(
            oracle.Event(rng.choice("ab"), t, n, f"e{hours[1]}-{n}", n) for n, t in enumerate(times)
        )
        new.go()
    new.holds_what_the_source_does()
    return new


MOVED = "values ('e4-1', 'a', timestamp'2026-01-05 13:07:00', 7, 1, null, false)"
CHANGES = {
    "update, and an id under another key": [
        "update {} set value = value + 10 where id = 'e4-2'",
        "update {} set key = 'c' where seq = 3"],
    "delete, and upsert": [
        "delete from {} where id in ('e4-0', 'e8-5')",
        "merge into {} t using (select 'e8-1' id, 99 v union all select 'new', 5) s on t.id = s.id"
        " when matched then update set value = v when not matched then insert (id, key, ts, "
        "value, seq)"
        " values (s.id, 'b', timestamp'2026-01-05 01:11:00', v, 50)"],
    "delete and come back, elsewhere or where it was": [
        "delete from {} where id in ('e8-2', 'e4-1')",
        "insert into {} values ('e8-2', 'b', timestamp'2026-01-05 05:00:00', 1, 2, null, false)",
        "insert into {} " + MOVED],
    "come and go, and lose its time": [
        "insert into {} values ('x', 'b', timestamp'2026-01-05 09:00:00', 1, 2, null, false)",
        "delete from {} where id = 'x'",
        "update {} set ts = null where id = 'e4-3'"],
    "optimize": ["optimize {}",
     "insert into {} values ('y', 'a', timestamp'2026-01-05 09:10:00', 1, 2, null, false)"],
}  # fmt: skip


@pytest.mark.deep
@pytest.mark.parametrize("change", CHANGES)
def test_outputs_follow_what_the_source_holds(change: str, lab: Changing) -> None:
    for statement in CHANGES[change]:
        lab.sql(statement)
    report = lab.go()
    assert (report.corrections > 0) is (change != "optimize")
    lab.holds_what_the_source_does()


@pytest.mark.deep
def test_a_run_that_ends_before_its_corrections_are_made_is_finished_by_the_next(
    lab: Changing,
) -> None:
    for n, place in enumerate(["batch.processed", "run.closed", "backfill.rebuilt"]):
        lab.sql(f"update {{}} set value = value + 1 where hour(ts) = {n} or seq = 5")
        ends_at(Crasher(place), lab.go)
    lab.sql("delete from {} where seq = 1")
    lab.go()
    lab.holds_what_the_source_does()
    assert lab.go().corrections == 0


@pytest.mark.deep
def test_corrected_outputs_are_validated_and_published(lab: Changing) -> None:
    found = validate(lab.spark, lab.pipeline)
    assert found.passed, found.failed
    publish(lab.pipeline)


def test_a_source_without_a_feed_is_refused_before_anything_is_written(
    spark: SparkSession, tmp_path: Any
) -> None:
    plain = Lab(spark, tmp_path, WINDOWS[:1])
    plain.land([oracle.Event("a", DAY, 1, "x")])
    spec = plain.spec()
    plain.pipeline = load_pipeline(spec | {"source": spec["source"] | {"changes": "feed"}})
    with pytest.raises(
        SpecError,
        match=(
            r"source.changes: feed: .*source records no change feed; set its property "
            r"delta.enableChange"
        ),
    ):
        plain.go()
    assert not (tmp_path / "lake").exists() or not list((tmp_path / "lake").glob("*/_ledger"))


@pytest.mark.slow
def test_a_feed_counts_in_any_case_of_letters(spark: SparkSession, tmp_path: Any) -> None:
    lab = Changing(spark, tmp_path, WINDOWS[:1], shows=FEW)
    lab.sql("alter table {} set tblproperties (delta.enableChangeDataFeed = 'TRUE')")
    lab.land([oracle.Event("a", DAY, 1, "x")])
    lab.go()
    assert find_nothing_new(lab.pipeline, ARRIVAL) is not None
    lab.holds_what_the_source_does()


@pytest.mark.slow
def test_a_refused_change_is_named_and_the_feed_heals_it(
    spark: SparkSession, tmp_path: Any
) -> None:
    lab = Changing(spark, tmp_path, WINDOWS[:1], shows=FEW)
    fed, spec = lab.pipeline, Lab.spec(lab)
    lab.pipeline = load_pipeline(spec)
    lab.land(oracle.Event("a", DAY + n * MINUTE, n, f"i{n}") for n in range(3))
    lab.go()
    lab.sql("update {} set value = 9 where id = 'i1'")
    said = (
        r"SOURCE_REWRITTEN: .* version 2 \(UPDATE, 20.* to 20.*`source.changes: feed`.*`tidemark "
        r"reset lab`"
    )
    with pytest.raises(StateRefused, match=said):
        lab.go()
    lab.pipeline = fed
    assert lab.go().corrections == 1
    lab.holds_what_the_source_does()


@pytest.mark.deep
def test_changes_of_rows_that_did_not_count(spark: SparkSession, tmp_path: Any) -> None:
    """The first one that counts is one that was mended.

    Of a row that no calendar holds nothing follows.
    """
    lab = Changing(spark, tmp_path, (*WINDOWS, oracle.Count("pairs", 2)))
    lab.land(
        [oracle.Event("a", None, 1, "x"), oracle.Event("a", us("9999-12-31T00:00:00"), 1, "end")]
    )
    assert lab.go().quarantined == 2
    lab.sql("update {} set value = 9, ts = coalesce(ts, timestamp'2026-01-05 01:00:00')")
    assert lab.go().corrections > 0
    lab.holds_what_the_source_does()


@pytest.mark.deep
def test_an_event_moves_far_back_and_copies_that_lost_are_changed(
    spark: SparkSession, tmp_path: Any
) -> None:
    lab = Changing(
        spark, tmp_path, (WINDOWS[0], oracle.Tumbling("daily", 1440 * MINUTE)), shows=FEW
    )
    ten_days = 10 * 1440 * MINUTE
    lab.land(
        oracle.Event("a", t, 1, name, n)
        for n, (name, t) in enumerate(
            [
                ("x", DAY + ten_days),
                ("y", DAY + 600 * MINUTE),
                ("y", DAY + 605 * MINUTE),
                ("z", DAY + 720 * MINUTE),
                ("bad", None),
            ]
        )
    )
    lab.go()
    lab.sql("update {} set ts = timestamp'2026-01-05 03:00:00' where id = 'x'")
    lab.go()
    lab.holds_what_the_source_does()
    lab.sql("update {} set value = 5 where id in ('y', 'bad')")
    lab.go()
    lab.holds_what_the_source_does()
    lab.backfill(DAY + 720 * MINUTE, DAY + 780 * MINUTE)
    lab.holds_what_the_source_does()
    lab.windows = (*lab.windows, WINDOWS[1])
    lab.pipeline = load_pipeline(lab.spec())
    lab.go()
    lab.holds_what_the_source_does()


@pytest.mark.deep
def test_ids_may_be_computed(spark: SparkSession, tmp_path: Any) -> None:
    lab = Changing(spark, tmp_path, WINDOWS[:1], shows=FEW)
    spec = lab.spec()
    named = {"columns": {"name": "concat(id, '/', 'x')"}, "event_id": "name"}
    lab.pipeline = load_pipeline(spec | {"source": spec["source"] | named})
    lab.land(oracle.Event("a", DAY + n * MINUTE, n, f"i{n}") for n in range(3))
    assert lab.go().accepted == 3
    lab.sql("update {} set ts = ts + interval 3 hours where id = 'i1'")
    assert lab.go().corrections > 0
    lab.holds_what_the_source_does()


@pytest.mark.deep
@pytest.mark.parametrize("place", ["batch.processed", "run.closed"])
def test_an_event_comes_back_elsewhere_while_its_deletion_is_not_finished(
    place: str, spark: SparkSession, tmp_path: Any
) -> None:
    lab = Changing(spark, tmp_path, WINDOWS[:1], shows=FEW)
    lab.land(oracle.Event("a", DAY + n * 60 * MINUTE, 1, f"i{n}") for n in range(3))
    lab.go()
    lab.sql("delete from {} where id = 'i1'")
    ends_at(Crasher(place), lab.go)
    lab.land([oracle.Event("a", DAY + 300 * MINUTE, 1, "i1")])
    lab.go()
    lab.holds_what_the_source_does()
    assert validate(spark, lab.pipeline).passed


@pytest.mark.deep
def test_whatever_finishes_a_run_makes_its_corrections_and_readers_see_none_without(
    spark: SparkSession, tmp_path: Any
) -> None:
    lab = Changing(spark, tmp_path, WINDOWS[:1], shows=FEW)
    lab.land(oracle.Event("a", DAY + n * 60 * MINUTE, 1, f"i{n}") for n in range(3))
    lab.go()
    lab.sql("delete from {} where id = 'i1'")
    ends_at(Crasher("run.closed"), lab.go)
    validate(spark, lab.pipeline)
    with pytest.raises(
        UsageError,
        match="lab: run 2 stopped before reprocessing rows that changed in the source; "
        "`tidemark run`",
    ):
        publish(lab.pipeline)
    lab.backfill(DAY + 1440 * MINUTE, DAY + 2880 * MINUTE)
    lab.holds_what_the_source_does()
    validate(spark, lab.pipeline)
    assert publish(lab.pipeline).outputs["hourly"]["rows"] == 2


@pytest.mark.deep
def test_a_copy_that_was_changed_stays_one_when_the_feed_is_left(
    spark: SparkSession, tmp_path: Any
) -> None:
    lab = Changing(spark, tmp_path, WINDOWS[:1], shows=FEW)
    lab.land(oracle.Event("a", DAY + t * MINUTE, 1, "y", t) for t in (600, 605))
    lab.go()
    lab.sql("update {} set value = 5 where id = 'y'")
    lab.go()
    lab.holds_what_the_source_does()
    for n in range(2):
        lab.land([oracle.Event("a", DAY + 720 * MINUTE, 1, f"z{n}", 1)])
        lab.go()
    lab.windows = (*lab.windows, oracle.Tumbling("daily", 1440 * MINUTE))
    lab.pipeline = load_pipeline(Lab.spec(lab))
    lab.go()
    lab.holds_what_the_source_does()
    assert validate(spark, lab.pipeline).passed


def test_few_spans_hold_many() -> None:
    day = 1440 * MINUTE
    many = [Range(n * 3 * day, n * 3 * day + (day if n % 10 else 5)) for n in range(50)]
    found = merge_ranges(many)
    assert len(found) == MOST
    assert all(any(f.low_us <= s.low_us and s.high_us <= f.high_us for f in found) for s in many)
    assert all(a.high_us < b.low_us for a, b in zip(found, found[1:], strict=False))
    assert merge_ranges(
        [Range(5, 9), Range(0, 4), Range(2 * day, 3 * day), Range(3 * day, 3 * day)]
    ) == (
        Range(0, 9),
        Range(2 * day, 3 * day),
    )
    assert merge_ranges([]) == ()


STAGES: list[Callable[[str], dict[str, Any]]] = [
    lambda root: {
        "name": "minutes",
        "lake": f"{root}/lake",
        "source": {
            "table": f"{root}/clicks",
            "event_time": "at",
            "key": ["region", "user"],
            "event_id": "id",
        },
        "aggregates": {"n": "count()"},
        "windows": {"minutely": {"kind": "tumbling", "size": "1 minute"}},
    },
    lambda root: {
        "name": "hours",
        "lake": f"{root}/lake",
        "source": {
            "table": f"{root}/lake/minutes/published/minutely",
            "event_time": "window_start",
            "key": ["region"],
            "changes": "feed",
        },
        "aggregates": {
            "clicks": "sum(n)",
            "busiest": "max(n)",
            "minutes": "count()",
            "middle": "quantile(n, 0.5)",
        },
        "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
    },
]
"""Clicks per user and minute, and from them percentiles over users per hour."""


@pytest.mark.deep
def test_a_pipeline_reads_another_and_corrections_flow_through_both(
    spark: SparkSession, tmp_path: Any
) -> None:
    first, second = (load_pipeline(stage(str(tmp_path))) for stage in STAGES)
    rng, clicks = Random(5), list[tuple[str, str, str, int]]()
    for step in range(3):
        new = [_click(rng, step, n) for n in range(25)]
        clicks += new
        rows = [{"id": i, "region": r, "user": u, "at": moment(t)} for i, r, u, t in new]
        delta.append(
            delta.rows(spark, rows, "id string, region string, user string, at timestamp"),
            Location(f"{tmp_path}/clicks"),
        )
        run(spark, first, moment(ARRIVAL))
        assert validate(spark, first).passed
        publish(first)
        run(spark, second, moment(ARRIVAL))
        found = delta.read(spark, second.table("hourly")).collect()
        assert {
            (row["region"], micros(row["window_start"].replace(tzinfo=UTC))): _shown(row.asDict())
            for row in found
        } == in_one(clicks)


def _click(rng: Random, step: int, n: int) -> tuple[str, str, str, int]:
    """An instant, mostly of the hour of the step.

    Now and then it is of an earlier one, often twice in the same minute.
    """
    t = DAY + (max(0, step - rng.choice([0, 0, 1, 2])) * 60 + rng.randrange(6)) * MINUTE
    return f"{step}-{n}", rng.choice(["north", "south"]), rng.choice("xyz"), t


def _shown(row: dict[str, Any]) -> tuple[int, int, int, int]:
    return row["clicks"], row["busiest"], row["minutes"], row["middle"]


def in_one(
    clicks: Iterable[tuple[str, str, str, int]],
) -> dict[tuple[str, int], tuple[int, int, int, int]]:
    """Both stages at once, by plain loops; the quantile is that of the sorted counts."""
    minutes = Counter((region, user, t // MINUTE * MINUTE) for _, region, user, t in clicks)
    hours = defaultdict[tuple[str, int], list[int]](list)
    for (region, _, minute), n in sorted(minutes.items()):
        hours[region, minute // (60 * MINUTE) * 60 * MINUTE].append(n)
    return {
        place: (sum(c), max(c), len(c), sorted(c)[(len(c) + 1) // 2 - 1])
        for place, c in hours.items()
    }


def test_the_days_of_this_file_are_in_the_past() -> None:
    assert moment(DAY) == datetime(2026, 1, 5, tzinfo=UTC)
