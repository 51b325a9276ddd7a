"""What holds of parts and of values that are bad, left out or too large."""

import math
import statistics
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.windowing.aggregates.events import PIPELINE, ROWS, SCHEMA, Row, frame
from tests.windowing.aggregates.plain import PLAIN, calls_of, one_of, value_of
from windowing.columns import ROWS as ROWS_PART
from windowing.columns import TIME
from windowing.panes.frame import algebras_of, bad_value, parts_of
from windowing.spec.aggregate_description import describe_aggregate
from windowing.spec.kinds import Aggregate, Expression

MORE, FEWER = Expression("int > 1", ("int",)), Expression("int < 2", ("int",))
ONE_OF_EACH = [one_of(function) for function in PLAIN]


def merged(
    spark: SparkSession, rows: Sequence[Row], aggregates: Sequence[Aggregate]
) -> dict[str, Any]:
    """The values of all rows, over partials of each piece; `lost` has those that overflowed."""
    of = algebras_of(PIPELINE, aggregates, SCHEMA)
    kept = parts_of(of.values())
    partials = (
        frame(spark, list(rows))
        .groupBy(F.lit("k").alias("key"), "piece")
        .agg(*(p.lift.alias(p.name) for p in kept))
    )
    lost = [F.when(a.overflow, name) for name, a in of.items() if a.overflow is not None]
    lowered = [a.lower.alias(name) for name, a in of.items()]
    whole = partials.groupBy("key").agg(*(p.merged() for p in kept))
    (found,) = whole.select(*lowered, F.array_compact(F.array(*lost)).alias("lost")).collect()
    return found.asDict()


def event(n: int, **columns: Any) -> Row:
    """The n-th event; columns that aren't given are null."""
    return Row("k", n % 3, n, f"{n:04}", {**dict.fromkeys(ROWS[0].columns), **columns})


def test_parts_are_shared_by_what_they_are_made_from(spark: SparkSession) -> None:
    asked = [
        Aggregate("a", "sum", "int"),
        Aggregate("b", "avg", "int"),
        Aggregate("c", "variance", "int"),
        Aggregate("d", "stddev", "int"),
        Aggregate("e", "top_k", "int", 3),
        Aggregate("f", "top_k", "int", 5),
        Aggregate("g", "quantile", "int", 0.5),
        Aggregate("h", "quantile", "int", 0.9),
        Aggregate("i", "count"),
        Aggregate("j", "collect", "int", 5),
        Aggregate("k", "collect", "int", 6),
    ]
    names = [p.name for p in parts_of(algebras_of(PIPELINE, asked, SCHEMA).values())]
    assert names == [
        ROWS_PART,
        "int__collect5",
        "int__collect6",
        "int__items",
        "int__kll",
        "int__moments",
        "int__n",
        "int__sum",
    ]


def test_parts_of_other_conditions_and_columns_have_other_names(spark: SparkSession) -> None:
    asked = [
        Aggregate(f"a{n}{m}", a.function, a.column, a.argument, a.by, w)
        for n, a in enumerate(ONE_OF_EACH)
        for m, w in enumerate([None, MORE])
    ]
    asked += [
        Aggregate("by_int", "min_by", "text", by="int"),
        Aggregate("of_int", "min_by", "int", by="text"),
    ]
    by_name = {
        name: [p.name for p in a.parts] for name, a in algebras_of(PIPELINE, asked, SCHEMA).items()
    }
    plain, where = [
        set(sum((v for k, v in by_name.items() if k.endswith(m)), [])) for m in ("0", "1")
    ]
    assert not plain & where
    assert len(plain) == len(where)
    every = plain | where | set(by_name["by_int"]) | set(by_name["of_int"])
    assert len(every) == 2 * len(plain) + 2
    assert len({name.lower() for name in every}) == len(every)
    assert all(name.replace("__", "_").isidentifier() for name in every)


def test_only_whole_numbers_are_taken_back_by_subtraction(spark: SparkSession) -> None:
    asked = [
        Aggregate(f"{f}_{c}", f, c, 1, "int" if plain.has_two_columns else None)
        for f, plain in PLAIN.items()
        for c in ("int", "big", "double", "wide")
        if c in plain.columns
    ]
    asked += [one_of("count"), one_of("count_if")]
    kept = parts_of(algebras_of(PIPELINE, asked, SCHEMA).values())
    types = frame(spark, ROWS[:1]).agg(*(p.lift.alias(p.name) for p in kept)).schema
    assert {types[p.name].dataType.simpleString() for p in kept if p.invertible} == {"bigint"}
    assert {p.name.rpartition("__")[2] for p in kept if p.invertible} == {
        "rows",
        "n",
        "true",
        "sum",
        "high",
        "low",
    }


