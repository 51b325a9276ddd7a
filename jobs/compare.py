"""An output beside what it should be: how many windows are missing, too many or other, and the first of them.

    found, wanted -> joined by what tells one window from another -> those that differ -> counts, examples
"""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.merge.rule import Target
from windowing.report import difference as differences
from windowing.report.difference import CLOSE, Difference
from windowing.report.frame import records
from windowing.report.rule import Changed
from windowing.spec.kinds import Window

ESTIMATES = ("quantile", "top_k")
"""Aggregates that give another value, within their error, whenever they are made anew; a difference in them alone is none."""
_SHOWN = 5
_FOUND, _WANTED, _CHANGE = "__found", "__wanted", "__change"


def compare(found: DataFrame, wanted: DataFrame, window: Window, target: Target) -> tuple[Changed, Difference | None]:
    """What would make `found` into `wanted`, and the first windows that differ.

    Sums of doubles in another order are not the same to the last digit: fractions differ by more than one in a million.
    """
    estimated = {a.name for a in window.aggregates if a.function in ESTIMATES}
    compared = [f for f in wanted.schema.fields if f.name in target.shown and f.name not in (*target.identity, *estimated)]
    f, w = (side.withColumn(name, F.lit(True)).alias(name) for side, name in ((found, _FOUND), (wanted, _WANTED)))
    same = [F.col(f"{_FOUND}.`{c}`").eqNullSafe(F.col(f"{_WANTED}.`{c}`")) for c in target.identity]
    change = _change(reduce(lambda a, b: a | b, (_differs(field) for field in compared), F.lit(False)))
    place = [F.coalesce(f"{_WANTED}.`{c}`", f"{_FOUND}.`{c}`").alias(c) for c in target.identity]
    both = f.join(w, same, "full_outer").select(*place, change.alias(_CHANGE))
    changed = both.where(F.col(_CHANGE).isNotNull()).localCheckpoint(eager=True)
    counts = {row[_CHANGE]: row["count"] for row in changed.groupBy(_CHANGE).count().collect()}
    if not counts:
        return Changed(), None
    first = changed.orderBy(*target.identity).limit(_SHOWN).select(*target.identity).localCheckpoint(eager=True)
    shown = [c for c in target.shown if c not in estimated]
    rows = [records(_among(side, first, target.identity).select(*shown), _SHOWN) for side in (wanted, found)]
    return Changed(**counts), differences.difference(window.name, rows[0], rows[1], target.identity)


def _change(differs: Column) -> Column:
    """What has to be done to a window; null where nothing has."""
    missing, extra = F.col(f"{_FOUND}.{_FOUND}").isNull(), F.col(f"{_WANTED}.{_WANTED}").isNull()
    return F.when(missing, "inserted").when(extra, "deleted").when(differs, "updated")


def _differs(field: T.StructField) -> Column:
    found, wanted = F.col(f"{_FOUND}.`{field.name}`"), F.col(f"{_WANTED}.`{field.name}`")
    if not isinstance(field.dataType, T.FractionalType) or isinstance(field.dataType, T.DecimalType):
        return ~found.eqNullSafe(wanted)
    apart = F.abs(found - wanted) > F.lit(CLOSE) * F.greatest(F.abs(found), F.abs(wanted))
    return ~found.eqNullSafe(wanted) & F.coalesce(apart, F.lit(True))


def _among(rows: DataFrame, some: DataFrame, identity: tuple[str, ...]) -> DataFrame:
    same = [F.col(f"r.`{c}`").eqNullSafe(F.col(f"s.`{c}`")) for c in identity]
    return rows.alias("r").join(some.alias("s"), same, "left_semi")
