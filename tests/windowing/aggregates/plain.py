"""Every aggregate derived by hand: as a loop over events in event order, and what goes with it.

The algebra must come to the same.
"""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pyspark.sql import types as T

from tests.windowing.aggregates.events import TYPES, Row
from windowing.aggregates.algebra import INTEGERS
from windowing.spec.kinds import Aggregate

LARGEST = 2**63 - 1
NUMBERS = ("tiny", "small", "int", "big", "float", "double", "decimal", "wide", "number")
FRACTIONS = ("float", "double")
NOT_ONLY_NUMBERS = (*FRACTIONS, "number", "text")


@dataclass(frozen=True)
class Plain:
    """One aggregate.

    - `loop` is its value, from the values in event order without nulls and the argument. If it
      `has_two_columns`, the values are pairs: what is shown, null or not, and what is compared.
    - `result` is the type of its value by the type of its column, as Spark spells it.
    - `columns` are those of the events that it is computed of, with each of `arguments`. Text among
      them is read as numbers if they are NUMBERS.
    - `bad` are the columns that can contain a bad value for it.
    """

    loop: Callable[[list[Any], Any], Any]
    result: Callable[[T.DataType], str]
    columns: tuple[str, ...] = tuple(TYPES)
    arguments: tuple[float | None, ...] = (None,)
    has_two_columns: bool = False
    bad: tuple[str, ...] = ()


def bigint(_kind: T.DataType) -> str:
    """The type of counts."""
    return "bigint"


def double(_kind: T.DataType) -> str:
    """The type of what is computed with doubles."""
    return "double"


def same(kind: T.DataType) -> str:
    """The type of what is one of the values."""
    return kind.simpleString()


def array(kind: T.DataType) -> str:
    """The type of lists."""
    return f"array<{kind.simpleString()}>"


def array_of_counts(kind: T.DataType) -> str:
    """The type of values with their counts."""
    return f"array<struct<value:{kind.simpleString()},count:bigint>>"


def sum_type(kind: T.DataType) -> str:
    """Whole numbers and decimals stay exact."""
    if isinstance(kind, T.DecimalType):
        return f"decimal(38,{kind.scale})"
    return quantile_type(kind)


def avg_type(kind: T.DataType) -> str:
    """A mean of decimals is one."""
    return "decimal(38,6)" if isinstance(kind, T.DecimalType) else "double"


def quantile_type(kind: T.DataType) -> str:
    """A quantile of whole numbers is one."""
    return "bigint" if isinstance(kind, INTEGERS) else "double"


def sum_of(numbers: list[Any], _argument: Any) -> Any:
    """Exact, and None beyond 64 bits."""
    if not numbers:
        return None
    total = sum(numbers)
    return None if isinstance(total, int) and not -LARGEST - 1 <= total <= LARGEST else total


def avg(numbers: list[Any], _argument: Any) -> float | None:
    """The exact mean, rounded once."""
    return float(sum(map(Fraction, numbers)) / len(numbers)) if numbers else None


def variance(numbers: list[Any], _argument: Any) -> float | None:
    """Of the sample: None for fewer than two."""
    return float(statistics.variance(map(Fraction, numbers))) if len(numbers) > 1 else None


def stddev(numbers: list[Any], _argument: Any) -> float | None:
    """The root of the variance."""
    return math.sqrt(statistics.variance(map(Fraction, numbers))) if len(numbers) > 1 else None


def quantile(numbers: list[Any], rank: float) -> Any:
    """The least value whose rank is at least `rank`."""
    if not numbers:
        return None
    # As decimals: of 100 numbers the seventh has the rank 0.07.
    nth = math.ceil(Fraction(str(rank)) * len(numbers))
    least = sorted(numbers)[max(0, nth - 1)]
    return float(least) if isinstance(least, Decimal) else least


