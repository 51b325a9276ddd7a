"""load_pipeline: what a lawful spec becomes.

Windows other than grids: test_spec_windows.py; unlawful specs: test_spec_refused*.py.
"""

import copy
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from windowing.errors import SpecError
from windowing.grid.rule import Grid
from windowing.spec.duration import DAY, HOUR, MINUTE, SECOND, WEEK
from windowing.spec.kinds import Aggregate, Expression, OutputPolicy, Sliding, Tumbling, Window
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Alarms, BatchBound, EventTime, Retention, Watermark

ROOT = Path(__file__).parents[3]
SMALL: dict[str, Any] = {
    "name": "departures",
    "lake": "/data/lake",
    "source": {"table": "/data/bronze/flights", "event_time": "departed_at", "key": ["origin"]},
    "aggregates": {"flights": "count()", "worst": "max(delay)"},
    "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
}


def having(**changes: Any) -> dict[str, Any]:
    """The small spec with some top-level fields replaced."""
    return copy.deepcopy(SMALL) | changes


def only_window(**fields: Any) -> Window:
    return load_pipeline(having(windows={"w": fields})).windows[0]


def grid(**fields: Any) -> Grid:
    window = only_window(**fields)
    assert isinstance(window, (Tumbling, Sliding))
    return window.grid


def test_a_small_spec_has_the_documented_defaults() -> None:
    pipeline = load_pipeline(SMALL)
    assert pipeline.watermark == Watermark(
        0, None, HOUR, dedupe_horizon_us=None, idle_after_us=None
    )
    assert pipeline.retention == Retention(None, 366 * DAY, None)
    assert (pipeline.schedule, pipeline.suite, pipeline.file) == (None, None, None)
    assert (pipeline.source.zone, pipeline.source.event_id, pipeline.source.order_by) == (
        None,
        None,
        (),
    )
    assert (pipeline.source.on_bad_value, pipeline.source.columns, pipeline.source.where) == (
        "quarantine",
        (),
        None,
    )
    counted, worst = Aggregate("flights", "count"), Aggregate("worst", "max", "delay")
    shown = OutputPolicy("on_change", having=None, empty_limit=None, change_feed=True)
    assert pipeline.windows == (Tumbling("hourly", Grid(HOUR), (counted, worst), shown),)


def test_the_demo_departures() -> None:
    pipeline = load_pipeline(ROOT / "pipelines" / "departures.yaml")
    assert (pipeline.name, pipeline.schedule, pipeline.suite) == (
        "departures",
        "*/15 * * * *",
        "departures",
    )
    assert pipeline.lake.local == ROOT / "lake"
    assert pipeline.source.table.local == ROOT / "lake" / "bronze" / "flights"
    assert pipeline.watermark == Watermark(30 * MINUTE, 4 * HOUR, HOUR, None)
    hourly, daily, rolling = pipeline.windows
    assert isinstance(hourly, Tumbling) and hourly.grid == Grid(HOUR, zone="America/New_York")
    assert isinstance(daily, Tumbling) and daily.grid == Grid(DAY, zone="America/New_York")
    assert isinstance(rolling, Sliding) and (rolling.grid, rolling.size_us) == (
        Grid(30 * MINUTE),
        3 * HOUR,
    )
    assert [a.name for a in rolling.aggregates] == ["flights", "worst"]
    assert hourly.aggregates[4] == Aggregate("p95", "quantile", "dep_delay", 0.95)


