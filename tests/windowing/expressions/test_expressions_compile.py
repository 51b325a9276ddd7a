"""Columns made of expressions have the value and the type that was promised.

They never raise, whatever values the rows have.
"""

import ast
import itertools
import math
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import types as T

from windowing.errors import SpecError
from windowing.expressions import arithmetic, values
from windowing.expressions import compile as panes_expression
from windowing.expressions.compile import compile_condition, compile_value
from windowing.spec.expressions.parse import may_lose, parse_expression

D, NAN, LEAST, MOST = Decimal, math.nan, -(2**63), 2**31 - 1
NINES = D("-99999999999999999999.999999999999999999")
TYPES = {
    "n": T.LongType(),
    "i": T.IntegerType(),
    "d": T.DoubleType(),
    "f": T.FloatType(),
    "p": T.DecimalType(10, 2),
    "w": T.DecimalType(38, 18),
    "t": T.StringType(),
    "o": T.BooleanType(),
    "at": T.TimestampType(),
    "local": T.TimestampNTZType(),
    "day": T.DateType(),
    "tags": T.ArrayType(T.IntegerType()),
    "raw": T.BinaryType(),
    "x`y z": T.IntegerType(),
}
SCHEMA = T.StructType([T.StructField(name, kind) for name, kind in TYPES.items()])
MOMENTS = (
    datetime(2024, 1, 31, 6, 30, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(9998, 12, 31, 23, 59, 59, 999999, UTC),
)
TIMES = [(at, at.replace(tzinfo=None), at.date()) for at in MOMENTS]
ROWS = [
    (7, 3, 1.5, 1.5, D("2.50"), D(1), "12", True, *TIMES[0], [1], b"x", 1),
    (LEAST, MOST, NAN, NAN, D("-99999999.99"), NINES, "NaN", False, *TIMES[1], [], b"", 2),
    (0, 0, -0.5, math.inf, D(0), D(0), " Ab ", None, *TIMES[2], None, None, 3),
    (None,) * 14,
]

VALUES: list[tuple[str, list[Any]]] = [
    # whole numbers, in 64 bits
    ("n + i", [10, LEAST + MOST, 0, None]),
    ("n - i", [4, None, 0, None]),
    ("n * 2", [14, None, 0, None]),
    ("i + 1", [4, 2**31, 1, None]),
    ("i * i", [9, MOST**2, 0, None]),
    ("i * i * i", [27, None, 0, None]),
    ("n / i", [7 / 3, float(LEAST) / MOST, None, None]),
    ("n % i", [1, -2, None, None]),
    ("n % -1", [0, 0, 0, None]),
    ("n % 0", [None] * 4),
    ("-n", [-7, None, 0, None]),
    ("-(-i)", [3, MOST, 0, None]),
    ("abs(n)", [7, None, 0, None]),
    ("abs(-i)", [3, MOST, 0, None]),
    ("round(n, 2) + floor(n) - ceil(n)", [7, None, 0, None]),
    ("`x``y z` + 1", [2, 3, 4, None]),
    # doubles
    ("d + 1", [2.5, NAN, 0.5, None]),
    ("d / 0", [None] * 4),
    ("d % 1", [0.5, NAN, -0.5, None]),
    ("d * 1e308 * 10", [math.inf, NAN, -math.inf, None]),
    ("abs(d)", [1.5, NAN, 0.5, None]),
    ("-d", [-1.5, NAN, 0.5, None]),
    ("floor(d)", [1, None, -1, None]),
    ("ceil(d)", [2, None, 0, None]),
    ("floor(f)", [1, None, None, None]),
    ("round(d)", [2.0, NAN, -1.0, None]),
    ("round(d * 1.234, 1)", [1.9, NAN, -0.6, None]),
    ("f - d", [0.0, NAN, math.inf, None]),
    # decimals
    ("p * 2", [D("5.00"), D("-199999999.98"), D(0), None]),
    ("p + 0.5", [D("3.00"), D("-99999999.49"), D("0.50"), None]),
    ("p / 3", [D("0.833333"), D("-33333333.330000"), D(0), None]),
    ("p / 0", [None] * 4),
    ("p % 2", [D("0.50"), D("-1.99"), D(0), None]),
    ("-p", [D("-2.50"), D("99999999.99"), D(0), None]),
    ("abs(p)", [D("2.50"), D("99999999.99"), D(0), None]),
    ("floor(p)", [D(2), D(-100000000), D(0), None]),
    ("ceil(p)", [D(3), D(-99999999), D(0), None]),
    ("round(p, 1)", [D("2.5"), D("-100000000.0"), D(0), None]),
    ("w * w", [D(1), None, D(0), None]),
    ("w * n", [D(7), None, D(0), None]),
    ("-w", [D(-1), D("99999999999999999999.999999999999999999"), D(0), None]),
    ("abs(w)", [D(1), D("99999999999999999999.999999999999999999"), D(0), None]),
    ("round(w, 2)", [D(1), -(D(10) ** 20), D(0), None]),
    ("p * d", [3.75, NAN, -0.0, None]),
    # comparisons
    ("n > 6.5", [True, False, False, None]),
    ("d > 1", [True, True, False, None]),
    ("d = d", [True, True, True, None]),
    ("p = 2.5 or p < 0", [True, True, False, None]),
    ("w < n", [True, True, False, None]),
    ("n != i", [True, True, False, None]),
    ("n <=> null", [False, False, False, True]),
    ("o = (n = 7)", [True, True, None, None]),
    ("n in (7, 0.0)", [True, False, True, None]),
    ("n not in (7, i)", [False, True, False, None]),
    ("i between 0 and 3", [True, False, True, None]),
    ("n not between 0 and i", [True, True, False, None]),
    ("t > 'A'", [False, True, False, None]),
    # logic
    ("not o", [False, True, None, None]),
    ("o or n = 0", [True, False, True, None]),
    ("o and n = 0", [False, False, None, None]),
    ("o is null and tags is null or raw is not null", [True, True, True, True]),
    ("true", [True] * 4),
    # choices
    ("coalesce(n, -1)", [7, LEAST, 0, -1]),
    ("coalesce(null, i, 0.5)", [D(3), D(MOST), D(0), D("0.5")]),
    ("nullif(i, 0)", [3, MOST, None, None]),
    ("nullif(cast(p as decimal(38, 2)), 2.496)", [D("2.50"), D("-99999999.99"), D(0), None]),
    ("if(o, n, d)", [7.0, NAN, -0.5, None]),
    ("case when n > 0 then 'up' when n < 0 then 'down' end", ["up", "down", None, None]),
    ("case i when 0 then 1 when 3 then 2.5 end", [D("2.5"), None, D(1), None]),
    ("case when o then at end > '2024-01-01'", [True, None, None, None]),
    ("least(n, i)", [3, LEAST, 0, None]),
    ("greatest(n, 1)", [7, 1, 1, 1]),
    ("greatest(d, 0)", [1.5, NAN, 0.0, 0.0]),
    # text
    ("lower(trim(t))", ["12", "nan", "ab", None]),
    ("upper(t)", ["12", "NAN", " AB ", None]),
    ("length(t) * 2", [4, 6, 8, None]),
    ("concat(t, '|', t)", ["12|12", "NaN|NaN", " Ab | Ab ", None]),
    ("replace(t, 'N', '')", ["12", "a", " Ab ", None]),
    ("replace(t, '', '-')", ["12", "NaN", " Ab ", None]),
    ("substring(t, 2)", ["2", "aN", "Ab ", None]),
    ("substring(t, -2, 1)", ["1", "a", "b", None]),
    ("substring(t, n, 1)", ["", None, " ", None]),
    ("substring(t, 2, 9223372036854775807)", [None] * 4),
    ("t like '%a%'", [False, True, False, None]),
    ("t not like '_2'", [False, True, True, None]),
    (r"t like '1\\_' or '1_' like '1\_'", [True] * 4),
    ("cast(t as double)", [12.0, NAN, None, None]),
    ("cast(concat(t, 'd') as double)", [None] * 4),
    ("cast(concat('0x', t, 'p3') as double)", [None] * 4),
    ("cast(t as bigint)", [12, None, None, None]),
    ("cast(d as bigint)", [1, None, 0, None]),
    ("cast(w as bigint)", [1, None, 0, None]),
    ("cast(n as decimal(3, 1))", [D(7), None, D(0), None]),
    ("cast(o as bigint) + 1", [2, 1, None, None]),
    ("cast(p as string)", ["2.50", "-99999999.99", "0.00", None]),
    (
        "cast(at as string)",
        ["2024-01-31 06:30:00", "1970-01-01 00:00:00", "9998-12-31 23:59:59.999999", None],
    ),
    ("cast(null as double)", [None] * 4),
    # times
    ("at > '2024-01-31 06:00'", [True, False, True, None]),
    ("at = '2024-01-31T08:30:00+02:00'", [True, False, False, None]),
    ("at in ('1970-01-01', '2024-01-31T06:30Z')", [True, True, False, None]),
    ("local between '2024-01-31' and '2024-01-31 06:30:00.000001'", [True, False, False, None]),
    ("day >= '2024-01-31'", [True, False, True, None]),
    ("greatest(at, '2000-01-01') = at", [True, False, True, None]),
    ("year(at) * 100 + month(local)", [202401, 197001, 999812, None]),
    ("year(day) * 100 + day(day)", [202431, 197001, 999831, None]),
    ("hour(at) + hour(local)", [12, 0, 46, None]),
]
NUMBERS = ("n", "i", "p", "w", "0", "-9223372036854775807", "1e300")
EXTREMES = [
    text
    for a, b in itertools.product(NUMBERS, NUMBERS)
    for text in (
        *(f"{a} {o} {b}" for o in "+-*/%"),
        f"{a} < {b}",
        f"greatest({a}, {b})",
        f"nullif({a}, {b})",
    )
] + [f"{f}({a})" for f in ("floor", "abs", "round", "-") for a in NUMBERS]


@pytest.fixture(scope="module")
def results(spark: SparkSession) -> tuple[dict[str, list[Any]], dict[str, T.DataType]]:
    """The four values and the type of every expression above, from one job."""
    texts = [text for text, _ in VALUES] + EXTREMES
    columns = [
        compile_value(parse_expression("f", text), SCHEMA, "f").column.alias(f"c{k}")
        for k, text in enumerate(texts)
    ]
    out = spark.createDataFrame(ROWS, SCHEMA).coalesce(1).select(columns)
    rows: list[Row] = out.collect()
    return {text: [row[k] for row in rows] for k, text in enumerate(texts)}, {
        t: f.dataType for t, f in zip(texts, out.schema, strict=True)
    }


@pytest.mark.parametrize(("text", "values"), VALUES, ids=[text for text, _ in VALUES])
def test_values(
    results: tuple[dict[str, list[Any]], dict[str, T.DataType]], text: str, values: list[Any]
) -> None:
    for found, wanted in zip(results[0][text], values, strict=True):
        assert type(found) is type(wanted)
        assert found == (
            pytest.approx(wanted, rel=1e-15, nan_ok=True) if isinstance(wanted, float) else wanted
        )


def test_what_may_lose_no_value_loses_none(
    results: tuple[dict[str, list[Any]], dict[str, T.DataType]],
) -> None:
    made = {text: parse_expression("f", text) for text in results[0]}
    kept = [text for text, read in made.items() if not may_lose(read)]
    assert len(kept) > len(NUMBERS) ** 2, "the comparisons of extreme numbers are among them"
    for text in kept:
        for row, found in zip(ROWS, results[0][text], strict=True):
            has_input = all(row[list(TYPES).index(c)] is not None for c in made[text].columns)
            assert found is not None or not has_input or not made[text].columns, text


def test_types_are_those_that_spark_has(
    results: tuple[dict[str, list[Any]], dict[str, T.DataType]],
) -> None:
    wrong = {
        text: kind
        for text, kind in results[1].items()
        if compile_value(parse_expression("f", text), SCHEMA, "f").kind != kind
    }
    assert wrong == {}


def test_extreme_numbers_never_raise(
    results: tuple[dict[str, list[Any]], dict[str, T.DataType]],
) -> None:
    assert all(
        results[0][f"{n} {o} 0"] == [None] * 4 for n in ("n", "i", "p", "w", "1e300") for o in "/%"
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("i", "int"),
        ("f", "float"),
        ("i + 1", "bigint"),
        ("f + 1", "double"),
        ("i / 2", "double"),
        ("p * 1.10", "decimal(14,4)"),
        ("w / p", "decimal(38,16)"),
        ("coalesce(i, 0)", "bigint"),
        ("least(p, n)", "decimal(22,2)"),
        ("t", "string"),
        ("t is null", "boolean"),
        ("at", "timestamp"),
        ("local", "timestamp_ntz"),
        ("if(o, day, '2024-01-01')", "date"),
        ("year(at)", "bigint"),
    ],
)
def test_types(spark: SparkSession, text: str, kind: str) -> None:
    assert compile_value(parse_expression("f", text), SCHEMA, "f").kind.simpleString() == kind


