"""Whether files show that nothing is wrong with their rows, decided by plain loops over the rows.

Files are written by Arrow in the ways that other writers have: with statistics or without, with
times as INT96, and in small chunks.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import inf, isfinite, nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as T

from windowing.grid.zone import FIRST_US, micros, moment
from windowing.location import Location
from windowing.source import clean_files
from windowing.source.clean_files import CleanBatch, Demands, find_clean_batch, find_demands
from windowing.spec.load import load_pipeline

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ARRIVAL = datetime(2026, 1, 5, tzinfo=UTC)
MODERN = datetime(1900, 1, 1, tzinfo=UTC)
"""Since when all calendars agree."""
HOUR = timedelta(hours=1)
LAST = ARRIVAL + HOUR
"""The latest event time that is not too far ahead of the arrival."""
COLUMNS = T.StructType(
    [
        T.StructField("user", T.StringType()),
        T.StructField("at", T.TimestampType()),
        T.StructField("ms", T.LongType()),
        T.StructField("miles", T.DoubleType()),
        T.StructField("price", T.DoubleType()),
        T.StructField("text", T.StringType()),
    ]
)
FILE = pa.schema(
    {
        "user": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "ms": pa.int64(),
        "miles": pa.float64(),
        "price": pa.float64(),
    }
)
GOOD = {"user": "ann", "at": ARRIVAL, "ms": 7, "miles": 1.0, "price": 2.5}
"""A row with which nothing is wrong."""


def demands_of(
    event_time: str | dict[str, str] = "at",
    source: Mapping[str, Any] | None = None,
    aggregates: Mapping[str, str] | None = None,
    window: Mapping[str, Any] | None = None,
) -> Demands | None:
    """The demands of a pipeline with these fields."""
    spec = {
        "name": "p",
        "lake": "/none",
        "source": {"table": "/source", "event_time": event_time, "key": ["user"], **(source or {})},
        "watermark": {"delay": "0 seconds", "max_future": "1 hour"},
        "aggregates": aggregates or {"n": "count()", "total": "sum(price)"},
        "windows": {"w": window or {"kind": "delta", "attribute": "miles", "delta": 10}},
    }
    return find_demands(load_pipeline(spec), COLUMNS, micros(ARRIVAL))


def find(demands: Demands | None, *files: Path) -> CleanBatch | None:
    """What the files show."""
    assert demands is not None
    return find_clean_batch([Location(str(file)) for file in files], demands)


def write(folder: Path, rows: Sequence[Mapping[str, Any]], **how: Any) -> Path:
    """A file of its own with the rows."""
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    columns = how.pop("columns", FILE)
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema=columns), path, **how)
    return path


def judge(rows: Sequence[Mapping[str, Any]]) -> CleanBatch | None:
    """The rows by plain loops, where times are in `at`."""
    for row in rows:
        if row["user"] is None or row["at"] is None or row["miles"] is None:
            return None
        if not isfinite(row["miles"]) or not (row["price"] is None or isfinite(row["price"])):
            return None
        if not MODERN <= row["at"] <= LAST:
            return None
    times = [(row["at"] - EPOCH) // timedelta(microseconds=1) for row in rows]
    return CleanBatch(len(rows), min(times, default=None), max(times, default=None))


usually_good = {
    "user": st.sampled_from(["ann", "bob", "eve"]),
    "at": st.integers(micros(MODERN), micros(ARRIVAL)).map(moment),
    "ms": st.just(7),
    "miles": st.floats(-100, 100),
    "price": st.none() | st.floats(-100, 100),
}
bad_values = st.sampled_from(
    [
        {"user": None},
        {"at": None},
        {"at": LAST + timedelta(microseconds=1)},
        {"at": MODERN - timedelta(microseconds=1)},
        {"at": datetime(3, 1, 1, tzinfo=UTC)},
        {"miles": None},
        {"miles": nan},
        {"miles": inf},
        {"price": nan},
        {"price": -inf},
        # These are good.
        {"at": LAST},
        {"at": MODERN},
        {"price": None},
        {},
    ]
)
writers = st.fixed_dictionaries(
    {
        "write_statistics": st.sampled_from([True, False, ["user"], ["at", "miles"]]),
        "use_deprecated_int96_timestamps": st.booleans(),
        "row_group_size": st.sampled_from([1, 3, 1000]),
        "use_dictionary": st.booleans(),
    }
)


@given(
    files=st.lists(
        st.tuples(st.lists(st.fixed_dictionaries(usually_good), max_size=6), writers), max_size=3
    ),
    bad=bad_values,
    where=st.integers(0, 20),
)
def test_files_are_clean_if_and_only_if_every_row_is(
    files: list[tuple[list[dict[str, Any]], dict[str, Any]]], bad: dict[str, Any], where: int
) -> None:
    every = [row for rows, _ in files for row in rows]
    if every:
        every[where % len(every)].update(bad)
    with TemporaryDirectory() as folder:
        paths = [write(Path(folder), rows, **how) for rows, how in files]
        assert find(demands_of(), *paths) == judge(every)


@pytest.mark.parametrize("statistics", [True, False])
def test_numbers_count_from_1970_in_their_unit(tmp_path: Path, *, statistics: bool) -> None:
    demands = demands_of({"column": "ms", "unit": "ms"})
    first = write(tmp_path, [GOOD | {"ms": 5}], write_statistics=statistics)
    last = write(tmp_path, [GOOD | {"ms": -3}], write_statistics=statistics)
    assert find(demands, first, last) == CleanBatch(2, -3_000, 5_000)
    too_old = write(tmp_path, [GOOD | {"ms": FIRST_US // 1_000 - 1}])
    assert find(demands, first, too_old) is None
    in_seconds = demands_of({"column": "ms", "unit": "s"})
    beyond_64_bits = write(tmp_path, [GOOD | {"ms": 2**62}])
    assert find(in_seconds, beyond_64_bits) is None


def test_rows_that_happen_when_they_arrive(tmp_path: Path) -> None:
    demands = demands_of("arrival")
    some = write(tmp_path, [GOOD | {"at": None}])
    arrival = micros(ARRIVAL)
    assert find(demands, some) == CleanBatch(1, arrival, arrival)
    assert find(demands, write(tmp_path, [])) == CleanBatch(0, None, None)
    assert find(demands, write(tmp_path, [GOOD | {"user": None}])) is None


def test_bad_values_that_count_as_null_are_nothing_wrong(tmp_path: Path) -> None:
    tumbling = {"kind": "tumbling", "size": "1 hour"}
    bad = write(tmp_path, [GOOD | {"price": nan}])
    assert find(demands_of(window=tumbling), bad) is None
    found = find(demands_of(source={"on_bad_value": "null"}, window=tumbling), bad)
    assert found == CleanBatch(1, micros(ARRIVAL), micros(ARRIVAL))


@pytest.mark.parametrize(
    "fields",
    [
        {"event_time": "text", "source": {"zone": "UTC"}},
        {"event_time": {"column": "price", "unit": "s"}},
        {"source": {"where": "price > 1"}},
        {"source": {"columns": {"cents": "cast(price * 100 as bigint)"}}},
        {"event_time": "trip.at"},
        {"source": {"key": ["trip.user"]}},
        {"aggregates": {"total": "sum(trip.price)"}},
        {"aggregates": {"total": "sum(text)"}},
    ],
)
def test_what_only_rows_can_show(fields: dict[str, Any]) -> None:
    assert demands_of(**fields) is None


def test_a_column_that_the_file_lacks(tmp_path: Path) -> None:
    no_miles = FILE.remove(FILE.get_field_index("miles"))
    assert find(demands_of(), write(tmp_path, [GOOD], columns=no_miles)) is None


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("ms", "UTC"), pa.int64()])
def test_a_time_that_the_file_has_in_another_type(tmp_path: Path, kind: pa.DataType) -> None:
    other = FILE.set(FILE.get_field_index("at"), pa.field("at", kind))
    value = 5 if kind == pa.int64() else GOOD["at"]
    assert find(demands_of(), write(tmp_path, [GOOD | {"at": value}], columns=other)) is None


def test_a_file_that_is_damaged_or_gone(tmp_path: Path) -> None:
    good = write(tmp_path, [GOOD])
    assert find(demands_of(), tmp_path / "gone.parquet", good) is None
    (damaged := tmp_path / "damaged.parquet").write_bytes(good.read_bytes()[:-20])
    assert find(demands_of(), good, damaged) is None


def test_more_than_this_process_reads_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two columns of fractions have to be read, so that is four values."""
    good = write(tmp_path, [GOOD, GOOD])
    assert find(demands_of(), good) is not None
    monkeypatch.setattr(clean_files, "MOST_VALUES", 3)
    assert find(demands_of(), good) is None
    monkeypatch.setattr(clean_files, "MOST_VALUES", 4)
    monkeypatch.setattr(clean_files, "MOST_FILES", 1)
    assert find(demands_of(), good) is not None
    assert find(demands_of(), good, good) is None


