"""Columns and parts of columns: how they are named, and what they are called from then on."""

from typing import Any

import pytest

from tests.windowing.spec.specs import changed, refused
from windowing.spec.fingerprint import parts
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import EventTime, Pipeline


def loaded(**paths: Any) -> Pipeline:
    """The right spec with these changes."""
    return load_pipeline(changed(**paths))


def computed(pipeline: Pipeline) -> dict[str, str]:
    """Every computed column with its expression."""
    return {name: expression.sql for name, expression in pipeline.source.computed.items()}


NAMES = [
    # a bare name is that of a column, whatever it contains
    ("delay", "delay", None),
    ("`delay`", "delay", None),
    ("order-id", "order-id", None),
    ("`order-id`", "order-id", None),
    # a name that no column of a table has becomes one that it can have
    ("Total Amount", "Total_Amount", "`Total Amount`"),
    ("`Total Amount`", "Total_Amount", "`Total Amount`"),
    ("`a.ts`", "a_ts", "`a.ts`"),
    ("`a``b`", "a_b", "`a``b`"),
    # parts have the name of the last one
    ("a.ts", "ts", "a.ts"),
    ("trip.rider.country", "country", "trip.rider.country"),
    ("trip.`Home Town`", "Home_Town", "trip.`Home Town`"),
    ("trip.stops[0]", "stops_0", "trip.stops[0]"),
    ("trip.stops[0].gate", "gate", "trip.stops[0].gate"),
    ("tags['k']['a b']", "tags_k_a_b", "tags['k']['a b']"),
    (" trip . end ", "end", "trip.end"),
]


@pytest.mark.parametrize(("text", "name", "sql"), NAMES, ids=[text for text, _, _ in NAMES])
def test_a_key_is_called_by_its_last_part(text: str, name: str, sql: str | None) -> None:
    pipeline = loaded(**{"source/key": [text]})
    assert pipeline.source.key == (name,)
    assert computed(pipeline).get(name) == sql
    if sql is not None:
        assert pipeline.source.field_of(name) == "source.key[0]"


@pytest.mark.parametrize(
    ("text", "time", "sql"),
    [
        ("Event Time", EventTime("Event Time"), None),
        ("`Event Time`", EventTime("Event Time"), None),
        ("`a.ts`", EventTime("a.ts"), None),
        ("a.ts", EventTime("ts"), "a.ts"),
        ("`arrival`", EventTime("arrival"), None),
        ("arrival", EventTime(None), None),
        ("a.arrival", EventTime("arrival"), "a.arrival"),
    ],
)
def test_an_event_time_keeps_its_name_unless_it_is_a_part(
    text: str, time: EventTime, sql: str | None
) -> None:
    pipeline = loaded(**{"source/event_time": text})
    assert pipeline.source.event_time == time
    assert computed(pipeline).get(time.column or "") == sql


def test_parts_of_the_source_are_computed_there_and_others_come_and_go() -> None:
    pipeline = loaded(
        **{
            "source/event_time": {"column": "trip.at", "unit": "ms"},
            "source/event_id": "trip.id",
            "source/order_by": ["trip.seq", "`odd name`"],
            "aggregates/miles": "sum(trip.miles)",
            "aggregates/first": "min_by(trip.gate, trip.at)",
            "aggregates/bad": {"call": "count()", "where": "trip.kind = 'x' or stops[0] is null"},
            "windows": {
                "legs": {"kind": "delta", "attribute": "trip.miles", "delta": 5},
                "trips": {"kind": "punctuation", "marker": "trip.done"},
            },
        }
    )
    source = pipeline.source
    assert source.event_time == EventTime("at", "ms")
    assert (source.event_id, source.order_by) == ("id", ("seq", "odd name"))
    assert [name for name, _ in source.columns] == ["at", "id", "seq"]
    assert [name for name, _ in source.parts] == ["miles", "gate", "kind", "stops_0", "done"]
    bad = next(each for each in pipeline.aggregates if each.name == "bad")
    assert bad.where is not None
    assert bad.where.sql == "kind = 'x' or stops_0 is null"
    assert source.field_of("kind") == "aggregates.bad.where"
    assert source.field_of("at") == "source.event_time.column"
    assert source.field_of("done") == "windows.trips.marker"


@pytest.mark.parametrize(
    ("where", "sql"),
    [
        ("trip.`net-total` > 5", "`net-total` > 5"),
        ("votes.true", "`true`"),
        ("trip.case = 'x'", "`case` = 'x'"),
        ("attributes['http-status'] = '500'", "`attributes_http-status` = '500'"),
    ],
)
def test_a_part_with_a_name_that_reads_as_something_else_is_in_backticks(
    where: str, sql: str
) -> None:
    pipeline = loaded(**{"aggregates/some": {"call": "count()", "where": where}})
    some = next(each for each in pipeline.aggregates if each.name == "some")
    ((name, _),) = pipeline.source.parts
    assert some.where is not None
    assert (some.where.sql, some.where.columns) == (sql, (name,))


