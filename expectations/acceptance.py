"""Whether a failure that was accepted before lasts: only as long as its rows stay as they were.

What readers see is the measure. A row that fails there was accepted, and so is the same row of the
newest version. Another row that fails was not.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from expectations.outcome import Standing
from expectations.unexpected import fails_by_rows, names_rows, select_unexpected
from windowing.columns import REVISION, RUN, quoted

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

_NOT_COMPARED = (REVISION, RUN)

Observe = Callable[[DataFrame, "Expectation"], Any]
"""Rows and an expectation over all of them -> the value that it observes; None for no value."""


def digest_rule(configuration: Any) -> str:
    """A digest of an expectation's type and arguments, so another limit is another rule."""
    arguments = {n: value for n, value in configuration.kwargs.items() if n != "batch_id"}
    text = json.dumps([configuration.type, arguments], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def find_accepted(
    newest: DataFrame, failed: Iterable["Expectation"], standing: Standing, observe: Observe
) -> dict[str, str]:
    """Rule -> the reason why it may fail, for those of `failed` whose acceptance lasts.

    One that fails by single rows lasts while each row that fails is one that readers see. One over
    all rows lasts while it observes the value that it observes in what readers see.
    """
    lasting = {}
    for expectation in failed:
        rule = digest_rule(expectation.configuration)
        if rule in standing.reasons and _lasts(newest, expectation, standing.shown, observe):
            lasting[rule] = standing.reasons[rule]
    return lasting


def _lasts(
    newest: DataFrame, expectation: "Expectation", shown: DataFrame, observe: Observe
) -> bool:
    if fails_by_rows(type(expectation)):
        return select_changed(select_unexpected(newest, expectation), shown).isEmpty()
    if names_rows(type(expectation)):
        return False
    value = observe(newest, expectation)
    return value is not None and value == observe(shown, expectation)


def select_changed(newest: DataFrame, shown: DataFrame) -> DataFrame:
    """The rows of `newest` that `shown` does not contain with the same values.

    `revision` and `run` are no values. Where `shown` lacks a column, every row has changed.
    """
    compared = [name for name in newest.columns if name not in _NOT_COMPARED]
    if not set(compared) <= set(shown.columns):
        return newest
    new, old = newest.alias("new"), shown.alias("old")
    is_same = reduce(and_, map(_is_same, compared))
    return new.join(old, is_same, "left_anti")


def _is_same(name: str) -> Column:
    return F.col(f"new.{quoted(name)}").eqNullSafe(F.col(f"old.{quoted(name)}"))