def test_without_partials_counts_are_zero_and_the_rest_is_null(spark: SparkSession) -> None:
    of = algebras_of(PIPELINE, ONE_OF_EACH, SCHEMA)
    lifts = [p.lift.alias(p.name) for p in parts_of(of.values())]
    types = frame(spark, ROWS[:1]).agg(*lifts).schema
    nothing = spark.range(1).select(*(F.lit(None).cast(f.dataType).alias(f.name) for f in types))
    (row,) = nothing.select(*(a.lower.alias(name) for name, a in of.items())).collect()
    counts = {a.name for a in ONE_OF_EACH if value_of(a, []) == 0}
    assert row.asDict() == {a.name: 0 if a.name in counts else None for a in ONE_OF_EACH}


@pytest.mark.parametrize("where", [MORE, FEWER], ids=str)
def test_a_condition_leaves_events_out(spark: SparkSession, where: Expression) -> None:
    rows = [r for r in ROWS if r.key == "many"]
    asked = [Aggregate(a.name, a.function, a.column, a.argument, a.by, where) for a in ONE_OF_EACH]
    holds = {MORE: lambda r: r.columns["int"] > 1, FEWER: lambda r: r.columns["int"] < 2}[where]
    left = [r for r in rows if r.columns["int"] is not None and holds(r)]
    found = merged(spark, rows, [*asked, Aggregate("all", "count")])
    assert found["all"] == len(rows)
    for a in asked:
        ours, theirs = found[a.name], value_of(a, left)
        ours = [tuple(item) for item in ours] if a.function == "top_k" else ours
        assert ours == theirs or math.isclose(ours, theirs, rel_tol=1e-9), a


def test_a_condition_that_never_holds_leaves_nothing(spark: SparkSession) -> None:
    never = Expression("int > 2147483647", ("int",))
    asked = [Aggregate(a.name, a.function, a.column, a.argument, a.by, never) for a in ONE_OF_EACH]
    found = merged(spark, ROWS, asked)
    assert found == {"lost": [], **{a.name: value_of(a, []) for a in asked}}


@pytest.mark.parametrize("function", PLAIN)
def test_a_description_says_what_can_overflow(spark: SparkSession, function: str) -> None:
    algebras = algebras_of(PIPELINE, [*calls_of(function), one_of(function)], SCHEMA).values()
    overflows = any(algebra.overflow is not None for algebra in algebras)
    assert describe_aggregate(function).can_overflow == overflows


def test_sums_beyond_their_type_are_null_and_flagged(spark: SparkSession) -> None:
    rows = [event(n, big=2**63 - 1, wide=Decimal("9" * 34 + ".9999"), int=n) for n in range(3)]
    asked = [
        Aggregate("big", "sum", "big"),
        Aggregate("wide", "sum", "wide"),
        Aggregate("one", "sum", "big", where=MORE),
        Aggregate("two", "sum", "big", where=FEWER),
        Aggregate("mean", "avg", "big"),
        Aggregate("mean_of_wide", "avg", "wide"),
        Aggregate("mean_of_one", "avg", "wide", where=MORE),
        Aggregate("spread", "variance", "big"),
    ]
    found = merged(spark, rows, asked)
    assert (found["mean_of_wide"], found["mean_of_one"]) == (None, None)
    assert (found["big"], found["wide"], found["one"], found["two"]) == (
        None,
        None,
        2**63 - 1,
        None,
    )
    assert sorted(found["lost"]) == ["big", "mean_of_one", "mean_of_wide", "two", "wide"]
    assert math.isclose(found["mean"], 2.0**63)
    assert found["spread"] == 0


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("double", [1e9 + n / 1000 for n in range(100)]),
        ("double", [1e15 + n for n in range(50)]),
        ("double", [-1e-9, 0.0, 1e-9, 3e-9]),
        ("double", [1e150, 2e150, 4e150]),
        ("double", [5.0] * 10),
        ("big", [2**63 - 1, -(2**63), 0]),
        ("big", [2**53 + n * 2 for n in range(20)]),
        ("decimal", [Decimal("99999999.99"), Decimal("99999999.98"), Decimal("99999999.95")]),
    ],
)
def test_variance_keeps_its_digits_far_from_zero(
    spark: SparkSession, column: str, values: list[Any]
) -> None:
    rows = [event(n, **{column: v}) for n, v in enumerate(values)]
    found = merged(
        spark, rows, [Aggregate("v", "variance", column), Aggregate("s", "stddev", column)]
    )
    exact = [Fraction(v) for v in values]
    variance = float(statistics.variance(exact))
    # What a stable method may lose (Chan, Golub and LeVeque 1983). A difference of squares would
    # lose the square of it.
    condition = abs(float(statistics.mean(exact))) / math.sqrt(variance or 1)
    bound = max(1e-12, 4 * 2**-53 * condition)
    assert math.isclose(found["v"], variance, rel_tol=bound)
    assert math.isclose(found["s"], math.sqrt(variance), rel_tol=bound)


