"""Which rows of a source arrived when, by its log and its files. No JVM."""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.planted_history import (
    EVENTS,
    Planted,
    move_commit,
    newest,
    plant_spec,
    write_history,
)
from windowing.advise.ends import NEVER_US
from windowing.advise.history import UNKNOWN_US
from windowing.advise.reading import Asked, NeedsSpark, Reading
from windowing.advise.table import read_events
from windowing.errors import SourceMissing, SpecError, UsageError
from windowing.grid.zone import micros
from windowing.spec.load import load_pipeline


def at(text: str) -> int:
    """An instant of the first day of 2026, in microseconds."""
    return micros(datetime.fromisoformat(f"2026-01-01T{text}Z"))


def row(event: str, clock: str, shop: str | None = "a") -> dict[str, Any]:
    """An event of a shop at a time of that day."""
    return {"id": event, "shop": shop, "at": datetime.fromisoformat(f"2026-01-01T{clock}Z")}


THREE = (
    Planted(at("10:00"), [row("1", "09:50"), row("2", "09:58", "b")]),
    Planted(at("11:00"), [row("3", "10:30"), row("4", "09:00")]),
    Planted(at("12:00"), [row("5", "11:59"), row("6", "11:00", "b")]),
)


def read(home: Path, asked: Asked = Asked(), **source: Any) -> Reading:  # noqa: B008
    """What is read of the source `home/source`; `source` adds to its section of the spec."""
    spec = plant_spec(home)
    return read_events(load_pipeline(spec | {"source": spec["source"] | source}), asked)


def rows_of(found: Reading) -> list[tuple[int, int, tuple[str, ...]]]:
    """(batch, event time, key) of all events, in order."""
    events = found.events
    keys = [found.keys[number] for number in events.key.tolist()]
    return sorted(zip(events.batch.tolist(), events.time.tolist(), keys, strict=True))


ALL_THREE = [
    (0, at("09:50"), ("a",)),
    (0, at("09:58"), ("b",)),
    (1, at("09:00"), ("a",)),
    (1, at("10:30"), ("a",)),
    (2, at("11:00"), ("b",)),
    (2, at("11:59"), ("a",)),
]


def test_each_commit_is_a_batch(tmp_path: Path) -> None:
    write_history(tmp_path / "source", THREE)
    found = read(tmp_path, event_id="id")
    assert rows_of(found) == ALL_THREE
    assert (found.first, found.last, found.left_out, found.invalid) == (0, 2, (), 0)
    assert found.batches.arrived_us.tolist() == [batch.arrival for batch in THREE]
    assert found.batches.high_us.tolist() == [UNKNOWN_US] * 3, "what was read tells itself"
    assert found.events.ids is not None
    assert len({*found.events.ids.tolist()}) == 6
    assert found.reach == "that is the whole history of the table"


def test_rows_that_are_only_moved_do_not_arrive(tmp_path: Path) -> None:
    write_history(tmp_path / "source", THREE)
    DeltaTable(tmp_path / "source").optimize.compact()
    assert newest(tmp_path / "source") == 3
    found = read(tmp_path)
    assert rows_of(found) == ALL_THREE
    assert found.last == 2


def test_commits_whose_files_are_gone_are_left_out(tmp_path: Path) -> None:
    source = tmp_path / "source"
    write_history(source, THREE[:2])
    table = DeltaTable(source)
    table.optimize.compact()
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    write_history(source, THREE[2:])
    found = read(tmp_path)
    assert rows_of(found) == [row for row in ALL_THREE if row[0] == 2]
    (left_out,) = found.left_out
    assert (left_out.commits, left_out.rows) == (2, 4)
    assert "VACUUM" in left_out.reason
    assert found.complete_from_us == at("11:00")
    # Their highest event times are known from the log.
    assert found.batches.high_us.tolist()[:2] == [at("09:58"), at("10:30")]


