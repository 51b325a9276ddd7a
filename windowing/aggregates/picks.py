"""Aggregates that pick values: the least, the greatest, those that come first or last in event order."""

from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as F

from windowing.aggregates.algebra import Algebra, Input, Part, Step


def least(i: Input) -> Algebra:
    """The least value."""
    return _plain(f"{i.name}__min", i.value, F.min)


def greatest(i: Input) -> Algebra:
    """The greatest value."""
    return _plain(f"{i.name}__max", i.value, F.max)


def first(i: Input) -> Algebra:
    """The value of the first event that has one."""
    return _carried(f"{i.name}__first", F.when(i.value.isNotNull(), _placed(i)), F.min)


def last(i: Input) -> Algebra:
    """The value of the last event that has one."""
    return _carried(f"{i.name}__last", F.when(i.value.isNotNull(), _placed(i)), F.max)


def min_by(i: Input) -> Algebra:
    """The value, null or not, where `by` is least; among equals that of the first event."""
    return _carried(f"{i.name}__min_by", _ranked(i), F.min)


def max_by(i: Input) -> Algebra:
    """The value, null or not, where `by` is greatest; among equals that of the last event."""
    return _carried(f"{i.name}__max_by", _ranked(i), F.max)


def collect(i: Input) -> Algebra:
    """The values of the first `argument` events that have one, in event order."""
    count = int(i.argument or 0)
    name, shortest = f"{i.name}__collect{count}", partial(_shortest, count=count)
    placed = F.collect_list(F.when(i.value.isNotNull(), _placed(i)))
    part = Part(
        name, shortest(placed), F.collect_list, fold=lambda lists: shortest(F.flatten(lists))
    )
    return Algebra((part,), F.transform(name, lambda x: x["value"]))


def _plain(name: str, value: Column, pick: Step) -> Algebra:
    return Algebra((Part(name, pick(value), pick),), F.col(name))


def _carried(name: str, ranked: Column, pick: Step) -> Algebra:
    return Algebra((Part(name, pick(ranked), pick),), F.col(name)["value"])


def _placed(i: Input, *before: Column) -> Column:
    """The value with its place in event order in front, and `before` in front of that."""
    place = [column.alias(f"at{n}") for n, column in enumerate(i.order)]
    return F.struct(*before, *place, i.value.alias("value"))


def _ranked(i: Input) -> Column:
    by = i.value if i.by is None else i.by
    return F.when(by.isNotNull(), _placed(i, by.alias("by")))


def _shortest(placed: Column, count: int) -> Column:
    return F.slice(F.array_sort(placed), 1, count)
