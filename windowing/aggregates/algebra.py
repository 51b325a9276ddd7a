"""What an aggregate is: three steps, all of them Spark expressions.

    lift    events -> partial            {3, null, 4} -> (sum 7, n 2)
    merge   partials -> partial          with (sum 1, n 1) -> (sum 8, n 3)
    lower   partial -> value             (sum 8, n 3) -> 8; of n 0 -> null

An aggregate keeps parts. Parts are named after what they are made from, so two aggregates that need
the same part share it. Merging is associative and commutative: exactly, or within the error that
docs/aggregates.md states.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import ROWS

Step = Callable[[Column], Column]
Join = Callable[[Column, Column], Column]
INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
FRACTIONS = (T.FloatType, T.DoubleType)


def _keep_unchanged(merged: Column) -> Column:
    return merged


def add(a: Column, b: Column) -> Column:
    """The join of sums."""
    return a + b


@dataclass(frozen=True)
class Part:
    """One stored column of a partial.

    `merge` is an aggregate function of partials, and `fold` is what is left to do with its result.
    `invertible` parts may be subtracted again without loss. `join` merges two partials; it is None
    where that is not possible, or would depend on the order of merging. `beside` is added to the
    result: it consists of aggregate functions of other parts, and applies its argument to each of
    them, which adds the window that it is computed over.
    """

    name: str
    lift: Column
    merge: Step
    invertible: bool = False
    fold: Step = _keep_unchanged
    beside: Callable[[Step], Column] | None = None
    join: Join | None = None

    @property
    def is_same_alone(self) -> bool:
        """Whether merging a single partial gives that partial."""
        is_kept = self.fold is _keep_unchanged and self.beside is None
        return is_kept and self.merge in (F.sum, F.min, F.max)

    def join_values(self, values: Sequence[Column]) -> Column:
        """The part of several partials, each of which may be null, for a part that has a join."""
        if self.join is None:
            raise TypeError(f"{self.name} has no join")
        found = values[0]
        for value in values[1:]:
            found = F.coalesce(self.join(found, value), found, value)
        return found

    def lifted(self) -> Column:
        """The part of a group of events, for `agg`."""
        return self.lift.alias(self.name)

    def merged(self) -> Column:
        """The part of a group of partials, for `agg`."""
        return self._merged(_keep_unchanged)

    def running(self, over: WindowSpec) -> Column:
        """The part of the partials in each frame of `over`, which contains at least one."""
        return self._merged(lambda aggregate: aggregate.over(over))

    def _merged(self, each: Step) -> Column:
        found = self.fold(each(self.merge(F.col(self.name))))
        if self.beside is not None:
            found = found + self.beside(each)
        return found.alias(self.name)


Parts = Sequence[Part]
"""The stored columns of one or several aggregates."""


def name_parts(parts: Parts) -> list[str]:
    """The names of the columns."""
    return [part.name for part in parts]


def lift_parts(parts: Parts) -> list[Column]:
    """The parts of a group of events, for `agg`."""
    return [part.lifted() for part in parts]


def merge_parts(parts: Parts) -> list[Column]:
    """The parts of a group of partials, for `agg`."""
    return [part.merged() for part in parts]


@dataclass(frozen=True)
class Input:
    """What an aggregate is computed from.

    `value` and `by` are null where the value is bad or the event is left out by `where`. Parts are
    named after `name`: it is the same for aggregates with the same value, `by` and `where`, and
    different for all others.
    """

    name: str
    value: Column
    type: T.DataType
    order: tuple[Column, ...]
    argument: float | None = None
    by: Column | None = None


@dataclass(frozen=True)
class Near:
    """The least and the greatest value that are as good as the one computed; null if none is."""

    low: Column
    high: Column


@dataclass(frozen=True)
class Algebra:
    """The parts an aggregate keeps and the value they stand for.

    `overflow` is true where a sum left its type. `near` is set where parts may be drawn at random:
    a stored value within it stays where all else is equal, so what is computed again from the same
    events does not change.
    """

    parts: tuple[Part, ...]
    lower: Column
    overflow: Column | None = None
    near: Near | None = None


def rows_part() -> Part:
    """The number of events: kept by every pane, fragment and window."""
    return Part(ROWS, F.count(F.lit(1)), F.sum, invertible=True, join=add)


def count_part(i: Input) -> Part:
    """The number of events whose value is not null."""
    return Part(f"{i.name}__n", F.count(i.value), F.sum, invertible=True, join=add)
