"""Random records with structs, lists and maps: rows and reasons are those of a plain loop."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import FILE, RECORD, WHY
from windowing.ingest.columns import PinnedColumn
from windowing.ingest.fit import find_rescued, fit_rows
from windowing.ingest.frame import split_json
from windowing.spec.pipeline import CsvForm
from windowing.storage import delta

TYPES = {
    "n": "bigint",
    "r": "struct<i:bigint,d:double,s:string,b:boolean,p:decimal(5,2),at:timestamp,i t:int>",
    "deep": "struct<r:struct<i:bigint,r:struct<d:double>>,l:array<bigint>>",
    "l": "array<struct<i:bigint,l:array<double>,m:map<string,int>>>",
    "ll": "array<array<bigint>>",
    "m": "map<string,struct<i:bigint>>",
    "k": "map<int,string>",
}
WRITTEN = {**TYPES, "r": TYPES["r"].replace("i t", "`i t`")}
AT = "2026-01-01T00:00:00Z"
SCALARS: Sequence[Any] = (
    *(None, 1, -7, 2.5, 1.255, 2**63, -(2**63), "hot", "7", " 8 ", "", AT, True, False),
    *("1e400", "-1e400", "Infinity"),
    *({"x": 1}, [1]),
)
NAMES = ("i", "d", "s", "b", "p", "at", "i t", "r", "l", "m", "new", "I", "1", "01", "it's")


@dataclass(frozen=True)
class Unfit(Exception):
    """Raised for a value that is none of its type; the reason."""

    why: str


def told(value: Any) -> str:
    """The text that a value of JSON is."""
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def fit_plain(value: Any, kind: T.DataType, path: str, no: str) -> tuple[Any, Any]:
    """The value of the type, and what is left of it, None for nothing; Unfit where it is none."""
    if value is None:
        return None, None
    match kind:
        case T.StructType():
            if not isinstance(value, dict):
                raise Unfit(no)
            made, left = {}, {}
            for field in kind.fields:
                inside = f"{path}.{field.name}"
                wrong = f"{inside} is no {field.dataType.simpleString()}"
                part = fit_plain(value.get(field.name), field.dataType, inside, wrong)
                made[field.name], left[field.name] = part
            left |= {name: each for name, each in value.items() if name not in made}
            left = {name: each for name, each in left.items() if each is not None}
            return made, left or None
        case T.ArrayType():
            if not isinstance(value, list):
                raise Unfit(no)
            parts = [fit_plain(each, kind.elementType, path, no) for each in value]
            left_of = [left for _, left in parts]
            is_left = any(left is not None for left in left_of)
            return [each for each, _ in parts], left_of if is_left else None
        case T.MapType():
            if not isinstance(value, dict):
                raise Unfit(no)
            named = {
                name: fit_plain(value[name], kind.valueType, path, no) for name in sorted(value)
            }
            keys = [fit_scalar(name, kind.keyType, no) for name in named]
            if len(set(keys)) < len(keys) or None in keys:
                raise Unfit(no)
            left = {name: part[1] for name, part in named.items() if part[1] is not None}
            return dict(zip(keys, [part[0] for part in named.values()], strict=True)), left or None
    return fit_scalar(value, kind, no), None


def fit_scalar(value: Any, kind: T.DataType, no: str) -> Any:
    text = told(value)
    if isinstance(kind, T.StringType):
        return text
    text = text.strip()
    if not text:
        return None
    try:
        match kind:
            case T.LongType() | T.IntegerType():
                number, bits = int(text), 63 if isinstance(kind, T.LongType) else 31
                if -(2**bits) <= number < 2**bits:
                    return number
            case T.DoubleType():
                double = float(text)
                if not math.isinf(double) or text == "Infinity":
                    return double
            case T.DecimalType():
                decimal = Decimal(text)
                if abs(decimal) < 1000 and decimal == round(decimal, 2):
                    return decimal
            case T.BooleanType():
                known = {"true": True, "false": False, "1": True, "0": False}
                return known[text]
            case T.TimestampType():
                return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except (ValueError, ArithmeticError, KeyError):
        pass
    raise Unfit(no)


def expect(record: Mapping[str, Any], types: T.StructType) -> tuple[Any, Any]:
    """Row and rescued, or None and the reason."""
    try:
        made, left = {}, {}
        for field in types.fields:
            wrong = f"{field.name} is no {WRITTEN[field.name]}"
            part = fit_plain(record.get(field.name), field.dataType, field.name, wrong)
            made[field.name], left[field.name] = part
    except Unfit as unfit:
        return None, unfit.why
    left |= {name: value for name, value in record.items() if name not in made}
    return made, {name: value for name, value in left.items() if value is not None} or None


def draw(rng: Random, kind: T.DataType | None) -> Any:
    """A value that mostly has the type."""
    if kind is None or rng.random() < 0.06:
        return rng.choice(SCALARS)
    match kind:
        case T.StructType():
            known = {field.name: field.dataType for field in kind.fields}
            chosen = [name for name in known if rng.random() < 0.7]
            chosen += rng.sample(NAMES, rng.choice([0, 0, 0, 1]))
            return {name: draw(rng, known.get(name)) for name in chosen}
        case T.ArrayType():
            return [draw(rng, kind.elementType) for _ in range(rng.randrange(3))]
        case T.MapType():
            names = ["1", "2", "3"] if rng.random() < 0.9 else NAMES
            return {name: draw(rng, kind.valueType) for name in rng.sample(names, 2)}
        case T.StringType():
            return rng.choice(["a", "", "é", 5])
        case T.BooleanType():
            return rng.choice([True, False])
        case T.TimestampType():
            return AT
        case T.DoubleType() | T.DecimalType():
            return rng.choice([1, 2.5, 1.25])
    return rng.choice([1, 2, -3])


def plain(value: Any) -> Any:
    """A value of a row as plain ones."""
    match value:
        case Row():
            return {name: plain(each) for name, each in value.asDict().items()}
        case dict():
            return {name: plain(each) for name, each in value.items()}
        case list():
            return [plain(each) for each in value]
        case datetime():
            return value.astimezone(UTC)
    return value


@pytest.mark.slow
def test_random_nested_records_become_rows_as_a_plain_loop_says(spark: SparkSession) -> None:
    rng = Random(11)
    types = delta.parse_columns(", ".join(f"{name} {kind}" for name, kind in WRITTEN.items()))
    columns = [PinnedColumn(name, kind, name) for name, kind in WRITTEN.items()]
    records = []
    for _ in range(3000):
        some = rng.sample(types.fields, rng.randrange(1, 4))
        record = {field.name: draw(rng, field.dataType) for field in some}
        records.append(record | ({"extra": rng.choice(SCALARS)} if rng.random() < 0.1 else {}))
    texts = [(str(n), json.dumps(record)) for n, record in enumerate(records)]
    split = split_json(spark.createDataFrame(texts, f"{FILE} string, {RECORD} string"), TYPES)
    rows = fit_rows(split, columns, types, CsvForm(), "quarantine")
    outcomes = {row[FILE]: row for row in rows.collect()}
    kept, refused = 0, 0
    for n, record in enumerate(records):
        row = outcomes[str(n)]
        made, rest = expect(record, types)
        if made is None:
            refused += 1
            assert row[WHY] == rest, record
            continue
        kept += 1
        assert row[WHY] is None, (row[WHY], record)
        assert {name: plain(row[name]) for name in TYPES} == made, record
        found = None if row["rescued"] is None else json.loads(row["rescued"])
        assert found == rest, record
    assert min(kept, refused) > 500
    paths = {row["name"] for row in find_rescued(rows, columns, types).collect()}
    assert {"extra", "r.new", "l.new", "deep.r.new"} <= paths
    assert not paths & {"r.i", "l.i", "deep.r.r.d"}


@pytest.mark.parametrize("on_unfit_value", ["quarantine", "rescue"])
def test_a_name_twice_that_is_not_pinned_breaks_its_record_alone(
    spark: SparkSession, on_unfit_value: str
) -> None:
    texts = [("twice", '{"l": [1], "x": 1, "x": 2}'), ("once", '{"l": [2], "x": 1}')]
    columns = [PinnedColumn("l", "array<bigint>", "l")]
    types = delta.parse_columns("l array<bigint>")
    split = split_json(spark.createDataFrame(texts, f"{FILE} string, {RECORD} string"), ["l"])
    rows = fit_rows(split, columns, types, CsvForm(), on_unfit_value).collect()
    assert {row[FILE]: row[WHY] for row in rows} == {"twice": "has a name twice", "once": None}
    assert [row["rescued"] for row in rows if row[FILE] == "once"] == ['{"x":1}']


def test_a_number_beyond_those_of_a_double_is_none(spark: SparkSession) -> None:
    given = {"d": ("1e400", "-1e400", "1e308"), "r": ("1e400", "-1e400", "1e308")}
    texts = [(f"d{n}", f'{{"d": {number}}}') for n, number in enumerate(given["d"])]
    texts += [(f"r{n}", f'{{"r": {{"d": {number}}}}}') for n, number in enumerate(given["r"])]
    kinds = {"d": "double", "r": "struct<d:double>"}
    types = delta.parse_columns("d double, r struct<d:double>")
    columns = [PinnedColumn(name, kind, name) for name, kind in kinds.items()]
    split = split_json(spark.createDataFrame(texts, f"{FILE} string, {RECORD} string"), kinds)
    rows = fit_rows(split, columns, types, CsvForm(), "quarantine").collect()
    assert {row[FILE]: row[WHY] for row in rows} == {
        "d0": "d is no double", "d1": "d is no double", "d2": None,
        "r0": "r.d is no double", "r1": "r.d is no double", "r2": None,
    }  # fmt: skip


@pytest.mark.slow
def test_rescued_and_values_together_lose_nothing_of_a_record(spark: SparkSession) -> None:
    rng = Random(12)
    types = delta.parse_columns(", ".join(f"{name} {kind}" for name, kind in WRITTEN.items()))
    columns = [PinnedColumn(name, kind, name) for name, kind in WRITTEN.items()]
    records = [{f.name: draw(rng, f.dataType) for f in types.fields} for _ in range(1000)]
    texts = [(str(n), json.dumps(record)) for n, record in enumerate(records)]
    split = split_json(spark.createDataFrame(texts, f"{FILE} string, {RECORD} string"), TYPES)
    rows = fit_rows(split, columns, types, CsvForm(), "rescue")
    assert rows.where(F.col(WHY).isNotNull()).count() == 0
    for row in rows.collect():
        record = records[int(row[FILE])]
        left = json.loads(row["rescued"] or "{}")
        for name in TYPES:
            assert is_kept(record[name], plain(row[name]), left.get(name)), (name, record)


def is_kept(given: Any, made: Any, left: Any) -> bool:
    """Whether a value is told by what became of it and by what is left of it."""
    if given is None or given == left or (made is None and str(given).strip() == ""):
        return True
    if isinstance(given, dict) and isinstance(made, dict):
        by_text = {str(name): each for name, each in made.items()}
        inside = left or {}
        return all(is_kept(given[n], by_text.get(n), inside.get(n)) for n in given)
    if isinstance(given, list) and isinstance(made, list):
        inside = left or [None] * len(given)
        return all(map(is_kept, given, made, inside))
    return made is not None