WRONG = [
    # columns
    (
        "qqq > 3",
        "'qqq' is no column of the source; it has at, d, day, f, i, local, n, o, p, raw, t, tags,"
        " w, x`y z",
    ),
    ("loca = local", "'loca' is no column of the source, did you mean 'local'; it has"),
    ("LOCAL = local", "'LOCAL' is no column of the source, did you mean 'local'"),
    ("current_date > at", "'current_date' is no column of the source"),
    # kinds
    (
        "n > t",
        "'n > t' mixes 'n of type bigint' and 't of type string'; all have to be numbers, texts,"
        " times, or true or false",
    ),
    ("t = 5", "mixes 't of type string' and '5 of type bigint'"),
    ("at = day", "mixes 'at of type timestamp' and 'day of type date'"),
    ("at = local", "mixes 'at of type timestamp' and 'local of type timestamp_ntz'"),
    ("n in (1, 'x')", "mixes 'n of type bigint' and \"'x' of type string\""),
    ("n between 1 and at", "mixes"),
    ("coalesce(n, o)", "mixes 'n of type bigint' and 'o of type boolean'"),
    (
        "case when o then n else t end",
        "'case when o then n else t end' mixes 'n of type bigint' and 't of type string'",
    ),
    ("case n when 'x' then 1 end", "mixes"),
    ("if(o, at, n)", "mixes"),
    ("t + 1", "'t + 1' has 't of type string' where a number is needed"),
    ("o * 2", "'o * 2' has 'o of type boolean' where a number is needed"),
    ("at - 1", "has 'at of type timestamp' where a number is needed"),
    ("-t", "'-t' has 't of type string' where a number is needed"),
    ("n + null", "has 'null of type void' where a number is needed"),
    ("n and o", "'n and o' has 'n of type bigint' where true or false is needed"),
    ("not t", "where true or false is needed"),
    ("case when n then 1 end", "has 'n of type bigint' where true or false is needed"),
    ("if(null, 1, 2)", "has 'null of type void' where true or false is needed"),
    ("abs(t)", "'abs(t)' has 't of type string' where a number is needed"),
    ("round(o, 1)", "where a number is needed"),
    ("lower(n)", "'lower(n)' has 'n of type bigint' where a text is needed"),
    ("concat(t, n)", "'concat(t, n)' has 'n of type bigint' where a text is needed"),
    ("n like '7%'", "where a text is needed"),
    ("substring(t, d)", "counts places in whole numbers, but 'd of type double' is none"),
    ("substring(n, 1)", "where a text is needed"),
    ("year(t)", "has 't of type string' where a time or a local time or a date is needed"),
    ("hour(day)", "has 'day of type date' where a time or a local time is needed"),
    (
        "cast(at as bigint)",
        "has 'at of type timestamp' where a number or a text or true or false or null is needed",
    ),
    ("cast(raw as string)", "has 'raw of type binary' where"),
    # null
    (
        "n = null",
        "'n = null' compares with null, which is never true; write is null, is not null or <=>",
    ),
    ("n not in (1, null)", "compares with null, which is never true"),
    ("n between null and 3", "compares with null"),
    ("nullif(n, null)", "compares with null"),
    ("case n when null then 1 end", "compares with null"),
    ("null", "'null of type void' can't be used by itself; it is null"),
    ("coalesce(null, null)", "can't be used by itself"),
    # nested and binary columns
    (
        "tags",
        "'tags of type array<int>' can't be used by itself; it is neither a number, a text, a time"
        " nor true or false",
    ),
    (
        "tags = tags",
        "'tags = tags' has 'tags of type array<int>', with which only is null and is not null work",
    ),
    ("coalesce(raw, raw)", "with which only is null and is not null work"),
    ("raw = 'x'", "mixes 'raw of type binary'"),
    ("length(raw)", "has 'raw of type binary' where a text is needed"),
    # times
    (
        "at > 'noon'",
        "'noon' in \"at > 'noon'\" is not a time such as '2024-01-31', '2024-01-31 06:00' or"
        " '2024-01-31T06:00:00Z', in UTC",
    ),
    ("at > '2024-02-30'", "'2024-02-30' in \"at > '2024-02-30'\" is not a time such as"),
    ("at in ('2024-01-01', '2024-1-1')", "'2024-1-1' in"),
    ("at > '2024-01-01T25:00'", "is not a time such as"),
    ("at > '2024-01-01T00:00+24:00'", "is not a time such as"),
    (
        "local > '2024-01-01T00:00Z'",
        "is not a local time such as '2024-01-31' or '2024-01-31 06:00', without an offset",
    ),
    ("day > '2024-01-01 00:00'", "is not a date such as '2024-01-31'"),
    ("at > t", "compares a timestamp with 't of type string'; use a time such as"),
    ("at > lower('2024-01-01')", "compares a timestamp with"),
    ("at > 1704067200", "mixes 'at of type timestamp' and '1704067200 of type bigint'"),
]


