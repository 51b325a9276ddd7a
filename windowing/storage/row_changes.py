"""Which rows differ between two states of a table, by their identity, computed by Arrow.

rows before + rows after -> rows that came, that went, and those that are others now
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windowing.errors import TidemarkError
from windowing.storage.arrow_merge import CHANGE, number_rows, tell_change
from windowing.values import is_same

MOST_ROWS = 4_000_000
"""How many rows are compared at once at most. Each takes some 300 bytes of this process."""
_BEFORE, _AFTER = ("delete", "update_preimage"), ("insert", "update_postimage")
_OLD, _NEW, _ORDER = "__old", "__new", "__order"
"""Numbers of rows."""
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class RowChanges:
    """Rows that differ, with the columns of their table.

    `before` and `after` are updated rows, at the same place in both.
    """

    inserted: pa.Table
    deleted: pa.Table
    before: pa.Table
    after: pa.Table

    @property
    def count(self) -> int:
        """How many rows were inserted, deleted or updated."""
        return int(self.inserted.num_rows + self.deleted.num_rows + self.after.num_rows)

    def reverse(self) -> "RowChanges":
        """What leads from the state after the changes to the one before."""
        return RowChanges(self.deleted, self.inserted, self.after, self.before)

    def tell_feed(self) -> pa.Table:
        """The rows of a change feed: those of the table, and what has become of each."""
        return pa.concat_tables(
            [
                tell_change(self.deleted, "delete"),
                tell_change(self.before, "update_preimage"),
                tell_change(self.after, "update_postimage"),
                tell_change(self.inserted, "insert"),
            ]
        )


def compare_rows(old: pa.Table, new: pa.Table, identity: Sequence[str]) -> RowChanges:
    """What leads from the rows `old` to the rows `new`, which have the same columns.

    Rows with the same values in the columns `identity` are the same row; null equals null. Raises
    TidemarkError where a table has a row twice.
    """
    names = list(identity)
    sides = pa.concat_tables(
        [
            number_rows(old.select(names), _OLD),
            number_rows(new.select(names), _NEW),
        ],
        promote_options="default",
    )
    counted = [(side, what) for side in (_OLD, _NEW) for what in ("max", "count")]
    pairs = sides.group_by(names, use_threads=False).aggregate(counted)
    for side in (_OLD, _NEW):
        if (pc.max(pairs[f"{side}_count"]).as_py() or 0) > 1:
            raise TidemarkError(f"internal error: a table has two rows with the same {names}")
    rows_old, rows_new = (pairs[f"{side}_max"].combine_chunks() for side in (_OLD, _NEW))
    is_new, is_gone = pc.is_null(rows_old), pc.is_null(rows_new)
    is_both = pc.invert(pc.or_(is_new, is_gone))
    before, after = old.take(rows_old.filter(is_both)), new.take(rows_new.filter(is_both))
    differs = pa.array(~find_equal_rows(before, after))
    return RowChanges(
        inserted=new.take(rows_new.filter(is_new)),
        deleted=old.take(rows_old.filter(is_gone)),
        before=before.filter(differs),
        after=after.filter(differs),
    )


def combine_feeds(feeds: Sequence[pa.Table], identity: Sequence[str]) -> RowChanges:
    """What several commits have changed together; `feeds` are their change feeds, in order.

    A row that came and went is not told, nor one that is again as it was.
    """
    feed = pa.concat_tables(feeds)
    commits = np.repeat(np.arange(len(feeds)), [each.num_rows for each in feeds])
    is_after = np.asarray(pc.is_in(feed[CHANGE], value_set=pa.array(_AFTER)).to_numpy())
    # In one commit what a row was comes before what it is.
    places = (commits * 2 + is_after) * max(feed.num_rows, 1) + np.arange(feed.num_rows)
    placed = feed.select(list(identity)).append_column(_ORDER, pa.array(places))
    ends = placed.group_by(list(identity), use_threads=False)
    found = ends.aggregate([(_ORDER, "min"), (_ORDER, "max")])
    rows = feed.drop_columns([CHANGE])
    old = _take_sides(rows, found[f"{_ORDER}_min"], _BEFORE)
    new = _take_sides(rows, found[f"{_ORDER}_max"], _AFTER)
    return compare_rows(old, new, identity)


def _take_sides(rows: pa.Table, places: pa.ChunkedArray, side: tuple[str, str]) -> pa.Table:
    """The rows at those places that are of one side: what a row was, or what it is."""
    step, row = np.divmod(places.to_numpy(), max(rows.num_rows, 1))
    wanted = step % 2 == (side is _AFTER)
    return rows.take(pa.array(row[wanted]))


def find_equal_rows(one: pa.Table, other: pa.Table) -> Mask:
    """Which rows at the same place are equal in all columns. Null equals null, and NaN NaN."""
    equal = np.ones(one.num_rows, dtype=np.bool_)
    for name in one.column_names:
        equal &= _find_equal_values(one[name], other[name])
    return equal


def _find_equal_values(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Mask:
    kind = one.type
    if pa.types.is_nested(kind):
        # Arrow doesn't compare lists and structs.
        pairs: zip[tuple[Any, Any]] = zip(one.to_pylist(), other.to_pylist(), strict=True)
        return np.fromiter((a == b or is_same(a, b) for a, b in pairs), np.bool_, len(one))
    same = pc.fill_null(pc.equal(one, other), False)
    both_null = pc.and_(pc.is_null(one), pc.is_null(other))
    found = pc.or_(same, both_null)
    if pa.types.is_floating(kind):
        both_nan = pc.and_(pc.is_nan(one), pc.is_nan(other))
        found = pc.or_(found, pc.fill_null(both_nan, False))
    return np.asarray(found.to_numpy(), dtype=np.bool_)
