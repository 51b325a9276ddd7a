"""Every aggregate, described once: what the rest of the code asks about it, without Spark.

How it is computed is in windowing/aggregates, under the same name. docs/aggregates.md says how to
add one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Call(Enum):
    """What stands between the parentheses of a call."""

    NOTHING = "count()"
    COLUMN = "sum(delay)"
    TWO_COLUMNS = "min_by(gate, delay)"
    MIDDLE = "median(delay)"
    FRACTION = "quantile(delay, 0.95)"
    PLACES = "top_k(gate, 3)"
    LIST = "collect(gate, 10)"


class Takes(Enum):
    """Which values an aggregate takes."""

    ORDERED = "whatever can be compared"
    NUMBERS = "numbers, and text that is read as numbers"
    CONDITION = "true and false"


@dataclass(frozen=True)
class AggregateDescription:
    """The properties of one aggregate.

    - `call` is how it is written.
    - `takes` is which values its column may have. NaN is a bad value for one that takes numbers.
    - `compares` is true where NaN is a bad value although the column need not be of numbers.
    - `can_overflow` is true where its value is null because a sum has left its type.
    - `counts_events` is true where its value is never null and never below zero.
    - `is_estimate` is true where its value may change, within its error, when it is rebuilt.
    - `elsewhere` are its names in other systems.
    """

    call: Call = Call.COLUMN
    takes: Takes = Takes.ORDERED
    compares: bool = False
    can_overflow: bool = False
    counts_events: bool = False
    is_estimate: bool = False
    elsewhere: tuple[str, ...] = ()


DESCRIPTIONS: Mapping[str, AggregateDescription] = {
    "count": AggregateDescription(Call.NOTHING, counts_events=True),
    "sum": AggregateDescription(takes=Takes.NUMBERS, can_overflow=True),
    "min": AggregateDescription(compares=True),
    "max": AggregateDescription(compares=True),
    "avg": AggregateDescription(
        takes=Takes.NUMBERS, can_overflow=True, elsewhere=("average", "mean")
    ),
    "count_distinct": AggregateDescription(
        elsewhere=("approx_count_distinct", "approx_distinct", "nunique", "uniq")
    ),
    # It is stored as the quantile 0.5.
    "median": AggregateDescription(Call.MIDDLE, Takes.NUMBERS),
    "first": AggregateDescription(elsewhere=("first_value",)),
    "last": AggregateDescription(elsewhere=("last_value",)),
    "variance": AggregateDescription(takes=Takes.NUMBERS, elsewhere=("var", "var_samp")),
    "stddev": AggregateDescription(takes=Takes.NUMBERS, elsewhere=("std", "stddev_samp")),
    "count_if": AggregateDescription(takes=Takes.CONDITION, counts_events=True),
    "min_by": AggregateDescription(
        Call.TWO_COLUMNS, compares=True, elsewhere=("arg_min", "argmin")
    ),
    "max_by": AggregateDescription(
        Call.TWO_COLUMNS, compares=True, elsewhere=("arg_max", "argmax")
    ),
    "quantile": AggregateDescription(
        Call.FRACTION,
        Takes.NUMBERS,
        elsewhere=("approx_percentile", "approx_quantile", "percentile", "percentile_approx"),
    ),
    "top_k": AggregateDescription(Call.PLACES, is_estimate=True, elsewhere=("approx_top_k",)),
    "collect": AggregateDescription(Call.LIST, elsewhere=("array_agg", "collect_list")),
}
"""Every aggregate by the name that it has in a spec, in the order in which messages name them."""
FUNCTIONS = tuple(DESCRIPTIONS)


def describe_aggregate(function: str) -> AggregateDescription:
    """The description of the aggregate `function`."""
    return DESCRIPTIONS[function]
