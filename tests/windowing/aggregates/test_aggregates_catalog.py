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

from tests.windowing.aggregates.events import PIPELINE, ROWS, SCHEMA, TYPES, frame
from tests.windowing.aggregates.plain import PLAIN, calls_of, value_of
from windowing.aggregates.algebra import Algebra
from windowing.location import Location
from windowing.panes.frame import algebras_of, parts_of
from windowing.spec.kinds import Aggregate
from windowing.storage import delta

AGGREGATES = [
    *(aggregate for function in PLAIN for aggregate in calls_of(function)),
    Aggregate("most", "top_k", "int", 100),
    Aggregate("commonest", "top_k", "int", 1),
    Aggregate("shortest", "collect", "int", 1),
    Aggregate("longest", "collect", "int", 10_000),
]
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
        Location(f"{lake}/state"),
    )
    stored = delta.read(spark, Location(f"{lake}/state"))
    rounds = stored.withColumn("round", F.explode(F.sequence(F.lit(0), F.lit(ROUNDS - 1))))
    group = F.pmod(F.xxhash64("piece", "round"), F.lit(4))
    halves = rounds.groupBy("round", "key", group.alias("group")).agg(*(p.merged() for p in kept))
    whole = _lowered(
        halves.groupBy("round", "key").agg(*(p.merged() for p in kept)), of, ["round", "key"]
    )
    columns = T.StructType([T.StructField(f.name, f.dataType) for f in whole.schema.fields])
    delta.create(spark, Location(f"{lake}/output"), columns, {})
    delta.append(whole, Location(f"{lake}/output"))
    so_far = Window.partitionBy("key").orderBy("piece").rowsBetween(Window.unboundedPreceding, 0)
    prefix = _lowered(
        stored.select("key", "piece", *(p.running(so_far) for p in kept)), of, ["key", "piece"]
    )
    return Found(
        _by(delta.read(spark, Location(f"{lake}/output")), "round", "key"),
        _by(prefix, "key", "piece"),
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
    assert len(found.whole) == ROUNDS * 5
    for (_, key), values in found.whole.items():
        expected = value_of(aggregate, [r for r in ROWS if r.key == key])
        assert same(values[aggregate.name], expected), (key, values[aggregate.name], expected)
    for (key, piece), values in found.prefix.items():
        expected = value_of(aggregate, [r for r in ROWS if r.key == key and r.piece <= piece])
        assert same(values[aggregate.name], expected), (
            key,
            piece,
            values[aggregate.name],
            expected,
        )


def test_results_have_the_stated_types(spark: SparkSession) -> None:
    of = algebras_of(PIPELINE, AGGREGATES, SCHEMA)
    partials = (
        frame(spark, []).groupBy("key").agg(*(p.lift.alias(p.name) for p in parts_of(of.values())))
    )
    found = _lowered(partials, of, []).schema
    for a in AGGREGATES:
        stated = PLAIN[a.function].result(TYPES[a.column or ""])
        assert found[a.name].dataType.simpleString() == stated, a