def test_the_demo_planes() -> None:
    pipeline = load_pipeline(ROOT / "pipelines" / "planes.yaml")
    assert pipeline.source.key == ("tailnum",)
    assert [(w.name, w.gap_us) for w in pipeline.sessions] == [("working_day", 8 * HOUR)]
    assert [str(a) for a in pipeline.windows[0].aggregates] == [
        "count()",
        "count_distinct(dest)",
        "sum(distance)",
        "first(origin)",
        "last(dest)",
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"size": "1 day", "offset": "23 hours 59 minutes"}, Grid(DAY, origin_us=DAY - MINUTE)),
        ({"size": "1 hour", "offset": "-15 minutes"}, Grid(HOUR, origin_us=45 * MINUTE)),
        ({"size": "1 hour", "offset": "3 hours 5 minutes"}, Grid(HOUR, origin_us=5 * MINUTE)),
        (
            {"size": "15 minutes", "origin": "2024-01-01 00:05"},
            Grid(15 * MINUTE, origin_us=19723 * DAY + 5 * MINUTE),
        ),
        ({"size": "2 days", "origin": "1969-12-31"}, Grid(2 * DAY, origin_us=-DAY)),
        ({"size": "1 day", "origin": "1970-01-01T00:00:00.5"}, Grid(DAY, origin_us=500_000)),
        ({"size": "1 day", "origin": date(1970, 1, 2)}, Grid(DAY, origin_us=DAY)),
        ({"size": "2 weeks"}, Grid(2 * WEEK, origin_us=4 * DAY)),
        ({"size": "14 days"}, Grid(2 * WEEK)),
        ({"size": "1 week", "offset": "1 day"}, Grid(WEEK, origin_us=5 * DAY)),
        ({"size": "1 week", "origin": "1970-01-04"}, Grid(WEEK, origin_us=3 * DAY)),
        ({"size": "1 month", "zone": "Asia/Kolkata"}, Grid(months=1, zone="Asia/Kolkata")),
        ({"size": "1 quarter", "origin": "1970-01-15"}, Grid(months=3, origin_us=14 * DAY)),
        ({"size": "1 year"}, Grid(months=12)),
        ({"size": "1 microsecond"}, Grid(1)),
        (
            {
                "size": "1 hour",
                "zone": None,
                "offset": None,
                "origin": None,
                "empty": False,
                "emit": "on_change",
            },
            Grid(HOUR),
        ),
    ],
)
def test_tumbling_grids(fields: dict[str, Any], expected: Grid) -> None:
    assert grid(kind="tumbling", **fields) == expected


def test_sliding_windows_begin_at_every_slide() -> None:
    window = only_window(
        kind="sliding",
        size="1 hour",
        slide="25 minutes",
        offset="-5 minutes",
        zone="UTC",
        change_feed=False,
    )
    assert isinstance(window, Sliding)
    assert (window.grid, window.size_us) == (
        Grid(25 * MINUTE, origin_us=20 * MINUTE, zone="UTC"),
        HOUR,
    )
    assert window.shown == OutputPolicy(change_feed=False)


def test_sliding_by_weeks_begins_on_mondays() -> None:
    assert grid(kind="sliding", size="4 weeks", slide="1 week") == Grid(WEEK, origin_us=4 * DAY)


def test_sliding_by_its_size_is_tumbling() -> None:
    slid = only_window(kind="sliding", size="1 hour", slide="60 minutes", offset="10 minutes")
    assert slid == only_window(kind="tumbling", size="1 hour", offset="10 minutes")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("count()", ("count", None, None)),
        (" count ( ) ", ("count", None, None)),
        ("avg(delay)", ("avg", "delay", None)),
        ("sum( größe )", ("sum", "größe", None)),
        ("median(delay)", ("quantile", "delay", 0.5)),
        ("quantile(delay, 0)", ("quantile", "delay", 0.0)),
        ("quantile(delay,1.)", ("quantile", "delay", 1.0)),
        ("quantile(delay, .5)", ("quantile", "delay", 0.5)),
        ("quantile(delay, 5e-2)", ("quantile", "delay", 0.05)),
        ({"call": "first(gate)"}, ("first", "gate", None)),
        ({"call": "last(gate)", "where": None}, ("last", "gate", None)),
        ("top_k(gate, 3)", ("top_k", "gate", 3)),
        ("max_by(gate, delay)", ("max_by", "gate", None, "delay")),
        (
            {"call": "count()", "where": "delay>60"},
            ("count", None, None, None, Expression("delay > 60", ("delay",))),
        ),
    ],
)
def test_aggregates(call: Any, expected: tuple[Any, ...]) -> None:
    assert load_pipeline(having(aggregates={"a": call})).windows[0].aggregates == (
        Aggregate("a", *expected),
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("ts", EventTime("ts")),
        ({"column": "ts", "unit": "ms"}, EventTime("ts", "ms")),
        ({"column": "ts", "unit": "s"}, EventTime("ts", "s")),
        ({"column": "ts", "unit": "us"}, EventTime("ts", "us")),
        ({"column": "arrival", "unit": "s"}, EventTime("arrival", "s")),
        ("arrival", EventTime(None)),
        ("Arrival", EventTime("Arrival")),
    ],
)
def test_event_times(given: Any, expected: EventTime) -> None:
    assert (
        load_pipeline(having(source=SMALL["source"] | {"event_time": given})).source.event_time
        == expected
    )


def test_a_source_with_everything() -> None:
    more = {
        "zone": "Europe/Vienna",
        "event_id": "id",
        "order_by": ["seq", "part"],
        "changes": "refuse",
        "on_bad_value": None,
    }
    source = load_pipeline(
        having(source=SMALL["source"] | more | {"key": ("origin", "dest")})
    ).source
    assert (source.zone, source.event_id, source.order_by, source.on_bad_value) == (
        "Europe/Vienna",
        "id",
        ("seq", "part"),
        "null",
    )
    assert source.key == ("origin", "dest")


