"""Every aggregate as a loop over events in event order: what the algebra must come to."""

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Row:
    """One event: its place in event order, and its columns."""

    key: str
    piece: int
    t: int
    id: str
    columns: dict[str, Any]


def ordered(rows: Sequence[Row]) -> list[Row]:
    """The rows in event order."""
    return sorted(rows, key=lambda r: (r.t, r.id))


def value_of(
    function: str,
    rows: Sequence[Row],
    column: str,
    by: str | None = None,
    argument: float | None = None,
) -> Any:
    """What `function(column, by, argument)` is for these events."""
    events = ordered(rows)
    values = [v for r in events if (v := r.columns[column]) is not None]
    if by is not None:
        return picked_by(
            function,
            [(r.columns[by], r.columns[column]) for r in events if r.columns[by] is not None],
        )
    if function in ("sum", "avg", "variance", "stddev", "quantile"):
        return of_numbers(
            function, [float(v) if isinstance(v, str) else v for v in values], argument
        )
    return of_values(function, values, int(argument or 0))


def picked_by(function: str, pairs: list[tuple[Any, Any]]) -> Any:
    """min_by the first of the least, max_by the last of the greatest."""
    if not pairs:
        return None
    if function == "min_by":
        return min(pairs, key=lambda p: p[0])[1]
    return max(reversed(pairs), key=lambda p: p[0])[1]


def of_numbers(function: str, numbers: list[Any], argument: float | None) -> Any:
    """Sums are exact and None beyond 64 bits.

    A quantile is the least value whose rank is at least the argument.
    """
    if not numbers:
        return None
    exact = [Fraction(v) for v in numbers]
    if function == "sum":
        total = sum(numbers)
        return None if isinstance(total, int) and not -LARGEST - 1 <= total <= LARGEST else total
    if function == "avg":
        return float(sum(exact) / len(exact))
    if function == "quantile":
        least = sorted(numbers)[max(0, math.ceil((argument or 0) * len(numbers)) - 1)]
        return float(least) if isinstance(least, Decimal) else least
    if len(numbers) < 2:
        return None
    return (
        float(statistics.variance(exact))
        if function == "variance"
        else math.sqrt(statistics.variance(exact))
    )


def of_values(function: str, values: list[Any], most: int) -> Any:
    """Aggregates of any type, values in event order."""
    if function == "count_distinct":
        return len(set(values))
    if function == "count_if":
        return values.count(True)
    if function == "collect":
        return values[:most]
    if function == "top_k":
        return sorted(Counter(values).items(), key=lambda found: (-found[1], found[0]))[:most]
    if not values:
        return None
    return {"min": min(values), "max": max(values), "first": values[0], "last": values[-1]}[
        function
    ]
