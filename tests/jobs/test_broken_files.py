"""Files as they come: each kind, broken or odd, has one outcome for each of its records.

All of them lie in one folder and are taken at once, so none of them disturbs another.
"""

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.drop_folder import DropFolder
from windowing.ingest.rule import has_format

HEAD = "id,place,at,price\n"
ROW = "1,a,2026-03-02T10:05:00Z,1.50\n"
OTHER = "2,b,2026-03-02T10:06:00Z,2.50\n"
TOO_LONG = "has a value of more than 131,072 characters in its first record, "
ZIPPED = gzip.compress((HEAD + ROW * 2000 + OTHER * 2000).encode())


@dataclass(frozen=True)
class Case:
    """A file, the ids of its rows, and the reasons for its other records, both in order."""

    content: str | bytes
    ids: list[int | None]
    reasons: list[str]


CSV = {
    "usual.csv": Case(HEAD + ROW + OTHER, [1, 2], []),
    "empty.csv": Case("", [], []),
    "blank lines only.csv": Case("\n\n \n", [], []),
    "header only.csv": Case(HEAD, [], []),
    "no line feed at the end.csv": Case(HEAD + ROW.strip(), [1], []),
    "blank lines between.csv": Case(f"{HEAD}\n{ROW}\n\n{OTHER}", [1, 2], []),
    "windows line ends.csv": Case((HEAD + ROW + OTHER).replace("\n", "\r\n"), [1, 2], []),
    "byte order mark.csv": Case(b"\xef\xbb\xbf" + (HEAD + ROW).encode(), [1], []),
    "byte order mark.csv.gz": Case(gzip.compress(b"\xef\xbb\xbf" + (HEAD + ROW).encode()), [1], []),
    "quoted header.csv": Case('"id","place","at","price"\n' + ROW, [1], []),
    "other order.csv": Case("price,id\n1.50,1\n", [1], []),
    "header twice.csv": Case(HEAD + ROW + HEAD + OTHER, [1, 2], []),
    "column twice.csv": Case("id,place,place\n1,a,b\n", [1], []),
    "column without a name.csv": Case("id,place,\n1,a,\n", [1], []),
    "quoted delimiter.csv": Case(HEAD + '1,"a, b",,1.50\n', [1], []),
    "doubled quotes.csv": Case(HEAD + '1,"a ""b""",,\n', [1], []),
    "quote before quotes.csv": Case(HEAD + '1,"a,"" b","",\n' + OTHER, [1, 2], []),
    "quotes before the end of quotes.csv": Case(HEAD + '1,"so ""a,""",,\n2,"a, """,,', [1, 2], []),
    "inches.csv": Case(HEAD + '1,5" nail,,\n', [1], []),
    "inches before quotes.csv": Case('id,x,place\n1,5" nail,"a, """\n', [1], []),
    "inches before an open quote.csv": Case(
        'id,x,place\n1,5" nail,"a\n2,"5"" nail","a"\n', [2], ["has a quote that is not closed"]
    ),
    "no values.csv": Case(HEAD + ",,,\n", [None], []),
    "spaces.csv": Case(HEAD + " 1 , a , 2026-03-02T10:05:00Z , 1.50 \n", [1], []),
    "zipped.csv.gz": Case(ZIPPED, [1] * 2000 + [2] * 2000, []),
    "two parts.csv.gz": Case(
        gzip.compress((HEAD + ROW).encode()) + gzip.compress(OTHER.encode()), [1, 2], []
    ),
    "no gzip.csv.gz": Case(HEAD + ROW, [], ["is not compressed by gzip, as its name says"]),
    "cut off.csv.gz": Case(
        ZIPPED[: len(ZIPPED) // 2], [], ["ends in the middle of what gzip has compressed"]
    ),
    "no header.csv": Case(ROW + OTHER, [], ["has none of the columns in trips.yaml"]),
    "other delimiter.csv": Case(
        (HEAD + ROW).replace(",", ";"), [], ["has none of the columns in trips.yaml"]
    ),
    "too few values.csv": Case(HEAD + "1,a\n" + OTHER, [2], ["has not 4 values"]),
    "too many values.csv": Case(HEAD + "1,a,b,c,d\n" + OTHER, [2], ["has not 4 values"]),
    "open quote.csv": Case(
        HEAD + '1,"a,2026-03-02T10:05:00Z,1.50\n' + OTHER, [2], ["has not 4 values"]
    ),
    "open quote at the end.csv": Case(
        "id,place\n" + '1,"a\n2,b\n', [2], ["has a quote that is not closed"]
    ),
    "quoted line feed.csv": Case(
        "id,place\n" + '1,"a\nb"\n2,b\n',
        [2],
        ["has a quote that is not closed", "has not 2 values"],
    ),
    "no number.csv": Case(HEAD + "x,a,,\n1.5,a,,\n" + OTHER, [2], ["id is no bigint"] * 2),
    "too large.csv": Case(HEAD + f"{2**63},a,,\n" + OTHER, [2], ["id is no bigint"]),
    "more decimals.csv": Case(HEAD + "1,a,,1.505\n" + OTHER, [2], ["price is no decimal(10,2)"]),
    "zeros behind.csv": Case(HEAD + "1,a,,1.50000\n", [1], []),
    "decimal comma.csv": Case(HEAD + '1,a,,"1,5"\n', [], ["price is no decimal(10,2)"]),
    "no time.csv": Case(HEAD + "1,a,noon,\n", [], ["at is no timestamp"]),
    "time of day.csv": Case(HEAD + "1,a,10:05:00Z,\n", [], ["at is no timestamp"]),
    "local time.csv": Case(HEAD + "1,a,2026-03-02 10:05:00,\n", [], ["at is no timestamp"]),
    "no such day.csv": Case(HEAD + "1,a,2026-02-30T10:05:00Z,\n", [], ["at is no timestamp"]),
    "latin.csv": Case(HEAD.encode() + b"1,caf\xe9,,\n", [], ["has bytes that are not utf-8"]),
    "nul.csv": Case(HEAD + "1,a\0b,,\n", [1], []),
    "binary.csv": Case(bytes(range(128, 256)), [], ["has none of the columns in trips.yaml"]),
    "open quote in the header.csv": Case(
        '"id,place\n' + OTHER * 6000, [], [TOO_LONG + "as where a quote is not closed"]
    ),
    "blank values before the header.csv": Case(",\n" + "id,place\n1,a\n", [None, 1], []),
    "long line.csv": Case(HEAD + f"1,{'x' * 100_000},,\n", [1], []),
    "odd [name] {1} *?.csv": Case(HEAD + ROW, [1], []),
    "100% + ä:b.csv": Case(HEAD + ROW, [1], []),
    "sub folder/a b.csv": Case(HEAD + ROW, [1], []),
}
JSON = {
    "usual.json": Case('{"id": 1, "place": "a"}\n{"place": "b", "id": 2}\n', [1, 2], []),
    "empty.json": Case("", [], []),
    "blank.jsonl": Case("\n \n", [], []),
    "unicode.jsonl": Case('{"id": 1, "place": "\\u00e9\\ud83d\\ude00"}\n', [1], []),
    "mark.jsonl": Case(b'\xef\xbb\xbf{"id": 1}\n', [1], []),
    "zipped.json.gz": Case(gzip.compress(b'{"id": 1}\n'), [1], []),
    "cut off.json": Case('{"id": 1}\n{"id": 2, "pl', [1], ["is no JSON object"]),
    "no object.json": Case('[1, 2]\n"text"\n5\nnull\n{}\n', [None], ["is no JSON object"] * 4),
    "more behind.json": Case('{"id": 1} x\n{"id": 2}\n', [2], ["is no JSON object"]),
    "text.json": Case('{"id": "1"}\n{"id": "x"}\n', [1], ["id is no bigint"]),
    "nothing.json": Case('{"id": null}\n', [None], []),
    "other key twice.json": Case(
        '{"id": 1, "x": 1, "x": 2}\n{"id": 2}\n', [2], ["has a name twice"]
    ),
    "key twice.json": Case('{"id": 1, "id": 2}\n', [], ["has a name twice"]),
    "exact.json": Case('{"id": 1, "price": 12345678.90}\n', [1], []),
    "nested.json": Case('{"id": 1, "more": {"a": [1, {"b": null}]}}\n', [1], []),
    "latin.json": Case(b'{"id": 1, "place": "caf\xe9"}\n', [], ["has bytes that are not utf-8"]),
}

NO_LIST = "is no JSON object and no list of them"
INSIDE = "has a name twice in an object inside"
DOCUMENTS = {
    "list.json": Case('\ufeff [{"id": 1},\r\n {"id": 2}]\n', [1, 2], []),
    "object.json": Case('{"id": 1}\n\n', [1], []),
    "two lists.json": Case('[{"id": 1}]\n[{"id": 2}]\n', [], [NO_LIST]),
    "object behind a list.json": Case('[{"id": 1}] {"id": 2}', [], [NO_LIST]),
    "two objects.json": Case('{"id": 1}\n{"id": 2}', [], [NO_LIST]),
    "cut off.json": Case('[{"id": 1}, {"id": ', [], [NO_LIST]),
    "null in a list.json": Case('[{"id": 1}, null]', [1], [NO_LIST]),
    "empty list.json": Case("[]", [], []),
    "name twice.json": Case('[{"id": 1, "id": 2}, {"id": 3}]', [3], ["has a name twice"]),
    "name twice inside.json": Case('[{"id": 1}, {"x": {"a": 1, "a": 2}}]', [], [INSIDE]),
    "marks in a text.json": Case('[{"id": 1, "place": "\u00e9\ufeff\u2003b"}]', [1], []),
}


def take_all(
    spark: SparkSession, root: Path, cases: dict[str, Case], settings: dict[str, object]
) -> DropFolder:
    """All files taken at once; records read are rows and what is quarantined."""
    drop = DropFolder(root, settings)
    drop.pin(id="bigint", place="string", at="timestamp", price="'decimal(10,2)'")
    for name, case in cases.items():
        drop.land(name, case.content)
    done = drop.take(spark)
    assert len(done.files) == sum(len(case.content) > 0 for case in cases.values())
    assert done.read == sum(len(case.ids) + len(case.reasons) for case in cases.values())
    return drop


def check(spark: SparkSession, drop: DropFolder, cases: dict[str, Case]) -> None:
    rows, broken = drop.rows(spark, "source_file", "id"), drop.quarantine(spark)
    found = {}
    for name in cases:
        reasons = [why.partition(" (")[0] for file, _, why in broken if file == name]
        if any("decimal" in why for file, _, why in broken if file == name):
            reasons = [why for file, _, why in broken if file == name]
        ids = [number for file, number in rows if file == name]
        found[name] = (sorted(ids, key=str), sorted(reasons))
    expected = {name: (sorted(c.ids, key=str), sorted(c.reasons)) for name, c in cases.items()}
    assert found == expected


@pytest.mark.slow
def test_every_kind_of_csv_file_has_its_outcome(spark: SparkSession, tmp_path: Path) -> None:
    drop = take_all(spark, tmp_path, CSV, {})
    check(spark, drop, CSV)
    values = dict(drop.rows(spark, "source_file", "place"))
    assert values["quoted delimiter.csv"] == "a, b"
    assert values["doubled quotes.csv"] == 'a "b"'
    assert values["inches.csv"] == '5" nail'
    assert values["spaces.csv"] == " a "
    texts = {file: text for file, text, _ in drop.quarantine(spark)}
    assert texts["too few values.csv"] == "1,a"
    assert texts["open quote.csv"] == '1,"a,2026-03-02T10:05:00Z,1.50'
    assert texts["cut off.csv.gz"] is None
    rest = dict(drop.rows(spark, "source_file", "rescued"))
    assert rest["column twice.csv"] == '{"place_2":"b"}'
    assert rest["column without a name.csv"] is None
    # Nothing of these is taken again, whatever became of them.
    assert drop.take(spark).files == ()


@pytest.mark.slow
def test_every_kind_of_json_file_has_its_outcome(spark: SparkSession, tmp_path: Path) -> None:
    drop = take_all(spark, tmp_path, JSON, {"format": "json"})
    check(spark, drop, JSON)
    values = dict(drop.rows(spark, "source_file", "place"))
    assert values["unicode.jsonl"] == "é😀"
    assert str(dict(drop.rows(spark, "source_file", "price"))["exact.json"]) == "12345678.90"
    rest = dict(drop.rows(spark, "source_file", "rescued"))
    assert rest["nested.json"] == '{"more":{"a":[1,{"b":null}]}}'


@pytest.mark.slow
def test_every_kind_of_json_document_has_its_outcome(spark: SparkSession, tmp_path: Path) -> None:
    drop = take_all(spark, tmp_path, DOCUMENTS, {"format": "json", "multiline": True})
    check(spark, drop, DOCUMENTS)
    places = dict(drop.rows(spark, "source_file", "place"))
    assert places["marks in a text.json"] == "\u00e9\ufeff\u2003b"


@pytest.mark.slow
def test_every_kind_of_parquet_file_has_its_outcome(spark: SparkSession, tmp_path: Path) -> None:
    drop = DropFolder(tmp_path, {"format": "parquet"})
    drop.pin(id="bigint", place="string")
    good = {"id": [1, 2], "place": ["a", "b"]}
    files = {
        "usual.parquet": good,
        "other type.parquet": {"id": pa.array([1, 2], pa.int32()), "place": ["a", "b"]},
        "fractions.parquet": {"id": [1.0, 2.5]},
        "more.parquet": {"id": [1], "extra": [{"a": 1}]},
        "stranger.parquet": {"x": [1]},
        "no rows.parquet": {"id": pa.array([], pa.int64())},
    }
    for name, columns in files.items():
        pq.write_table(pa.table(columns), drop.folder / name)
    at = pa.array([1], pa.timestamp("ns"))
    pq.write_table(pa.table({"id": [1], "at": at}), drop.folder / "nanoseconds.parquet")
    pq.write_table(
        pa.table({"id": [1], "at": pa.array([1], pa.time32("ms"))}), drop.folder / "clock.parquet"
    )
    whole = (drop.folder / "usual.parquet").read_bytes()
    drop.land("cut off.parquet", whole[:-20])
    drop.land("empty.parquet", b"")
    drop.land("footer.parquet", whole[:-60] + b"\xff" * 50 + whole[-10:])
    drop.land("damaged.parquet", b"PAR1" + b"\xff" * 40 + whole[44:])
    drop.land("text.parquet", "id\n1\n")
    done = drop.take(spark)
    assert (len(done.files), done.read) == (12, 14)
    assert drop.rows(spark, "source_file", "id") == [
        ("fractions.parquet", 1),
        ("more.parquet", 1),
        ("other type.parquet", 1),
        ("other type.parquet", 2),
        ("usual.parquet", 1),
        ("usual.parquet", 2),
    ]
    assert [(file, why.partition(" (")[0]) for file, _, why in drop.quarantine(spark)] == [
        ("clock.parquet", "has a column of a type that Spark does not read"),
        ("cut off.parquet", "is not a Parquet file, or is not complete"),
        ("damaged.parquet", "is a Parquet file with damaged pages"),
        ("footer.parquet", "is not a Parquet file, or is not complete"),
        ("fractions.parquet", "id is no bigint"),
        (
            "nanoseconds.parquet",
            "has times in nanoseconds, which Spark does not read; write them as us",
        ),
        ("stranger.parquet", "has none of the columns in trips.yaml"),
        ("text.parquet", "is not a Parquet file, or is not complete"),
    ]
    assert dict(drop.rows(spark, "source_file", "rescued"))["more.parquet"] == '{"extra":{"a":1}}'


SETTINGS: dict[str, tuple[dict[str, Any], str | bytes, list[tuple[Any, ...]], list[str]]] = {
    "euro": (
        {"delimiter": ";", "decimal": ",", "thousands": ".", "nulls": ["NA"]},
        "id;place;price\n1;a;1.234,50\n2;b;NA\n3;c;1.2,5\nNA;d;7\n",
        [(1, "1234.50"), (2, None), (None, "7.00")],
        ["price is no decimal(10,2)"],
    ),
    "tabs": ({"delimiter": "\t"}, "id\tplace\tprice\n1\ta\t2\n", [(1, "2.00")], []),
    "escapes": (
        {"escape": "\\", "quote": "'"},
        "id,place,price\n1,'it\\'s, so',2\n3,'so,',4\n5,a,'6\\\n",
        [(1, "2.00"), (3, "4.00")],
        ["has a quote that is not closed"],
    ),
    "latin": (
        {"encoding": "windows-1252"},
        "id,place,price\n1,caf\xe9 \x80,2\n".encode("latin-1"),
        [(1, "2.00")],
        [],
    ),
    "no header": ({"header": False}, "1,a,2\n3,b,4\n", [(1, "2.00"), (3, "4.00")], []),
    "spans": (
        {"multiline": True},
        '\ufeffid,place,price\r\n1,"a\r\nb, ""c""",2\r\n2,b\r\n',
        [(1, "2.00")],
        ["has not 3 values"],
    ),
    "spans without an end": (
        {"multiline": True},
        'id,price,place\n1,2,"a\n3,4,b\n',
        [],
        ["has a quote that is not closed"],
    ),
    "rescue": (
        {"on_unfit_value": "rescue"},
        "id,place,price\nx,a,1.505\n2,b,3\n",
        [(None, None), (2, "3.00")],
        [],
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.deep
def test_forms_of_csv(name: str, spark: SparkSession, tmp_path: Path) -> None:
    settings, content, rows, reasons = SETTINGS[name]
    drop = DropFolder(tmp_path, settings)
    drop.pinned.parent.mkdir()
    numbered = "" if name != "no header" else "column_{}"
    lines = [
        f"  {column}: {{type: '{kind}', from: {numbered.format(n) or column}}}"
        for n, (column, kind) in enumerate(
            [("id", "bigint"), ("place", "string"), ("price", "decimal(10,2)")], 1
        )
    ]
    drop.pinned.write_text("columns:\n" + "\n".join(lines) + "\n")
    drop.land("a.csv", content)
    drop.take(spark)
    found = drop.rows(spark, "id", "price")
    shown = [(number, None if price is None else str(price)) for number, price in found]
    assert sorted(shown, key=repr) == sorted(rows, key=repr)
    assert [why for _, _, why in drop.quarantine(spark)] == reasons
    if name in ("escapes", "latin", "spans"):
        expected = {"escapes": "it's, so", "latin": "café €", "spans": 'a\nb, "c"'}
        assert drop.rows(spark, "place")[0][0] == expected[name]
    if name == "rescue":
        assert drop.rows(spark, "rescued") == [('{"id":"x","price":"1.505"}',), (None,)]


def test_all_cases_have_the_names_of_their_format() -> None:
    assert all(has_format(name, "csv") for name in CSV)
    assert all(has_format(name, "json") for name in JSON)
    assert len(CSV) + len(JSON) >= 30
