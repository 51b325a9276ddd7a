"""Parts of columns, JSON text, and times by pattern, zone and unit: their values and types.

Whatever the rows have, nothing raises. Spark gives instants without a zone, as UTC.
"""

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from windowing.errors import SpecError
from windowing.expressions.compile import compile_value
from windowing.expressions.nested import have_values
from windowing.spec.expressions.parse import inputs_of, parse_expression

TEXT, NUMBER = T.StringType(), T.LongType()
ITEM = (
    T.StructType()
    .add("price", T.DoubleType())
    .add("tags", T.ArrayType(TEXT))
    .add("odd name", NUMBER)
)
SCHEMA = (
    T.StructType()
    .add("a.ts", TEXT)
    .add("a", T.StructType().add("ts", TEXT).add("end", NUMBER))
    .add("items", T.ArrayType(ITEM))
    .add("attributes", T.MapType(TEXT, TEXT))
    .add("codes", T.MapType(T.IntegerType(), TEXT))
    .add("text", TEXT)
    .add("at", T.TimestampType())
    .add("local", T.TimestampNTZType())
    .add("day", T.DateType())
    .add("c.d", TEXT)
)
AT = datetime(2024, 3, 31, 0, 59, 59, 999_999, UTC)
ROWS: list[tuple[Any, ...]] = [
    (
        "flat",
        ("deep", 7),
        [(1.5, ["x", None], 3), None],
        {"k": "v", "": "empty"},
        {1: "one"},
        '{"a": {"b": 5, "odd name": "x"}, "l": [1, {"m": null}], "s": "it\'s"}',
        AT,
        AT.replace(tzinfo=None),
        AT.date(),
        None,
    ),
    ("flat", (None, None), [], {}, {}, "no json", AT, AT.replace(tzinfo=None), AT.date(), None),
    (None,) * 10,
]

VALUES: list[tuple[str, list[Any]]] = [
    ("`a.ts`", ["flat", "flat", None]),
    ("a.ts", ["deep", None, None]),
    ("a.end + 1", [8, None, None]),
    ("items[0].price", [1.5, None, None]),
    ("items[0].`odd name` * 2", [6, None, None]),
    ("items[0].tags[0]", ["x", None, None]),
    ("items[0].tags[1]", [None, None, None]),
    ("items[1].price", [None, None, None]),
    ("items[2147483647].price", [None, None, None]),
    ("attributes['k']", ["v", None, None]),
    ("attributes['']", ["empty", None, None]),
    ("attributes['other']", [None, None, None]),
    ("items is null", [False, False, True]),
    ("a is null", [False, False, True]),
    ("get_json_object(text, '$.a.b')", ["5", None, None]),
    ("get_json_object(text, '$.a[\\'odd name\\']')", ["x", None, None]),
    ("get_json_object(text, '$.l[0]')", ["1", None, None]),
    ("get_json_object(text, '$.l[1].m')", [None, None, None]),
    ("get_json_object(text, '$.a')", ['{"b":5,"odd name":"x"}', None, None]),
    ("cast(get_json_object(text, '$.a.b') as bigint) + 1", [6, None, None]),
    ("minute(at) * 100 + second(at)", [5959, 5959, None]),
    ("minute(local)", [59, 59, None]),
    ("date_trunc('hour', at)", ["2024-03-31 00:00:00"] * 2 + [None]),
    ("date_trunc('week', local)", ["2024-03-25 00:00:00"] * 2 + [None]),
    ("date_trunc('quarter', local) = '2024-01-01'", [True, True, None]),
    (
        "convert_timezone('America/New_York', at)",
        ["2024-03-30 20:59:59.999999"] * 2 + [None],
    ),
    ("hour(convert_timezone('Asia/Kolkata', at))", [6, 6, None]),
    ("day(convert_timezone('America/New_York', at))", [30, 30, None]),
]
PATTERNS: list[tuple[str, str, str | None]] = [
    ("dd/MM/yyyy HH:mm", "31/12/2025 23:50", "2025-12-31 23:50:00"),
    ("dd/MM/yyyy HH:mm", "1/2/2025 23:50", None),
    ("d/M/yyyy H:m", "1/2/2025 3:05", "2025-02-01 03:05:00"),
    ("dd/MM/yyyy HH:mm", "31/02/2025 23:50", None),
    ("dd/MM/yyyy HH:mm", "31/12/2025 24:00", None),
    ("dd/MM/yyyy HH:mm", "31/12/2025 23:50 ", None),
    ("dd/MM/yyyy HH:mm", "31/12/25 23:50", None),
    ("dd/MM/yyyy HH:mm", "31-12-2025 23:50", None),
    ("dd/MM/yyyy HH:mm", "31/12/2025 23:50:01", None),
    ("dd/MM/yyyy HH:mm", "", None),
    ("dd/MM/yyyy", "29/02/2024", "2024-02-29 00:00:00"),
    ("MM/dd/yyyy hh:mm a", "12/31/2025 11:50 PM", "2025-12-31 23:50:00"),
    ("MM/dd/yyyy hh:mm a", "12/31/2025 12:50 AM", "2025-12-31 00:50:00"),
    ("MM/dd/yyyy hh:mm a", "12/31/2025 13:50 PM", None),
    ("dd.MM.yyyy HH:mm:ss.SSS", "31.12.2025 23:50:01.250", "2025-12-31 23:50:01.250000"),
    ("d MMM yyyy", "5 Mar 2025", "2025-03-05 00:00:00"),
    ("d MMMM yyyy", "5 March 2025", "2025-03-05 00:00:00"),
    ("d MMM yyyy", "5 Mär 2025", None),
    ("yyyy-MM-dd'T'HH:mm:ssXXX", "2025-12-31T23:50:00+02:00", "2025-12-31 21:50:00"),
    ("yyyy-MM-dd'T'HH:mm:ssXXX", "2025-12-31T23:50:00Z", "2025-12-31 23:50:00"),
    ("yyyyMMddHHmmss X", "20251231235000 -08", "2026-01-01 07:50:00"),
]  # fmt: skip