def test_commits_that_changed_rows_are_left_out(tmp_path: Path) -> None:
    source = tmp_path / "source"
    write_history(source, THREE[:2])
    DeltaTable(source).update(updates={"shop": "'c'"}, predicate="id = '3'")
    move_commit(source, newest(source), at("11:30"))
    write_history(source, THREE[2:])
    found = read(tmp_path)
    assert [each[1:] for each in rows_of(found)] == [each[1:] for each in ALL_THREE]
    assert [left.commits for left in found.left_out] == [1]
    assert "changed or removed rows" in found.left_out[0].reason
    assert found.complete_from_us == at("11:30")


def test_of_a_change_feed_inserts_arrive(tmp_path: Path) -> None:
    source = tmp_path / "source"
    write_deltalake(
        source,
        pa.Table.from_pylist([row("1", "09:50")], EVENTS),
        configuration={"delta.enableChangeDataFeed": "true"},
    )
    DeltaTable(source).update(updates={"shop": "'c'"}, predicate="id = '1'")
    news = pa.Table.from_pylist([row("1", "10:00"), row("2", "10:05")], EVENTS)
    merge = DeltaTable(source).merge(news, "old.id = new.id", "new", "old")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    found = read(tmp_path, changes="feed")
    times = [time for _, time, _ in rows_of(found)]
    assert times == [at("09:50"), at("10:05")]
    assert found.left_out == ()


def test_a_log_that_was_shortened_limits_the_history(tmp_path: Path) -> None:
    source = tmp_path / "source"
    ahead = Planted(at("09:59"), [row("0", "12:30")])
    write_history(source, [ahead, *THREE[1:]])
    DeltaTable(source).create_checkpoint()
    for version in (0, 1):
        (source / "_delta_log" / f"{version:020}.json").unlink()
    found = read(tmp_path)
    assert rows_of(found) == [(0, time, key) for _, time, key in ALL_THREE[4:]]
    assert found.reach == "the log has no commits before version 2"
    assert (found.first, found.last) == (2, 2)
    assert (found.cut_by, found.complete_from_us) == (None, at("12:00"))
    # What had arrived before is known by the statistics of the files that are there.
    assert found.batches.high_us.tolist() == [at("12:30")]


@pytest.mark.parametrize(
    ("asked", "versions", "why"),
    [
        (Asked(rows=3), [2], "older commits are beyond the limit of --rows 3"),
        (Asked(rows=4), [1, 2], "older commits are beyond the limit of --rows 4"),
        (Asked(rows=1), [2], "older commits are beyond the limit of --rows 1"),
        (Asked(since_us=at("11:00")), [1, 2], "--since leaves out older commits"),
    ],
)
def test_the_newest_commits_are_read(
    tmp_path: Path, asked: Asked, versions: list[int], why: str
) -> None:
    write_history(tmp_path / "source", THREE)
    found = read(tmp_path, asked)
    assert [found.first, found.last] == [versions[0], versions[-1]]
    assert (len(found.batches.arrived_us), found.reach) == (len(versions), why)


def test_an_in_commit_timestamp_is_the_arrival(tmp_path: Path) -> None:
    source = tmp_path / "source"
    write_history(source, THREE[:2])
    file = source / "_delta_log" / f"{1:020}.json"
    text = file.read_text()
    moved = text.replace('"timestamp"', f'"inCommitTimestamp": {at("13:00") // 1000}, "timestamp"')
    assert moved != text
    file.write_text(moved)
    assert read(tmp_path).batches.arrived_us.tolist() == [at("10:00"), at("13:00")]
    # Without any time nothing is known of when it arrived.
    file.write_text(moved.replace("inCommitTimestamp", "one").replace('"timestamp"', '"two"'))
    found = read(tmp_path)
    assert found.batches.arrived_us.tolist() == [at("10:00")]
    assert [left.reason for left in found.left_out] == ["they have no time"]


