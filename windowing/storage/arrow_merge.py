"""What a MERGE does to the rows of some files, computed by Arrow.

stored rows + changed rows -> rows that stay, rows as they are afterwards, change feed
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowing.columns import DELETE, INSERT, OP, START

_STORED, _CHANGED = "__stored", "__changed"
"""Numbers of rows."""
CHANGE = "_change_type"
"""The column of a change feed that says what has become of a row."""


@dataclass(frozen=True)
class Clauses:
    """How changed rows find the rows of a table. What is done then is in their column `OP`.

    Those with equal `identity` are the same row; null is equal to nothing. An inserted row is never
    taken for a stored one. `extent` are the least and the greatest start of the stored rows that
    may match; None where there are no such bounds.
    """

    identity: Sequence[str]
    extent: tuple[int, int] | None


@dataclass(frozen=True)
class Matches:
    """Which stored row each changed one replaces: numbers of rows, at the same place in both."""

    stored: pa.Array
    changed: pa.Array


def find_matches(stored: pa.Table, changed: pa.Table, clauses: Clauses) -> Matches:
    """The stored rows that are updated or deleted by rows of `changed`."""
    names = list(clauses.identity)
    is_insert = pc.equal(changed[OP], INSERT)
    asked = number_rows(changed.select(names), _CHANGED).filter(pc.invert(is_insert))
    found = number_rows(stored.select(names), _STORED).join(asked, names, join_type="inner")
    found = found.sort_by(_STORED)
    return Matches(found[_STORED].combine_chunks(), found[_CHANGED].combine_chunks())


def count_replaced(changed: pa.Table) -> int:
    """How many stored rows are to be updated or deleted."""
    operations: list[str] = changed[OP].to_pylist()
    return len(operations) - operations.count(INSERT)


def replace_rows(stored: pa.Table, changed: pa.Table, matches: Matches) -> pa.Table:
    """The rows as they are afterwards, in order of their time; columns of `stored`."""
    stays = pc.invert(pc.is_in(_list_numbers(stored), value_set=matches.stored))
    is_new = pc.not_equal(changed[OP], DELETE)
    new = changed.filter(is_new).select(stored.column_names)
    return pa.concat_tables([stored.filter(stays), new]).sort_by(START)


def tell_feed(stored: pa.Table, changed: pa.Table, matches: Matches) -> pa.Table:
    """The change feed: columns of `stored` and what has become of each row."""
    before = stored.take(matches.stored)
    done = pc.take(changed[OP], matches.changed)
    is_deleted = pc.equal(done, DELETE)
    is_insert = pc.equal(changed[OP], INSERT)
    after = changed.select(stored.column_names)
    updated = after.take(matches.changed).filter(pc.invert(is_deleted))
    return pa.concat_tables(
        [
            tell_change(before.filter(is_deleted), "delete"),
            tell_change(before.filter(pc.invert(is_deleted)), "update_preimage"),
            tell_change(updated, "update_postimage"),
            tell_change(after.filter(is_insert), "insert"),
        ]
    )


def number_rows(rows: pa.Table, name: str) -> pa.Table:
    """The rows with a column of their numbers, from 0."""
    return rows.append_column(name, _list_numbers(rows))


def _list_numbers(rows: pa.Table) -> pa.Array:
    """The number of each row, from 0."""
    return pa.array(np.arange(rows.num_rows))


def tell_change(rows: pa.Table, change: str) -> pa.Table:
    """The rows of a change feed of which `change` says what has become of them."""
    return rows.append_column(CHANGE, pa.array([change] * rows.num_rows, pa.string()))