def column_of(text: str) -> Any:
    """The column of an expression over rows of SCHEMA."""
    return compile_value(parse_expression("source.where", text), SCHEMA, "source.where").column


def test_every_value_is_what_it_should_be_and_none_raises(spark: SparkSession) -> None:
    rows = spark.createDataFrame(ROWS, SCHEMA)
    columns = [column_of(text).alias(f"c{n}") for n, (text, _) in enumerate(VALUES)]
    selected = rows.select(*columns)
    found = selected.collect()
    for n, (text, expected) in enumerate(VALUES):
        promised = compile_value(parse_expression("", text), SCHEMA, "").kind
        assert selected.schema[n].dataType == promised, text
        assert [_plain(row[n]) for row in found] == expected, text


def _plain(value: Any) -> Any:
    """The value, a time as text."""
    return value.isoformat(" ") if isinstance(value, datetime) else value


def test_texts_are_read_by_a_pattern_or_not_at_all(spark: SparkSession) -> None:
    texts = [text for _, text, _ in PATTERNS]
    noise = random.Random(43)
    marks = "0123456789/:. TZ+-PMär\u0663"
    texts += ["".join(noise.choices(marks, k=noise.randint(1, 20))) for _ in range(2_000)]
    rows = spark.createDataFrame([(text,) for text in texts], "t string").coalesce(1)
    patterns = list(dict.fromkeys(pattern for pattern, _, _ in PATTERNS))
    schema = rows.schema
    columns = []
    for pattern in patterns:
        written = pattern.replace("'", "\\'")
        expression = parse_expression("", f"to_timestamp(t, '{written}')")
        columns.append(compile_value(expression, schema, "").column)
    found = rows.select(*columns).collect()
    for place, (pattern, text, expected) in enumerate(PATTERNS):
        at = found[place][patterns.index(pattern)]
        assert (at and at.isoformat(" ")) == expected, (pattern, text)


