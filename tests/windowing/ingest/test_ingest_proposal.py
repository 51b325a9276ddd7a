"""What `init` proposes: by rules that anybody can follow, from rows as a table has them."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from windowing.ingest.columns import PinnedColumn
from windowing.ingest.disorder import round_up, write_length
from windowing.ingest.project import Origin, render_project
from windowing.ingest.proposal import Proposal, propose
from windowing.ingest.sniff import guess_form
from windowing.ingest.times import read_times

AT = datetime(2026, 3, 2, 10, tzinfo=UTC)
MINUTE = 60_000_000


def rows(count: int = 100, step: timedelta = timedelta(minutes=5), **more: Any) -> list[dict]:
    """Rows with a time, a shop and an id; of `more`, functions are called with the row's number."""
    found = []
    for n in range(count):
        row = {"ordered_at": AT + n * step, "shop": "ab"[n % 2], "order_id": f"o{n}"}
        found.append(row | {name: make(n) for name, make in more.items()})
    return found


def proposed(found: list[dict]) -> Proposal:
    proposal = propose(found)
    assert proposal is not None
    return proposal


def test_time_key_and_id_are_found() -> None:
    found = proposed(rows(price=Decimal, note=lambda n: f"note {n}"))
    assert found.event_time.value == "ordered_at"
    assert found.key.value == "[shop]"
    assert found.key.why.startswith("2 different values")
    assert found.event_id is not None
    assert found.event_id.value == "order_id"
    assert found.zone is None
    assert {name: part.value for name, part in found.aggregates.items()} == {
        "events": "count()",
        "sum_price": "sum(price)",
    }


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"part": str}, "[part]"),
        ({"stop": bool, "part": str}, "[part]"),
        ({"stop": bool}, "[stop]"),
        ({"share": lambda n: n / 7}, "[source_file]"),
    ],
)
def test_a_key_that_no_column_is_for_is_one_that_a_pipeline_can_have(
    more: dict[str, Any], key: str
) -> None:
    found = [row | {"source_file": "1.csv"} for row in rows(**more)]
    for row in found:
        del row["shop"]
    proposal = proposed(found)
    assert proposal.key.value == key
    assert proposal.key.why == "no column groups events; choose what windows are about"


@pytest.mark.parametrize(
    ("column", "value", "written"),
    [
        ("happened", AT, "happened"),
        ("happened", AT.replace(tzinfo=None), "happened"),
        ("happened", date(2026, 3, 2), "happened"),
        ("happened", "2026-03-02T10:05:00Z", "happened"),
        ("ts", 1_772_445_900, "{column: ts, unit: s}"),
        ("ts", 1_772_445_900_000, "{column: ts, unit: ms}"),
        ("ts", 1_772_445_900_000_000, "{column: ts, unit: us}"),
    ],
)
def test_times_of_many_kinds_are_times(column: str, value: object, written: str) -> None:
    times = read_times(column, column, [value])
    assert times is not None
    assert times.written == written


@pytest.mark.parametrize(
    ("column", "value"),
    [("ts", 5), ("ts", True), ("amount", 1_772_445_900), ("at", "noon"), ("at", "12345")],
)
def test_others_are_none(column: str, value: object) -> None:
    assert read_times(column, column, [value]) is None


def test_without_a_time_nothing_is_proposed() -> None:
    assert propose([{"shop": "a", "price": 1.5}]) is None
    assert propose([]) is None


def test_the_time_of_an_event_is_not_that_of_its_row() -> None:
    found = [{"created_at": AT, "loaded_at": AT, **row} for row in rows()]
    assert proposed(found).event_time.value == "ordered_at"


def test_some_broken_times_are_told() -> None:
    found = rows()
    for n, row in enumerate(found):
        row["ordered_at"] = "soon" if n < 10 else row["ordered_at"].isoformat()
    assert proposed(found).event_time.why == "text that is a time in 90 of 100 records"
    assert proposed(found).zone is not None


@pytest.mark.parametrize(
    ("step", "name", "size"),
    [
        (timedelta(days=1), "daily", "1 day"),
        (timedelta(minutes=5), "hourly", "1 hour"),
        (timedelta(seconds=5), "minutes", "10 minutes"),
    ],
)
def test_windows_are_as_long_as_the_sample_asks_for(step: timedelta, name: str, size: str) -> None:
    windows = proposed(rows(step=step)).windows
    assert {n: part.value for n, part in windows.items()} == {
        name: f"{{kind: tumbling, size: {size}}}"
    }


def test_delay_and_lateness_follow_from_the_disorder_of_the_sample() -> None:
    in_order = proposed(rows())
    assert (in_order.delay.value, in_order.allowed_lateness.value) == ("0 seconds", "1 hour")
    found = rows(200)
    for n in range(0, 200, 10):
        found[n]["ordered_at"] -= timedelta(minutes=12)
    found[150]["ordered_at"] -= timedelta(hours=2)
    late = proposed(found)
    # 99 of 100 are at most 7 minutes behind the row before; the last one is 2 hours 7 minutes.
    assert late.delay.value == "10 minutes"
    assert late.allowed_lateness.value == "1 day"
    assert "2 hours 7 minutes" in late.allowed_lateness.why


def test_lengths_are_rounded_up_to_what_people_write() -> None:
    assert [write_length(round_up(us)) for us in (0, 1, 7 * MINUTE, 25 * 60 * MINUTE)] == [
        "0 seconds",
        "1 second",
        "10 minutes",
        "2 days",
    ]