def test_computed_columns_and_a_filter() -> None:
    columns = {"late": "NOT delay<=60 AND `gate` is not null", "größe": "a+b*2"}
    source = load_pipeline(
        having(source=SMALL["source"] | {"columns": columns, "where": "distance>0"})
    ).source
    assert source.columns == (
        ("late", Expression("not delay <= 60 and `gate` is not null", ("delay", "gate"))),
        ("größe", Expression("a + b * 2", ("a", "b"))),
    )
    assert source.where == Expression("distance > 0", ("distance",))


@pytest.mark.parametrize("choice", ["quarantine", "null"])
def test_bad_values_as_text(choice: str) -> None:
    assert (
        load_pipeline(having(source=SMALL["source"] | {"on_bad_value": choice})).source.on_bad_value
        == choice
    )


def test_a_watermark_with_everything() -> None:
    written = {
        "delay": "10 minutes",
        "allowed_lateness": "0 seconds",
        "max_future": "0 seconds",
        "dedupe_horizon": "30 days",
    }
    assert load_pipeline(having(watermark=written)).watermark == Watermark(
        10 * MINUTE, 0, 0, 30 * DAY, None
    )
    written["idle_after"] = "15 minutes"
    assert load_pipeline(having(watermark=written)).watermark == Watermark(
        10 * MINUTE, 0, 0, 30 * DAY, 15 * MINUTE
    )


@pytest.mark.parametrize(
    ("lateness", "state", "window", "kept"),
    [
        ("1 hour", "2 hours", {"kind": "tumbling", "size": "1 hour"}, 2 * HOUR),
        ("1 hour", "forever", {"kind": "tumbling", "size": "1 hour"}, None),
        ("0 seconds", "1 year", {"kind": "tumbling", "size": "1 year"}, 366 * DAY),
        ("1 hour", "4 hours", {"kind": "sliding", "size": "3 hours", "slide": "1 hour"}, 4 * HOUR),
        ("1 hour", "3 hours", {"kind": "session", "gap": "1 hour"}, 3 * HOUR),
        (
            "1 hour",
            "5 hours",
            {"kind": "session", "gap": "1 hour", "max_duration": "2 hours"},
            5 * HOUR,
        ),
        (
            "1 hour",
            "25 hours",
            {"kind": "cumulate", "max_size": "1 day", "step": "1 hour"},
            25 * HOUR,
        ),
        (
            "1 hour",
            "2 years",
            {"kind": "cumulate", "max_size": "1 year", "step": "1 month"},
            732 * DAY,
        ),
        (
            "0 seconds",
            "4 seconds",
            {"kind": "record_sliding", "difference": "1 second", "tick": "1 second"},
            4 * SECOND,
        ),
        ("1 hour", "forever", {"kind": "global"}, None),
        ("forever", "forever", {"kind": "count", "count": 3}, None),
    ],
)
def test_state_that_is_just_long_enough(
    lateness: str, state: str, window: dict[str, Any], kept: int | None
) -> None:
    spec = having(
        watermark={"allowed_lateness": lateness}, retention={"state": state}, windows={"w": window}
    )
    assert load_pipeline(spec).retention.state_us == kept


def test_freshness_and_alarms_are_read_and_hold_nothing_by_default() -> None:
    plain = load_pipeline(having())
    assert (plain.freshness_us, plain.alarms) == (None, Alarms())
    limits = {"quarantined": 0.1, "lost_values": 0, "max_age": "2 years", "rows_factor": 20}
    watched = load_pipeline(having(freshness="11 minutes", alarms=limits))
    assert watched.freshness_us == 11 * MINUTE
    assert watched.alarms == Alarms(0.1, 0, 2 * 366 * DAY, 20)


@pytest.mark.parametrize(
    ("written", "bound"),
    [
        (None, None),
        ({"rows": 1}, BatchBound(1, None)),
        ({"bytes": 5}, BatchBound(None, 5)),
        ({"rows": 2_000, "bytes": "512 MB"}, BatchBound(2_000, 512_000_000)),
        ({"bytes": " 2GB "}, BatchBound(None, 2_000_000_000)),
        ({"bytes": "3 kB"}, BatchBound(None, 3_000)),
    ],
)
def test_a_batch_has_the_bound_that_is_written(
    written: dict[str, Any] | None, bound: BatchBound | None
) -> None:
    source = {**SMALL["source"], "batch": written}
    assert load_pipeline(having(source=source)).source.batch == bound