def top_k(values: list[Any], most: int) -> Any:
    """The most frequent values, the least first among those that are as frequent."""
    return sorted(Counter(values).items(), key=lambda found: (-found[1], found[0]))[:most]


def min_by(pairs: list[Any], _argument: Any) -> Any:
    """What is shown of the first of the least."""
    return min(pairs, key=lambda pair: pair[1])[0] if pairs else None


def max_by(pairs: list[Any], _argument: Any) -> Any:
    """What is shown of the last of the greatest."""
    return max(reversed(pairs), key=lambda pair: pair[1])[0] if pairs else None


PLAIN: Mapping[str, Plain] = {
    "count": Plain(lambda events, _: len(events), bigint, ()),
    "count_if": Plain(lambda values, _: values.count(True), bigint, ("mark",)),
    "sum": Plain(sum_of, sum_type, NUMBERS, bad=NOT_ONLY_NUMBERS),
    "avg": Plain(avg, avg_type, NUMBERS, bad=NOT_ONLY_NUMBERS),
    "variance": Plain(variance, double, NUMBERS, bad=NOT_ONLY_NUMBERS),
    "stddev": Plain(stddev, double, NUMBERS, bad=NOT_ONLY_NUMBERS),
    "quantile": Plain(quantile, quantile_type, NUMBERS, (0.5, 0.0, 0.95), bad=NOT_ONLY_NUMBERS),
    "min": Plain(lambda values, _: min(values, default=None), same, bad=FRACTIONS),
    "max": Plain(lambda values, _: max(values, default=None), same, bad=FRACTIONS),
    "first": Plain(lambda values, _: values[0] if values else None, same),
    "last": Plain(lambda values, _: values[-1] if values else None, same),
    "min_by": Plain(min_by, same, has_two_columns=True, bad=FRACTIONS),
    "max_by": Plain(max_by, same, has_two_columns=True, bad=FRACTIONS),
    "collect": Plain(lambda values, most: values[:most], array, arguments=(5,)),
    "count_distinct": Plain(lambda values, _: len(set(values)), bigint),
    "top_k": Plain(top_k, array_of_counts, arguments=(3,)),
}
"""Every aggregate by its name. median is a quantile."""


def calls_of(function: str) -> list[Aggregate]:
    """The aggregate of each column that it takes, with each of its arguments."""
    plain = PLAIN[function]
    if plain.has_two_columns:
        shown = [(column, "small") for column in plain.columns]
        pairs = [*shown, *(("text", column) for column in plain.columns if column != "small")]
        return [Aggregate(f"{function}_{a}_{b}", function, a, by=b) for a, b in pairs]
    return [
        Aggregate(f"{function}_{column}_{n}", function, column, argument)
        for column in plain.columns
        for n, argument in enumerate(plain.arguments)
    ]


def one_of(function: str) -> Aggregate:
    """The aggregate of doubles, if it takes them, under its own name."""
    plain = PLAIN[function]
    if plain.has_two_columns:
        return Aggregate(function, function, "text", by="double")
    column = "double" if "double" in plain.columns else next(iter(plain.columns), None)
    return Aggregate(function, function, column, plain.arguments[0])


def value_of(aggregate: Aggregate, rows: Sequence[Row]) -> Any:
    """What the aggregate is for these events, all of which it counts."""
    plain = PLAIN[aggregate.function]
    return plain.loop(_values_of(aggregate, rows), aggregate.argument)


def _values_of(aggregate: Aggregate, rows: Sequence[Row]) -> list[Any]:
    events = [row.columns for row in sorted(rows, key=lambda row: (row.t, row.id))]
    column, by = aggregate.column, aggregate.by
    if column is None:
        return events
    if by is not None:
        return [(event[column], event[by]) for event in events if event[by] is not None]
    values = [event[column] for event in events if event[column] is not None]
    if PLAIN[aggregate.function].columns == NUMBERS:
        return [float(value) if isinstance(value, str) else value for value in values]
    return values