def test_a_part_that_has_a_name_is_not_computed_twice() -> None:
    pipeline = loaded(
        **{
            "source/columns": {"country": "trip.country"},
            "source/key": ["trip.country"],
            "aggregates/a": "max(trip.country)",
        }
    )
    assert computed(pipeline) == {"country": "trip.country"}
    assert pipeline.source.field_of("country") == "source.columns.country"


WAY = 'give it another name in source.columns, as in columns: {b_id: "b.id"}, and use that'
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (
        {"source/key": ["a.id", "b.id"]},
        "source.key[1]",
        f"'b.id' would be called 'id', but 'id' is 'a.id'; {WAY}",
    ),
    (
        {"source/key": ["a.id"], "aggregates/m": "max(b.id)"},
        "aggregates.m",
        f"'b.id' would be called 'id', but 'id' is 'a.id'; {WAY}",
    ),
    (
        {"source/columns": {"ID": "a.id"}, "aggregates/m": {"call": "max(b.id)"}},
        "aggregates.m.call",
        f"'b.id' would be called 'id', but 'ID' is 'a.id'; {WAY}",
    ),
    (
        {"source/key": ["a.judged_by"]},
        "source.key[0]",
        "'judged_by' is reserved; not allowed are judged_by and names that begin with '__'; "
        "give it another name, by source.columns",
    ),
    ({"source/key": ["a.run"]}, "source.key[0]", "'run' is reserved; not allowed are"),
    ({"source/key": ["a.run"]}, "source.key[0]", 'as in columns: {a_run: "a.run"}, and use that'),
    (
        {"aggregates/m": "max(a.__t)"},
        "aggregates.m",
        "'__t' is reserved; not allowed are names that begin with '__', by source.columns",
    ),
    (
        {"source/key": ["a..b"]},
        "source.key[0]",
        "'a..b' is not a column such as delay, `odd name` or trip.rider.country; "
        "a name with other characters than letters, digits and _ is in backticks",
    ),
    ({"source/event_time": "`ts"}, "source.event_time", "'`ts' is not a column such as"),
    ({"source/event_id": "max(a.b)"}, "source.event_id", "'max(a.b)' is not a column such as"),
    ({"source/order_by": ["1.5"]}, "source.order_by[0]", "'1.5' is not a column such as"),
    ({"source/order_by": ["a.x", "x"]}, "source.order_by[1]", "'x' is given twice"),
    (
        {"aggregates/m": "sum(Total Amount)"},
        "aggregates.m",
        "'Total Amount' in 'sum(Total Amount)' is not a column; a name is letters, digits and _, "
        "and does not begin with a digit; another one is written in backticks: sum(`Total Amount`)",
    ),
    (
        {"aggregates/m": "count(trip.gate)"},
        "aggregates.m",
        "'count(trip.gate)' has an argument, but count() counts rows and takes no column; "
        "write {call: count(), where: trip.gate is not null} for those that are not null",
    ),
]


@pytest.mark.parametrize(("paths", "field", "sentence"), REFUSED)
def test_what_names_no_column_is_refused(paths: dict[str, Any], field: str, sentence: str) -> None:
    error = refused(changed(**paths))
    assert error.field == field
    assert sentence in error.message


def test_the_way_out_of_a_refused_aggregate_works() -> None:
    (amount,) = (a for a in loaded(**{"aggregates": {"m": "sum(`Total Amount`)"}}).aggregates)
    assert amount.column == "Total_Amount"


def test_a_part_belongs_to_the_aggregate_that_reads_it() -> None:
    """So that such an aggregate joins a live pipeline, and another part is another aggregate."""
    before = parts(loaded())
    added = parts(loaded(**{"aggregates/m": "max(trip.miles)"}))
    moved = parts(loaded(**{"aggregates/m": "max(leg.miles)"}))
    new = {name for name in added if name not in before}
    assert {name: digest for name, digest in added.items() if name not in new} == before
    assert new == {name for name in added if name.endswith("aggregate m")}
    assert all(added[name] != moved[name] for name in new)


def test_a_part_belongs_to_the_window_that_reads_it() -> None:
    windows = [{"trips": {"kind": "punctuation", "marker": f"{of}.done"}} for of in ("a", "b")]
    before, after = (parts(loaded(windows=each)) for each in windows)
    assert before["windows.trips"] != after["windows.trips"]
    assert before["source"] == after["source"]


def test_the_path_of_a_key_is_of_the_source() -> None:
    before, after = (parts(loaded(**{"source/key": [f"{of}.country"]})) for of in ("a", "b"))
    assert [name for name in before if before[name] != after[name]] == ["source"]


def test_a_name_in_backticks_is_the_same_spec() -> None:
    bare = loaded(**{"source/event_time": "Event Time", "source/key": ["gate"]})
    marked = loaded(**{"source/event_time": "`Event Time`", "source/key": ["`gate`"]})
    assert parts(bare) == parts(marked)
