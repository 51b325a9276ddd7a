"""What is inside structs, arrays and maps is taken as columns are: fitting, refused or rescued."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.drop_folder import DropFolder
from windowing.errors import SpecError

FIRST = {"k": "a", "r": {"temp": 1.5, "c": 2}, "l": [1, 2]}
DEEP = "'struct<a:struct<n:bigint,at:timestamp>,p:decimal(5,2),l:array<bigint>>'"


def lines(*records: dict[str, Any] | str) -> str:
    return "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in records)


def rows_of(spark: SparkSession, drop: DropFolder, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of the source table in order, structs as plain tuples."""
    return [tuple(row) for row in drop.rows(spark, *columns)]


@pytest.mark.slow
def test_values_inside_a_struct_are_refused_as_those_of_columns_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    drop = DropFolder(tmp_path, {"format": "json"})
    drop.land("1.json", lines(FIRST, FIRST))
    drop.take(spark)
    assert '  r: "struct<c:bigint,temp:double>"\n' in drop.pinned.read_text()
    broken: dict[str, Any] = {
        "r.temp is no double": {"temp": "hot", "c": 2},
        "r.c is no bigint": {"temp": 2.5, "c": 2.5},
        "r is no struct<c:bigint,temp:double>": "text",
    }
    wrong = [{"k": why, "r": value} for why, value in broken.items()]
    wrong.append({"k": "r.c is no bigint", "r": {"c": 2**63}})
    wrong.append({"k": "l is no array<bigint>", "l": [1, "x"]})
    wrong.append({"k": "r is no struct<c:bigint,temp:double>", "r": [1]})
    right = [
        {"k": "new", "r": {"temp": 2, "c": 3, "new": 7, "Temp": {"x": [1.5, None]}}},
        {"k": "null", "r": None, "l": None},
        {"k": "part", "r": {"c": None}, "l": [None]},
        {"k": "none", "extra": 5},
    ]
    twice = '{"k": "twice", "r": {"c": 1, "c": 2}}'
    drop.land("2.json", lines(*right, *wrong, twice))
    done = drop.take(spark)
    assert (done.appended, done.quarantined) == (len(right), len(wrong) + 1)
    assert done.not_pinned == ("extra", "r.Temp", "r.new")
    whys = [(json.loads(text or "")["k"], why) for _, text, why in drop.quarantine(spark)]
    assert sorted(whys) == sorted(
        [(str(each["k"]), str(each["k"])) for each in wrong]
        + [("twice", "has a name twice in an object inside")]
    )
    found = {row[0]: row[1:] for row in drop.rows(spark, "k", "r", "l", "rescued")}
    assert found["a"] == ((2, 1.5), [1, 2], None)
    assert found["null"] == (None, None, None)
    assert found["part"] == ((None, None), [None], None)
    assert found["none"] == (None, None, '{"extra":5}')
    assert found["new"][:2] == ((3, 2.0), None)
    assert json.loads(found["new"][2]) == {"r": {"new": 7, "Temp": {"x": [1.5, None]}}}


@pytest.mark.slow
def test_unfit_values_and_unknown_fields_at_any_depth_are_rescued(
    spark: SparkSession, tmp_path: Path
) -> None:
    drop = DropFolder(tmp_path, {"format": "json", "on_unfit_value": "rescue"})
    drop.pin(k="string", r=DEEP, s="'array<struct<x:int>>'", m="'map<string,struct<x:int>>'")
    at = "2026-01-01T00:00:00Z"
    given: dict[str, dict[str, Any]] = {
        "right": {"r": {"a": {"n": 1, "at": at}, "p": 1.25, "l": [1]}, "s": [{"x": 1}]},
        "leaf": {"r": {"a": {"n": "x", "at": at}, "p": 1.255}},
        "inside": {"r": {"a": 5, "l": ["x", 1]}},
        "list": {"s": [{"x": 1}, {"x": 2, "y": {"z": 3}}], "m": {"u": {"x": 1, "y": 2}}},
        "unfit": {"s": [{"x": 1}, {"x": "x"}], "m": {"u": 5}},
        "text": {"s": "text", "r": '{"p": 2}', "m": [1]},
    }
    drop.land("1.json", lines(*({"k": k, **each} for k, each in given.items())))
    assert drop.take(spark).quarantined == 0
    found = {row[0]: row[1:] for row in drop.rows(spark, "k", "r", "s", "m", "rescued")}
    rest = {k: None if row[3] is None else json.loads(row[3]) for k, row in found.items()}
    assert rest == {
        "right": None,
        "leaf": {"r": {"a": {"n": "x"}, "p": 1.255}},
        "inside": {"r": {"a": 5, "l": ["x", 1]}},
        "list": {"s": [None, {"y": {"z": 3}}], "m": {"u": {"y": 2}}},
        "unfit": {"s": [{"x": 1}, {"x": "x"}], "m": {"u": 5}},
        "text": {"s": "text", "m": [1]},
    }
    assert found["right"][0].p == Decimal("1.25")
    assert found["right"][0].a.at.year == 2026
    assert found["leaf"][0].a.n is None
    assert found["leaf"][0].a.at == found["right"][0].a.at
    assert found["inside"][0] == (None, None, None)
    assert found["list"][1:3] == ([(1,), (2,)], {"u": (1,)})
    assert found["unfit"][1:3] == (None, None)
    assert found["text"][0].p == Decimal("2.00")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["fail", "add"])