def test_equal_values_count_once(spark: SparkSession) -> None:
    odd = [0.0, -0.0, math.nan, math.nan, 1.0]
    asked = [
        Aggregate(f"{f}_{c}", f, c, 5)
        for c in ("float", "double")
        for f in ("count_distinct", "top_k")
    ]
    found = merged(spark, [event(n, float=v, double=v) for n, v in enumerate(odd)], asked)
    assert (found["count_distinct_float"], found["count_distinct_double"]) == (3, 3)
    for column in ("float", "double"):
        zero, nothing, one = (tuple(item) for item in found[f"top_k_{column}"])
        assert (zero, one) == ((0.0, 2), (1.0, 1))
        assert math.isnan(nothing[0])
        assert nothing[1] == 2


@pytest.mark.parametrize("function", PLAIN)
def test_what_is_bad_depends_on_the_function_and_the_type(
    spark: SparkSession, function: str
) -> None:
    for column in SCHEMA.names[4:]:
        aggregate = Aggregate("a", function, column)
        if PLAIN[function].has_two_columns:
            aggregate = Aggregate("a", function, "text", by=column)
        bad = [column] if column in PLAIN[function].bad else []
        assert list(bad_value(aggregate, SCHEMA)) == bad
    assert bad_value(Aggregate("a", "count"), SCHEMA) == {}


def test_bad_values_are_found_and_skipped(spark: SparkSession) -> None:
    odd = [1.0, math.nan, math.inf, -math.inf, None, 3.0]
    texts = ["1", "NaN", "Infinity", "two", None, "3"]
    rows = [
        event(n, double=v, text=t, int=0) for n, (v, t) in enumerate(zip(odd, texts, strict=True))
    ]
    of_number, of_text = (
        Aggregate("a", "sum", "double", where=MORE),
        Aggregate("a", "stddev", "text"),
    )
    (number,), (text,) = bad_value(of_number, SCHEMA).values(), bad_value(of_text, SCHEMA).values()
    found = frame(spark, rows).orderBy(TIME).select(number.alias("n"), text.alias("t")).collect()
    assert [tuple(row) for row in found] == [(n in (1, 2, 3),) * 2 for n in range(6)]
    asked = [one_of(function) for function, plain in PLAIN.items() if plain.bad]
    skipped = merged(spark, rows, [*asked, Aggregate("text", "sum", "text")])
    assert [skipped[f] for f in ("sum", "avg", "variance", "quantile", "min", "max")] == [
        4,
        2,
        2,
        1,
        1,
        3,
    ]
    assert (skipped["min_by"], skipped["max_by"], skipped["text"]) == ("1", "3", 4)


def test_ties_go_by_event_order_and_values_may_be_null(spark: SparkSession) -> None:
    texts, by = ["a", None, "c", "d", None, "f"], [5, 1, 1, 9, 9, None]
    rows = [event(n, text=t, int=v) for n, (t, v) in enumerate(zip(texts, by, strict=True))]
    asked = [
        Aggregate("least", "min_by", "text", by="int"),
        Aggregate("most", "max_by", "text", by="int"),
    ]
    assert merged(spark, rows, asked) == {"least": None, "most": None, "lost": []}
    kept = [r for r in rows if r.columns["text"] is not None]
    assert merged(spark, kept, asked) == {"least": "c", "most": "d", "lost": []}
