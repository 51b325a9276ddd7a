"""Every aggregate of every type against a loop over the events.

Partials of events are stored and merged in any grouping.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tests.windowing.panes.events import PIPELINE, ROWS, SCHEMA, TYPES, frame
from tests.windowing.panes.plain import value_of
from windowing import delta
from windowing.aggregates.algebra import INTEGERS, NUMERIC, Algebra
from windowing.panes.frame import algebras_of, parts_of
from windowing.spec.kinds import Aggregate

NUMBERS = ("tiny", "small", "int", "big", "float", "double", "decimal", "wide", "number")
CALLS = [
    *((f, c, None, None) for f in ("sum", "avg", "variance", "stddev") for c in NUMBERS),
    *(("quantile", c, None, p) for c in NUMBERS for p in (0.0, 0.5, 0.95)),
    *((f, c, None, None) for f in ("min", "max", "first", "last", "count_distinct") for c in TYPES),
    *((f, c, "small", None) for f in ("min_by", "max_by") for c in TYPES),
    *((f, "text", c, None) for f in ("min_by", "max_by") for c in TYPES if c != "small"),
    *(("top_k", c, None, 3) for c in TYPES),
    *(("collect", c, None, 5) for c in TYPES),
    ("top_k", "int", None, 100),
    ("top_k", "int", None, 1),
    ("collect", "int", None, 1),
    ("collect", "int", None, 10_000),
    ("count_if", "mark", None, None),
]
AGGREGATES = [Aggregate(f"a{n}", f, column, p, by) for n, (f, column, by, p) in enumerate(CALLS)]
ROUNDS = 3


@dataclass(frozen=True)
class Found:
    """The results of the algebra.

    They are (round, key) -> values of whole keys, and (key, piece) -> values of the pieces up to
    there.
    """

    whole: dict[tuple[int, str], dict[str, Any]]
    prefix: dict[tuple[str, int], dict[str, Any]]


@pytest.fixture(scope="module")
def found(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Partials of each (key, piece), merged piece by piece and in `ROUNDS` groupings.

    Partials and values are stored in Delta tables.
    """
    of = algebras_of(PIPELINE, AGGREGATES, SCHEMA)
    kept = parts_of(of.values())
    lake = str(tmp_path_factory.mktemp("lake"))
    delta.append(
        frame(spark, ROWS).groupBy("key", "piece").agg(*(p.lift.alias(p.name) for p in kept)),
        f"{lake}/state",
    )
    stored = delta.read(spark, f"{lake}/state")
    rounds = stored.withColumn("round", F.explode(F.sequence(F.lit(0), F.lit(ROUNDS - 1))))
    group = F.pmod(F.xxhash64("piece", "round"), F.lit(4))
    halves = rounds.groupBy("round", "key", group.alias("group")).agg(*(p.merged() for p in kept))
    whole = _lowered(
        halves.groupBy("round", "key").agg(*(p.merged() for p in kept)), of, ["round", "key"]
    )
    columns = T.StructType([T.StructField(f.name, f.dataType) for f in whole.schema.fields])
    delta.create(spark, f"{lake}/output", columns, {})
    delta.append(whole, f"{lake}/output")
    so_far = Window.partitionBy("key").orderBy("piece").rowsBetween(Window.unboundedPreceding, 0)
    prefix = _lowered(
        stored.select("key", "piece", *(p.running(so_far) for p in kept)), of, ["key", "piece"]
    )
    return Found(
        _by(delta.read(spark, f"{lake}/output"), "round", "key"), _by(prefix, "key", "piece")
    )


def _lowered(merged: DataFrame, of: dict[str, Algebra], ids: list[str]) -> DataFrame:
    return merged.select(*ids, *(a.lower.alias(name) for name, a in of.items()))


def _by(rows: DataFrame, *ids: str) -> dict[Any, dict[str, Any]]:
    return {tuple(row[i] for i in ids): row.asDict() for row in rows.collect()}


def same(ours: Any, theirs: Any) -> bool:
    """Equal; doubles but for rounding."""
    if isinstance(theirs, float) and ours is not None:
        return math.isclose(float(ours), theirs, rel_tol=1e-6, abs_tol=1e-9)
    if isinstance(theirs, datetime) and isinstance(ours, datetime):
        return ours.replace(tzinfo=UTC) == theirs
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, tuple):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return bool(ours == theirs)


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=str)
def test_an_aggregate_of_merged_partials_is_the_aggregate_of_the_events(
    found: Found, aggregate: Aggregate
) -> None:
    function, column, by, argument = (
        aggregate.function,
        aggregate.column or "",
        aggregate.by,
        aggregate.argument,
    )
    assert len(found.whole) == ROUNDS * 5
    for (_, key), values in found.whole.items():
        expected = value_of(function, [r for r in ROWS if r.key == key], column, by, argument)
        assert same(values[aggregate.name], expected), (key, values[aggregate.name], expected)
    for (key, piece), values in found.prefix.items():
        expected = value_of(
            function, [r for r in ROWS if r.key == key and r.piece <= piece], column, by, argument
        )
        assert same(values[aggregate.name], expected), (
            key,
            piece,
            values[aggregate.name],
            expected,
        )


def _result(function: str, kind: T.DataType) -> str:
    """The type of a function of a column, as Spark spells it (in words: docs/aggregates.md)."""
    if function in ("count_distinct", "count_if"):
        return "bigint"
    if function == "collect":
        return f"array<{kind.simpleString()}>"
    if function == "top_k":
        return f"array<struct<value:{kind.simpleString()},count:bigint>>"
    if function in ("sum", "quantile") and isinstance(kind, INTEGERS):
        return "bigint"
    if function in ("sum", "avg") and isinstance(kind, T.DecimalType):
        return f"decimal(38,{kind.scale if function == 'sum' else 6})"
    return "double" if function in NUMERIC else kind.simpleString()


def test_results_have_the_stated_types(spark: SparkSession) -> None:
    of = algebras_of(PIPELINE, AGGREGATES, SCHEMA)
    partials = (
        frame(spark, []).groupBy("key").agg(*(p.lift.alias(p.name) for p in parts_of(of.values())))
    )
    found = _lowered(partials, of, []).schema
    for a in AGGREGATES:
        assert found[a.name].dataType.simpleString() == _result(
            a.function, TYPES[a.column or ""]
        ), a
