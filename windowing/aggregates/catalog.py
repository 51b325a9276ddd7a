"""Every aggregate by the name it has in a spec; docs/aggregates.md says how to add one."""

from collections.abc import Callable, Mapping

from windowing.aggregates import picks, sketches, sums
from windowing.aggregates.algebra import Algebra, Input

AGGREGATES: Mapping[str, Callable[[Input], Algebra]] = {
    "count": sums.count,
    "count_if": sums.count_if,
    "sum": sums.sum_of,
    "avg": sums.avg,
    "variance": sums.variance,
    "stddev": sums.stddev,
    "min": picks.least,
    "max": picks.greatest,
    "first": picks.first,
    "last": picks.last,
    "min_by": picks.min_by,
    "max_by": picks.max_by,
    "collect": picks.collect,
    "count_distinct": sketches.count_distinct,
    "quantile": sketches.quantile,
    "top_k": sketches.top_k,
}