def test_retention_counts_the_longest_months() -> None:
    retention = load_pipeline(
        having(retention={"refused": "14 months", "output": "90 days", "revisions": "1 year"})
    ).retention
    assert retention == Retention(None, (366 + 62) * DAY, 90 * DAY, 366 * DAY)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("*/15 * * * *", "*/15 * * * *"),
        ("0  6,18 1-7 JAN-mar mon-fri", "0 6,18 1-7 JAN-mar mon-fri"),
        ("5-59/10 0 * * 7", "5-59/10 0 * * 7"),
        ("*/60 */24 31 * *", "*/60 */24 31 * *"),
        ("0 0 30 2 mon", "0 0 30 2 mon"),
        ("@hourly", "@hourly"),
        (" @quarterly ", "@quarterly"),
        (None, None),
    ],
)
def test_schedules(given: str | None, expected: str | None) -> None:
    assert load_pipeline(having(schedule=given)).schedule == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("/a/b/../c/", "/a/c"),
        ("//a//b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b%20c", "/a/b c"),
        ("FILE://localhost/a/./b", "/a/b"),
    ],
)
def test_absolute_places(given: str, expected: str) -> None:
    assert load_pipeline(having(lake=given)).lake.text == expected
    source = SMALL["source"] | {"table": given}
    assert load_pipeline(having(source=source)).source.table.text == expected


@pytest.mark.parametrize(
    "name", ["flights", "db.events", "spark_catalog.db.events", "my-catalog.db.events"]
)
def test_catalog_names_stay(name: str) -> None:
    assert load_pipeline(having(source=SMALL["source"] | {"table": name})).source.table.text == name


def test_another_pipelines_output_is_a_source() -> None:
    assert (
        load_pipeline(
            having(source=SMALL["source"] | {"table": "/data/lake/departures_raw/hourly"})
        ).name
        == "departures"
    )


@pytest.mark.parametrize("lake", ["/data/bronze/flights", "/data/bronze/flights/lake"])
def test_a_lake_does_not_lie_in_the_source(lake: str) -> None:
    with pytest.raises(SpecError, match=f"lake: '{lake}' lies in source.table, where a VACUUM"):
        load_pipeline(having(lake=lake))


@pytest.mark.parametrize("lake", ["/data/bronze/flights/_lake", "/data/bronze/flights/.own/lake"])
def test_a_lake_may_be_hidden_in_the_source_where_no_vacuum_looks(lake: str) -> None:
    assert load_pipeline(having(lake=lake)).root.text == f"{lake}/departures"


@pytest.mark.parametrize("lake", ["/data/bronze", "/data/bronze/flights_lake"])
def test_a_lake_may_lie_around_and_beside_the_source(lake: str) -> None:
    assert load_pipeline(having(lake=lake)).lake.text == lake


def test_a_mapping_may_be_read_only() -> None:
    assert load_pipeline(MappingProxyType(SMALL)) == load_pipeline(SMALL)


def test_relative_paths_start_at_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "pipelines"
    folder.mkdir()
    text = (
        "name: p\nlake: ../lake\nsource: {table: ../in/t, event_time: ts, key: [k]}\n"
        "aggregates: {n: count()}\n"
    )
    (folder / "p.yaml").write_text(
        "\ufeff" + text + "windows: {w: {kind: tumbling, size: 1 day, origin: 1970-01-02}}\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    for given in (os.path.join("pipelines", "p.yaml"), Path("pipelines/p.yaml"), folder / "p.yaml"):
        pipeline = load_pipeline(given)
        places = (pipeline.lake.local, pipeline.source.table.local)
        assert places == (tmp_path / "lake", tmp_path / "in" / "t")
        assert pipeline.file == os.fspath(given)
        assert pipeline.aligned[0].grid.origin_us == DAY


def test_reading_a_spec_needs_no_spark() -> None:
    code = (
        "import sys; from windowing.spec.load import load_pipeline; load_pipeline(sys.argv[1]);"
        "print([m for m in ('pyspark', 'delta', 'airflow', 'great_expectations', "
        "'pandas') if m in sys.modules])"
    )
    spec = str(ROOT / "pipelines" / "departures.yaml")
    done = subprocess.run(
        [sys.executable, "-c", code, spec], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_error_carries_field_and_file(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(
        "name: p\nlake: l\nsource: {table: a/b, event_time: t, key: [k]}\n"
        "aggregates: {n: count()}\nwindows: {w: {kind: tumbling, size: 15}}\n"
    )
    with pytest.raises(SpecError) as caught:
        load_pipeline(path)
    assert (caught.value.field, caught.value.file, caught.value.exit_code) == (
        "windows.w.size",
        str(path),
        2,
    )
    assert str(caught.value).startswith(
        f"{path}: windows.w.size: 15 is not a duration such as '15 minutes'"
    )