@pytest.mark.parametrize(("text", "sentence"), WRONG, ids=[text for text, _ in WRONG])
def test_types_that_do_not_fit(spark: SparkSession, text: str, sentence: str) -> None:
    for build in (compile_value, compile_condition):
        with pytest.raises(SpecError) as caught:
            build(parse_expression("source.where", text), SCHEMA, "source.where")
        assert caught.value.field == "source.where"
        assert sentence in caught.value.message
        assert (
            "\n" not in caught.value.message
            and not caught.value.message.endswith(".")
            and len(caught.value.message) < 400
        )


@pytest.mark.parametrize("text", ["n", "t", "n + 1", "at", "if(o, 1, 0)"])
def test_a_condition_is_true_or_false(spark: SparkSession, text: str) -> None:
    with pytest.raises(SpecError, match="is no condition; write one such as delay > 60"):
        compile_condition(parse_expression("source.where", text), SCHEMA, "source.where")


def test_conditions_keep_rows(spark: SparkSession) -> None:
    kept = compile_condition(
        parse_expression("source.where", "n >= 0 and not o <=> false"), SCHEMA, "source.where"
    )
    assert [
        row.n for row in spark.createDataFrame(ROWS, SCHEMA).where(kept).select("n").collect()
    ] == [7, 0]


def test_no_text_is_executed() -> None:
    for module in (panes_expression, arithmetic, values):
        nodes = list(ast.walk(ast.parse(Path(module.__file__).read_text())))
        assert not {n.attr for n in nodes if isinstance(n, ast.Attribute)} & {
            "expr",
            "selectExpr",
            "sql",
            "filter",
            "where",
            "_jvm",
            "_jc",
        }