def lose_time(source: Path, version: int) -> None:
    """Lets a commit not say when it was made."""
    file = source / "_delta_log" / f"{version:020}.json"
    file.write_text(file.read_text().replace('"timestamp"', '"two"'))


def test_a_commit_without_a_time_hides_no_older_ones(tmp_path: Path) -> None:
    write_history(tmp_path / "source", THREE)
    lose_time(tmp_path / "source", 2)
    found = read(tmp_path, Asked(since_us=at("11:00")))
    assert found.batches.arrived_us.tolist() == [at("11:00")]
    assert [left.reason for left in found.left_out] == ["they have no time"]
    assert (found.reach, found.cut_by) == ("--since leaves out older commits", "--since")


@pytest.mark.parametrize(
    ("asked", "untimed", "expected"),
    [
        (Asked(), [], None),
        (Asked(rows=4), [], at("11:00")),
        (Asked(since_us=at("11:30")), [], at("12:00")),
        # It arrived before the commit after it, or else at any time.
        (Asked(), [0], at("11:00")),
        (Asked(), [1], at("12:00")),
        (Asked(), [0, 1], at("12:00")),
        (Asked(), [2], NEVER_US),
        (Asked(rows=4), [1], at("12:00")),
    ],
    ids=["all", "rows", "since", "first", "second", "two", "newest", "rows-second"],
)
def test_it_is_known_from_when_on_everything_was_read(
    tmp_path: Path, asked: Asked, untimed: list[int], expected: int | None
) -> None:
    write_history(tmp_path / "source", THREE)
    for version in untimed:
        lose_time(tmp_path / "source", version)
    assert read(tmp_path, asked).complete_from_us == expected


def test_clocks_of_several_writers_never_go_back(tmp_path: Path) -> None:
    write_history(tmp_path / "source", [THREE[1], THREE[0], THREE[2]])
    assert read(tmp_path).batches.arrived_us.tolist() == [at("11:00"), at("11:00"), at("12:00")]


def test_rows_without_time_or_key_are_counted(tmp_path: Path) -> None:
    bad = [row("1", "09:50"), row("2", "09:51", None), {"id": "3", "shop": "a", "at": None}]
    write_history(tmp_path / "source", [Planted(at("10:00"), bad)])
    found = read(tmp_path)
    assert (len(found.events.time), found.invalid) == (1, 2)


def on_clock(text: str) -> datetime:
    """A local time."""
    return datetime.fromisoformat(text)