def test_the_clock_of_a_zone_is_that_of_the_tz_database(spark: SparkSession) -> None:
    noise = random.Random(43)
    first, end = (datetime(year, 1, 1, tzinfo=UTC) for year in (1970, 2100))
    span = int((end - first).total_seconds())
    times = [first + timedelta(seconds=noise.randrange(span)) for _ in range(300)]
    hour = timedelta(hours=1)
    change = datetime(2024, 3, 31, 1, tzinfo=UTC)
    us = timedelta(microseconds=1)
    times += [first, end - us, change - us, change, change - hour, change + hour]
    rows = spark.createDataFrame([(at,) for at in [*times, first - us, end]], "at timestamp")
    for zone in ("Europe/Berlin", "America/St_Johns", "Asia/Kolkata", "UTC"):
        expression = parse_expression("", f"convert_timezone('{zone}', at)")
        column = compile_value(expression, rows.schema, "").column
        found = [row[0] for row in rows.select(column).collect()]
        expected = [at.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for at in times]
        assert found == [*expected, None, None]


def test_a_value_is_lost_only_where_the_part_that_it_is_made_of_is_there(
    spark: SparkSession,
) -> None:
    rows = spark.createDataFrame(ROWS, SCHEMA)
    texts = (
        "cast(a.ts as bigint)",
        "cast(items[0].tags[1] as bigint)",
        "cast(attributes['k'] as bigint)",
    )
    lost = []
    for text in texts:
        expression = parse_expression("", text)
        lost.append(
            compile_value(expression, SCHEMA, "").column.isNull()
            & have_values(inputs_of(expression))
        )
    found = [tuple(row) for row in rows.select(*lost).collect()]
    assert found == [(True, False, True), (False, False, False), (False, False, False)]


MISFITS: Sequence[tuple[str, str]] = [
    ("a.t = 'x'", "'a.t': 'a' has no field 't', did you mean 'ts'; it has end, ts"),
    ("b.ts = 'x'", "'b' is no column of the source"),
    ("c.d = 'x'", "'c.d' is a field of a struct; the column of that name is written `c.d`"),
    ("text.a = 'x'", "'text of type string' is no struct; read JSON text by get_json_object(text"),
    ("items.price > 1", "is no struct; write a place first, as in items[0].price"),
    ("attributes.k = 'v'", "is no struct; write attributes['k']"),
    ("attributes[0] = 'v'", "is a map; only texts can be keys, as in ['k']"),
    ("codes['1'] = 'v'", "is a map; only texts can be keys, as in ['k']"),
    ("items['k'] = 'v'", "is an array; write its place, as in [0]"),
    ("text[0] = 'v'", "is neither an array nor a map"),
    ("a = a", "which only is null and is not null work"),
    ("to_timestamp(at, 'dd/MM/yyyy') is null", "where a text is needed"),
    ("get_json_object(a, '$.b') is null", "where a text is needed"),
    ("date_trunc('hour', day) is null", "where a time or a local time is needed"),
    ("convert_timezone('UTC', local) is null", "where a time is needed"),
    ("second(day) = 1", "where a time or a local time is needed"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), MISFITS, ids=[text for text, _ in MISFITS])
def test_types_that_do_not_fit_are_refused_by_one_sentence(
    spark: SparkSession, text: str, sentence: str
) -> None:
    with pytest.raises(SpecError) as refused:
        compile_value(parse_expression("source.where", text), SCHEMA, "source.where")
    assert refused.value.field == "source.where"
    assert sentence in refused.value.message
    assert "\n" not in refused.value.message


@pytest.mark.deep
def test_json_text_of_any_kind_raises_nothing(spark: SparkSession) -> None:
    deep = "[" * 5_000 + "]" * 5_000
    long = json.dumps({"a": "x" * 1_000_000})
    texts = ["", "{", "[1,", '{"a": 1e999999}', '{"a": "\\ud800"}', "\x00", deep, long, "null"]
    rows = spark.createDataFrame([(text,) for text in texts], "text string")
    expression = parse_expression("", "get_json_object(text, '$.a')")
    column = compile_value(expression, rows.schema, "").column
    found = [row[0] for row in rows.select(column).collect()]
    assert found[-2] == "x" * 1_000_000
    assert found[:3] == [None] * 3