def test_an_unknown_field_inside_a_struct_stops_or_is_rescued(
    way: str, spark: SparkSession, tmp_path: Path
) -> None:
    drop = DropFolder(tmp_path, {"format": "json", "on_new_column": way})
    drop.pin(k="string", r="'struct<a:array<struct<x:int>>>'")
    drop.land("1.json", lines({"k": "1", "r": {"a": [{"x": 1, "new": 2}]}}))
    if way == "fail":
        with pytest.raises(SpecError, match=r"has not: r\.a\.new;"):
            drop.take(spark)
        assert drop.record() == []
        return
    done = drop.take(spark)
    assert (done.added, done.not_pinned) == ((), ("r.a.new",))
    assert drop.rows(spark, "rescued") == [('{"r":{"a":[{"new":2}]}}',)]


@pytest.mark.slow
def test_nested_types_of_parquet_files_are_found_by_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    drop = DropFolder(tmp_path, {"format": "parquet"})
    drop.pin(k="string", r="'struct<a:bigint,b:string>'", l="'array<bigint>'", n="bigint")
    files: dict[str, dict[str, Any]] = {
        "same": {"r": [{"a": 1, "b": "x"}], "l": [[1]]},
        "order": {"r": [{"b": "x", "a": 1}]},
        "less": {"r": [{"a": 1}]},
        "more": {"r": [{"a": 1, "b": "x", "c": {"d": 1.5}}], "extra": [7]},
        "int": {"r": pa.array([{"a": 1}], pa.struct({"a": pa.int32()})), "l": [[1.0]]},
        "fraction": {"r": [{"a": 1.5, "b": "x"}]},
        "list": {"l": [[1.5]]},
        "scalar": {"r": [5]},
        "day": {"n": pa.array([1], pa.date32())},
        "nested": {"n": [{"a": 1}]},
    }
    for name, columns in files.items():
        table = pa.table({"k": [name], **columns})
        pq.write_table(table, drop.folder / f"{name}.parquet")
    alike = pa.array([{"a": 1, "A": 2}], pa.struct({"a": pa.int64(), "A": pa.int64()}))
    pq.write_table(pa.table({"k": ["case"], "r": alike}), drop.folder / "case.parquet")
    drop.take(spark)
    assert rows_of(spark, drop, "k", "r", "l", "rescued") == [
        ("int", (1, None), [1], None),
        ("less", (1, None), None, None),
        ("more", (1, "x"), None, '{"extra":7,"r":{"c":{"d":1.5}}}'),
        ("order", (1, "x"), None, None),
        ("same", (1, "x"), [1], None),
    ]
    assert [(file.partition(".")[0], why) for file, _, why in drop.quarantine(spark)] == [
        ("case", "has names that differ by case alone, which Spark does not read"),
        ("day", "n is no bigint"),
        ("fraction", "r.a is no bigint"),
        ("list", "l is no array<bigint>"),
        ("nested", "n is no bigint"),
        ("scalar", "r is no struct<a:bigint,b:string>"),
    ]


@pytest.mark.slow
def test_names_that_a_table_can_not_have_inside_a_struct_are_rescued(
    spark: SparkSession, tmp_path: Path
) -> None:
    drop = DropFolder(tmp_path, {"format": "json"})
    drop.land("1.json", lines({"k": "a", "r": {"x": 1, "a b": 2, "X": 3}, "only": {"c,d": 1}}))
    done = drop.take(spark)
    assert done.quarantined == 0
    (row,) = drop.rows(spark, "r", "only", "rescued")
    assert json.loads(row[1]) == {"c,d": 1}
    assert len(row[0]) == 1
    kept = {"x", "X"} & set(row[0].asDict())
    (left,) = {"x", "X"} - kept
    assert json.loads(row[2]) == {"r": {"a b": 2, left: {"x": 1, "X": 3}[left]}}


def test_numbers_of_json_have_one_form_in_cells_of_any_csv(
    spark: SparkSession, tmp_path: Path
) -> None:
    form = {"delimiter": ";", "decimal": ",", "thousands": ".", "nulls": ["-999"]}
    drop = DropFolder(tmp_path, form)
    drop.pin(id="bigint", price="double", r="'struct<temp:double,n:bigint,m:map<int,int>>'")
    cells = [
        '1;1.234,5;{"temp": 1.234, "n": 1.234}',
        '2;-999;{"temp": 1.234, "n": -999}',
        '3;2;{"temp": -999, "n": 7}',
        '4;2;{"m": {"1.234": 5}}',
    ]
    drop.land("1.csv", "id;price;r\n" + "\n".join(cells) + "\n")
    drop.take(spark)
    whys = sorted(why for _, _, why in drop.quarantine(spark))
    assert whys == ["r.m is no map<int,int>", "r.n is no bigint"]
    assert rows_of(spark, drop, "id", "price", "r.temp", "r.n") == [
        (2, None, 1.234, None),
        (3, 2.0, None, 7),
    ]