TIMES: Mapping[str, tuple[pa.DataType, list[Any], dict[str, Any], list[int]]] = {
    "seconds": (
        pa.int64(),
        [1, -2, None, 10**15, -(2**63)],
        {"unit": "s"},
        [1_000_000, -2_000_000],
    ),
    "milliseconds": (pa.int32(), [5], {"unit": "ms"}, [5_000]),
    "local": (
        pa.timestamp("us"),
        # The clock shows the first one twice, the second one never.
        [on_clock("2026-10-25T02:30"), on_clock("2026-03-29T02:30"), on_clock("2026-07-01T00:00")],
        {"zone": "Europe/Berlin"},
        [
            micros(datetime(2026, 6, 30, 22, tzinfo=UTC)),
            micros(datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
        ],
    ),
    "days": (
        pa.date32(),
        [date(2026, 1, 1)],
        {"zone": "Asia/Kolkata"},
        [micros(datetime(2025, 12, 31, 18, 30, tzinfo=UTC))],
    ),
}


@pytest.mark.parametrize("kind", TIMES)
def test_times_of_other_types_are_read_as_a_run_reads_them(tmp_path: Path, kind: str) -> None:
    stored, values, said, expected = TIMES[kind]
    schema = pa.schema([("shop", pa.string()), ("when", stored)])
    rows = [{"shop": "a", "when": value} for value in values]
    write_history(tmp_path / "source", [Planted(at("10:00"), rows)], schema)
    unit = said.get("unit")
    time = {"column": "when", "unit": unit} if unit else "when"
    found = read(tmp_path, event_time=time, **{k: v for k, v in said.items() if k != "unit"})
    assert sorted(found.events.time.tolist()) == sorted(expected)
    assert found.invalid == len(values) - len(expected)


def test_keys_of_several_columns_partitions_and_groups(tmp_path: Path) -> None:
    schema = pa.schema(
        [("shop", pa.string()), ("till", pa.int64()), ("app", pa.string()), EVENTS.field("at")]
    )
    when = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [
        {"shop": shop, "till": till, "app": app, "at": when}
        for shop, till, app in [("a", 1, "x"), ("a", 2, None), ("b", 1, "x"), ("a", 1, "y")]
    ]
    table = pa.Table.from_pylist(rows, schema)
    write_deltalake(tmp_path / "source", table, partition_by=["shop"])
    found = read(tmp_path, Asked(by=("app",)), key=["shop", "till"])
    keys = sorted(found.keys[number] for number in found.events.key.tolist())
    assert keys == [("a", "1"), ("a", "1"), ("a", "2"), ("b", "1")]
    groups = sorted(found.groups[number] for number in found.events.group.tolist())
    assert groups == [("-",), ("x",), ("x",), ("y",)]
    assert found.events.ids is None


def test_a_column_that_came_later_is_null_before(tmp_path: Path) -> None:
    source = tmp_path / "source"
    write_history(source, THREE[:1])
    wider = pa.Table.from_pylist(
        [row("9", "11:00") | {"app": "x"}], EVENTS.append(pa.field("app", pa.string()))
    )
    write_deltalake(source, wider, mode="append", schema_mode="merge")
    found = read(tmp_path, Asked(by=("app",)))
    groups = [found.groups[number] for number in found.events.group.tolist()]
    assert sorted(groups) == [("-",), ("-",), ("x",)]


def test_what_can_not_be_read_without_spark_is_said(tmp_path: Path) -> None:
    write_history(tmp_path / "source", THREE)
    for source, reason in (
        ({"where": "shop = 'a'"}, "where"),
        ({"columns": {"day": "lower(shop)"}, "key": ["day"]}, "'day' is computed"),
        ({"event_time": "id", "zone": "UTC"}, "'id' is of type string"),
        ({"table": "shop.events"}, "catalog"),
    ):
        with pytest.raises(NeedsSpark, match=reason):
            read(tmp_path, **source)
    with pytest.raises(NeedsSpark, match="'day' is computed"):
        read(tmp_path, Asked(by=("day",)), columns={"day": "lower(shop)"})


def test_times_that_are_not_in_the_files_need_spark(tmp_path: Path) -> None:
    schema = pa.schema([("shop", pa.string()), ("day", pa.date32())])
    rows = pa.Table.from_pylist([{"shop": "a", "day": date(2026, 1, 1)}], schema)
    write_deltalake(tmp_path / "source", rows, partition_by=["day"])
    with pytest.raises(NeedsSpark, match="'day' is a partition column"):
        read(tmp_path, event_time="day", zone="UTC")


def test_a_table_feature_that_arrow_does_not_know_needs_spark(tmp_path: Path) -> None:
    write_history(tmp_path / "source", THREE)
    file = tmp_path / "source" / "_delta_log" / f"{0:020}.json"
    feature = {"readerFeatures": ["newer"], "writerFeatures": ["newer"]}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7} | feature
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    newer = [{"protocol": protocol} if "protocol" in action else action for action in actions]
    file.write_text("\n".join(map(json.dumps, newer)))
    with pytest.raises(NeedsSpark, match="log"):
        read(tmp_path)