@pytest.mark.parametrize("with_statistics", [True, False])
@pytest.mark.parametrize("struct_first", [True, False])
def test_a_field_of_a_struct_is_not_taken_for_a_column_of_its_path(
    tmp_path: Path, *, struct_first: bool, with_statistics: bool
) -> None:
    """The field is right, and the column of event times is not."""
    columns = [("a.at", pa.timestamp("us", "UTC")), ("a", pa.struct({"at": FILE.field("at").type}))]
    schema = pa.schema([("user", pa.string()), *(columns[::-1] if struct_first else columns)])
    whole = T.StructType([*COLUMNS.fields, T.StructField("a.at", T.TimestampType())])
    source = {"table": "/source", "event_time": "`a.at`", "key": ["user"]}
    spec = {
        "name": "p",
        "lake": "/none",
        "source": source,
        "aggregates": {"n": "count()"},
        "windows": {"w": {"kind": "tumbling", "size": "1 hour"}},
    }
    demands = find_demands(load_pipeline(spec), whole, micros(ARRIVAL))
    right, wrong = {"at": ARRIVAL}, {"at": None}
    for time, field, expected in (
        (ARRIVAL, wrong, CleanBatch(1, micros(ARRIVAL), micros(ARRIVAL))),
        (None, right, None),
    ):
        rows = [{"user": "ann", "a.at": time, "a": field}]
        file = write(tmp_path, rows, columns=schema, write_statistics=with_statistics)
        assert find(demands, file) == expected
