"""Aggregates that pick values: the least, the greatest, the first and the last in event order."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Algebra, Input, Join, Part, Step

_Pick = tuple[Step, Join]
_LEAST: _Pick = (F.min, F.least)
_GREATEST: _Pick = (F.max, F.greatest)
"""What picks one of many values, and one of two."""


def least(i: Input) -> Algebra:
    """The least value."""
    return _pick_value(f"{i.name}__min", i.value, _LEAST)


def greatest(i: Input) -> Algebra:
    """The greatest value."""
    return _pick_value(f"{i.name}__max", i.value, _GREATEST)


def first(i: Input) -> Algebra:
    """The value of the first event that has one."""
    return _pick_ranked(f"{i.name}__first", _placed_value(i), _LEAST)


def last(i: Input) -> Algebra:
    """The value of the last event that has one."""
    return _pick_ranked(f"{i.name}__last", _placed_value(i), _GREATEST)


def min_by(i: Input) -> Algebra:
    """The value, null or not, where `by` is least; among equals that of the first event."""
    return _pick_ranked(f"{i.name}__min_by", _ranked_value(i), _LEAST)


def max_by(i: Input) -> Algebra:
    """The value, null or not, where `by` is greatest; among equals that of the last event."""
    return _pick_ranked(f"{i.name}__max_by", _ranked_value(i), _GREATEST)


def collect(i: Input) -> Algebra:
    """The values of the first `argument` events that have one, in event order."""
    count = int(i.argument or 0)
    name = f"{i.name}__collect{count}"

    def merge_lists(lists: Column) -> Column:
        return _first_in_order(F.flatten(lists), count)

    lifted = _first_in_order(F.collect_list(_placed_value(i)), count)
    part = Part(name, lifted, F.collect_list, fold=merge_lists)
    return Algebra((part,), F.transform(name, lambda x: x["value"]))


def _pick_value(name: str, value: Column, pick: _Pick) -> Algebra:
    part = Part(name, pick[0](value), pick[0], join=pick[1])
    return Algebra((part,), F.col(name))


def _pick_ranked(name: str, ranked: Column, pick: _Pick) -> Algebra:
    """Picks among structs that order their values; structs are compared field by field."""
    part = Part(name, pick[0](ranked), pick[0], join=pick[1])
    return Algebra((part,), F.col(name)["value"])


def _placed_value(i: Input) -> Column:
    """The value after its place in event order; null where the event has none."""
    return F.when(i.value.isNotNull(), _with_place(i))


def _ranked_value(i: Input) -> Column:
    """The value after `by` and its place in event order; null where `by` is null."""
    by = i.value if i.by is None else i.by
    return F.when(by.isNotNull(), _with_place(i, by.alias("by")))


def _with_place(i: Input, *before: Column) -> Column:
    """A struct of `before`, the place in event order, and the value."""
    place = [column.alias(f"at{n}") for n, column in enumerate(i.order)]
    return F.struct(*before, *place, i.value.alias("value"))


def _first_in_order(placed: Column, count: int) -> Column:
    return F.slice(F.array_sort(placed), 1, count)