def test_wrong_questions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing, match="there is no Delta table"):
        read(tmp_path)
    write_history(tmp_path / "source", THREE)
    with pytest.raises(UsageError, match="--by: 'shpo' is no column of the source.*'shop'"):
        read(tmp_path, Asked(by=("shpo",)))
    with pytest.raises(UsageError, match="shops has no late events"):
        read(tmp_path, event_time="arrival")


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ({"key": ["shopp"]}, "source.key: the source has no column 'shopp'; it has"),
        ({"event_id": "oidd"}, "source.event_id: the source has no column 'oidd'"),
        ({"event_time": "none"}, "source.event_time: the source has no column 'none'"),
        ({"event_id": "code"}, "source.event_id: 'code' is of type binary; allowed are"),
        ({"key": ["place"]}, "source.key: 'place' is of type struct<x:bigint>; allowed are"),
    ],
)
def test_columns_that_a_run_refuses_are_refused(
    source: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    place = pa.field("place", pa.struct([("x", pa.int64())]))
    schema = EVENTS.append(pa.field("code", pa.binary())).append(place)
    rows = [row("1", "09:50") | {"code": b"1", "place": {"x": 1}}]
    write_history(tmp_path / "source", [Planted(at("10:00"), rows)], schema)
    with pytest.raises(SpecError, match=sentence):
        read(tmp_path, **source)


def test_columns_that_only_order_events_and_fill_windows_are_not_looked_at(tmp_path: Path) -> None:
    write_history(tmp_path / "source", THREE)
    computed = {"columns": {"place": "lower(shop)"}, "order_by": ["place"]}
    assert rows_of(read(tmp_path, **computed)) == ALL_THREE


NO_GROUPS = {
    "struct": pa.struct([("a", pa.int64())]),
    "array": pa.list_(pa.int64()),
    "map": pa.map_(pa.string(), pa.int64()),
    "binary": pa.binary(),
}


@pytest.mark.parametrize("kind", NO_GROUPS)
def test_a_column_without_texts_makes_no_groups(tmp_path: Path, kind: str) -> None:
    schema = EVENTS.append(pa.field("body", NO_GROUPS[kind]))
    write_history(tmp_path / "source", [Planted(at("10:00"), [row("1", "09:50")])], schema)
    allowed = "columns of texts, numbers, booleans, dates and times"
    with pytest.raises(UsageError, match=f"--by: 'body' is of type {kind}; .* {allowed}"):
        read(tmp_path, Asked(by=("body",)))


def test_scalars_make_groups(tmp_path: Path) -> None:
    scalars: Mapping[str, tuple[pa.DataType, Any, str]] = {
        "whole": (pa.int32(), 7, "7"),
        "exact": (pa.decimal128(9, 2), Decimal("1.50"), "1.50"),
        "yes": (pa.bool_(), True, "true"),
        "day": (pa.date32(), date(2026, 1, 2), "2026-01-02"),
    }
    schema = pa.schema([*EVENTS, *((name, kind) for name, (kind, _, _) in scalars.items())])
    one = row("1", "09:50") | {name: value for name, (_, value, _) in scalars.items()}
    write_history(tmp_path / "source", [Planted(at("10:00"), [one])], schema)
    found = read(tmp_path, Asked(by=tuple(scalars)))
    assert found.groups == [tuple(text for _, _, text in scalars.values())]


def test_an_empty_table_has_no_events(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path / "source", EVENTS)
    found = read(tmp_path, event_id="id")
    assert (len(found.events.time), len(found.batches.arrived_us), found.left_out) == (0, 0, ())


def test_a_file_may_have_no_statistics(tmp_path: Path) -> None:
    source = tmp_path / "source"
    write_history(source, THREE[:1])
    file = source / "_delta_log" / f"{0:020}.json"
    lines = []
    for line in file.read_text().splitlines():
        action = json.loads(line)
        if "add" in action:
            action["add"].pop("stats")
        lines.append(json.dumps(action))
    file.write_text("\n".join(lines))
    found = read(tmp_path)
    assert found.batches.high_us.tolist() == [UNKNOWN_US]
    assert np.sort(found.events.time).tolist() == [at("09:50"), at("09:58")]