def test_a_project_has_a_text_for_each_file() -> None:
    texts = render_project(
        "shop",
        Origin("lake://bronze/shop", {"folder": "drop", "delimiter": "\t", "header": False}),
        proposed(rows(price=float)),
        [PinnedColumn("price", "double", "Price")],
        "100 records of a.csv",
    )
    assert set(texts) == {
        "tidemark.toml",
        "shop.yaml",
        "expectations/shop.yaml",
        "transcripts/shop.yaml",
        "README.md",
        ".gitignore",
    }
    spec = texts["shop.yaml"]
    assert '    delimiter: "\\t"\n    header: false\n' in spec
    assert "  key: [shop]" in spec
    assert "# 2 different values" in spec
    assert "  table: lake://bronze/shop\n" in spec
    assert 'columns: {price: "double"}' in texts["transcripts/shop.yaml"]
    assert texts[".gitignore"] == "/lake/\n/drop/\n"
    assert "tidemark ingest shop\n" in texts["README.md"]
    assert "All but `lake/` and `drop/` belongs" in texts["README.md"]


def test_fields_of_structs_are_proposed_where_no_column_has_times() -> None:
    found = [
        {
            "id": f"us{n}",
            "type": "Feature",
            "properties": {"time": 1_772_445_900_000 + n, "net": "ua"[n % 2], "mag": n / 8},
        }
        for n in range(100)
    ]
    proposal = proposed(found)
    assert proposal.event_time.value == "{column: properties.time, unit: ms}"
    assert proposal.key.value == "[properties.net]"
    assert proposal.event_id is not None
    assert proposal.event_id.value == "id"
    assert "avg(properties.mag)" in [call.value for call in proposal.aggregates.values()]
    texts = render_project(
        "quakes", Origin("lake://bronze/quakes", {}), proposal, [], "100 records"
    )
    assert not [path for path in texts if path.startswith("transcripts")]
    assert "transcripts" not in texts["README.md"]


def test_the_count_has_another_name_than_the_key() -> None:
    found = [{"at": AT + timedelta(minutes=n), "events": "ab"[n % 2]} for n in range(50)]
    proposal = proposed(found)
    assert proposal.key.value == "[events]"
    assert next(iter(proposal.aggregates)) == "event_count"
    texts = render_project("shop", Origin("/data/x:"), proposal, [], "50 records")
    assert "{column: event_count, min_value: 1}" in texts["expectations/shop.yaml"]
    assert "event_count: 1}" in texts["transcripts/shop.yaml"]
    assert '  table: "/data/x:"\n' in texts["shop.yaml"]


def test_a_project_of_a_table_takes_no_files() -> None:
    texts = render_project("shop", Origin("/data/shop orders"), proposed(rows()), [], "9 records")
    assert '  table: "/data/shop orders"\n' in texts["shop.yaml"]
    assert "files:" not in texts["shop.yaml"]
    assert texts[".gitignore"] == "/lake/\n"
    assert "Windows over events of /data/shop orders, made by" in texts["README.md"]
    for word in ("ingest", "drop", "columns/"):
        assert word not in texts["README.md"]


@pytest.mark.parametrize(
    ("name", "beginning", "form"),
    [
        ("a.csv", b"id,price\n1,2.5\n", {}),
        ("a.csv", b"id;price\n1;2,5\n", {"delimiter": ";", "decimal": ","}),
        (
            "a.csv",
            b"id;price\n1;1.002,5\n",
            {"delimiter": ";", "decimal": ",", "thousands": "."},
        ),
        ("a.csv", b'id,price\n1,"1,002.50"\n', {"thousands": ","}),
        # This may be twelve and a third, or twelve thousand.
        ("a.csv", b"id;price\n1;12,345\n", {"delimiter": ";"}),
        ("a.csv", b"id;price\n1;12,345\n2;1,5\n", {"delimiter": ";", "decimal": ","}),
        ("a.csv", b"id;price\n1;0,125\n", {"delimiter": ";", "decimal": ","}),
        ("a.tsv", b"id\tprice\n1\t2,5 kg\n", {"delimiter": "\t"}),
        ("a.csv", b"1,2.5\n2,3\n", {"header": False}),
        ("a.csv", "id;größe\n1;ä\n".encode(), {"delimiter": ";"}),
        ("a.csv", b"id;gr\xf6\xdfe\n1;2\n", {"delimiter": ";", "encoding": "windows-1252"}),
        ("a.csv", "id,x\n1,ä".encode()[:-1], {}),
        ("a.csv", b"one\n1\n2\n", {}),
        ("a.csv", b"", {}),
        ("a.jsonl", b'{"a": 1}\n', {"format": "json"}),
        ("a.json", b' [{"a": 1}]', {"format": "json", "multiline": True}),
        (
            "a.geojson",
            b'{"type":"FeatureCollection","metadata":{"n": 1},"features":[{"type":"Feature"}]}',
            {"format": "json", "records": "features"},
        ),
        ("a.json", b'{"type": "Feature", "of": ["FeatureCollection"]}', {"format": "json"}),
        (
            "a.GeoJSON.gz",
            b'{"features":[],"type":"FeatureCollection"}',
            {"format": "json", "records": "features"},
        ),
        ("a.parquet", b"PAR1", {"format": "parquet"}),
        ("a.xlsx", b"PK", None),
    ],
)
def test_how_a_file_is_written_is_seen_from_its_beginning(
    name: str, beginning: bytes, form: dict[str, object] | None
) -> None:
    assert guess_form(name, beginning) == form
