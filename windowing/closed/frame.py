"""Rows of a closed output: as if nothing were closed, and where changes of them are written.

stored rows + restated rows -> rows of a pipeline that was never closed
changes of these + stored rows + restated rows -> changes of the output, and of the restated table
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.closed.rule import DELETED, LANES, list_placed
from windowing.columns import DELETE, END, INSERT, LAST, OP, START, UPDATE, quoted
from windowing.grid.frame import instant
from windowing.grid.placing import InChains
from windowing.rows import JSON, are_equal, column_named, is_true, write_json

OF_OUTPUT, OF_RESTATED = "__of_output", "__of_restated"
"""What a change does in each of the two tables; null is nothing."""
TOUCHED_END = "__touched_end"
_JSON = {
    **JSON,
    "timeZone": "UTC",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_STORED, _FROZEN, _SAME = "__stored", "__frozen", "__same"
_RESTATED = "__restated"


@dataclass(frozen=True)
class ClosedRows:
    """The rows of an output that end until an instant, and what distinguishes and shows them.

    `chain` says how sessions are made; None for other windows.
    """

    until_us: int
    identity: tuple[str, ...]
    shown: tuple[str, ...]
    chain: InChains | None

    def is_frozen(self) -> Column:
        """True for stored rows that do not change."""
        return F.col(END) <= instant(self.until_us)


def restated_schema(columns: T.StructType) -> T.StructType:
    """The columns of the table of restated rows of an output with these."""
    return T.StructType([*columns.fields, T.StructField(DELETED, T.BooleanType())])


def overlay(stored: DataFrame, restated: DataFrame, identity: Sequence[str]) -> DataFrame:
    """The rows as if nothing were closed: `stored`, with the restated ones in their place."""
    kept = stored.join(restated.select(*identity), [*identity], "left_anti")
    instead = restated.where(~F.col(DELETED)).drop(DELETED)
    return kept.select(*stored.columns).unionByName(instead, allowMissingColumns=True)


def place_changes(
    changed: DataFrame, stored: DataFrame, restated: DataFrame, rows: ClosedRows
) -> DataFrame:
    """What changes of the overlaid rows do to the output and to the table of restated rows.

    `changed` is computed already, because it is read twice.

    changed[op, row] -> changed + [__of_output, __of_restated, __deleted]
    """
    identity = list(rows.identity)
    stated = restated.select(*identity, F.lit(True).alias(_RESTATED))
    joined = _join_stored(changed, stored, rows).join(stated, identity, "left")
    joined = joined.join(find_touching(changed, stored, rows), identity, "left")
    exists = F.col(OP) != DELETE
    is_held = rows.is_frozen() | F.col(TOUCHED_END).isNotNull()
    # In the order of the fields of `Row`.
    flags = (exists, is_held, F.col(_FROZEN), F.col(_SAME), F.col(_STORED), F.col(_RESTATED))
    bits = F.lit(0)
    for place, flag in enumerate(flags):
        bits = bits + is_true(flag).cast("int") * F.lit(2**place)
    placed = list_placed()
    of_output = F.array(*(F.lit(each.output) for each in placed))
    of_restated = F.array(*(F.lit(each.restated) for each in placed))
    return joined.select(
        *(column_named(name) for name in changed.columns),
        F.get(of_output, bits).alias(OF_OUTPUT),
        F.get(of_restated, bits).alias(OF_RESTATED),
        (~exists).alias(DELETED),
    )


def _join_stored(found: DataFrame, stored: DataFrame, rows: ClosedRows) -> DataFrame:
    """Each row with what the output has of its identity.

    found -> found + [__stored, __frozen, __same], null where the output has no such row
    """
    compared = [name for name in rows.shown if name not in rows.identity]
    old = stored.select(
        *rows.identity,
        *(column_named(name).alias(f"__stored_{name}") for name in compared),
        rows.is_frozen().alias(_FROZEN),
        F.lit(True).alias(_STORED),
    )
    joined = found.join(old, [*rows.identity], "left")
    same = [column_named(name).eqNullSafe(F.col(f"`__stored_{name}`")) for name in compared]
    is_same = F.col(_STORED) & reduce(and_, same, F.lit(True))
    return joined.select(
        *(column_named(name) for name in (*found.columns, _STORED, _FROZEN)), is_same.alias(_SAME)
    )


def find_touching(changed: DataFrame, stored: DataFrame, rows: ClosedRows) -> DataFrame:
    """The changed sessions that would overlap frozen ones, and the first end of these.

    -> [identity, __touched_end]
    """
    if rows.chain is None:
        return changed.select(*rows.identity, F.col(END).alias(TOUCHED_END)).limit(0)
    keys = [name for name in rows.identity if name != START]
    frozen = stored.where(rows.is_frozen()).select(*keys, START, LAST, END)
    n_start, f_start = F.unix_micros(f"n.{START}"), F.unix_micros(f"f.{START}")
    begins_within = n_start <= F.unix_micros(f"f.{LAST}") + rows.chain.gap_us
    if rows.chain.longest_us is not None:
        begins_within = begins_within & (n_start < f_start + rows.chain.longest_us)
    ends_within = F.unix_micros(f"n.{END}") > f_start
    near = [*are_equal("n", "f", keys), begins_within, ends_within]
    hits = changed.alias("n").join(frozen.alias("f"), near)
    identity = [F.col(f"n.{quoted(name)}") for name in rows.identity]
    return hits.groupBy(*identity).agg(F.min(f"f.{END}").alias(TOUCHED_END))


def release_rows(stored: DataFrame, restated: DataFrame, rows: ClosedRows) -> DataFrame:
    """Every restated row with what it does to the output: restated + [op].

    Rows that do nothing are left out, such as those that an interrupted release has written.
    """
    joined = _join_stored(restated, stored, rows)
    is_there, is_same = F.col(_STORED).isNotNull(), is_true(F.col(_SAME))
    operation = (
        F.when(F.col(DELETED) & is_there, DELETE)
        .when(~F.col(DELETED) & ~is_there, INSERT)
        .when(~F.col(DELETED) & ~is_same, UPDATE)
    )
    named = joined.select(*(column_named(name) for name in restated.columns), operation.alias(OP))
    return named.where(F.col(OP).isNotNull())


def _write_floats(value: Column, kind: T.DataType) -> Column:
    """The value with the bits of each floating number as text.

    Versions of Java differ in how many decimals they write of some of them.
    """
    match kind:
        case T.FloatType() | T.DoubleType():
            return F.when(value.isNotNull(), F.format_string("%a", value))
        case T.ArrayType(elementType=inner):
            return F.transform(value, lambda each: _write_floats(each, inner))
        case T.MapType(valueType=inner):
            return F.transform_values(value, lambda _, each: _write_floats(each, inner))
        case T.StructType(fields=fields):
            parts = [
                _write_floats(value.getField(each.name), each.dataType).alias(each.name)
                for each in fields
            ]
            return F.when(value.isNotNull(), F.struct(*parts))
    return value


def sum_digests(rows: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    """How many rows there are, and the sums of the parts of their digests: [n, lane_0, ...].

    They depend on names and values, and not on the order of rows or of `columns`.

    -> one row
    """
    kinds = {name: rows.schema[name].dataType for name in sorted(columns)}
    exact = [_write_floats(column_named(name), kind).alias(name) for name, kind in kinds.items()]
    written = rows.select(*exact)
    text = write_json(written, kinds, _JSON)
    digest = F.sha2(text, 256)
    sums = []
    for lane in range(LANES):
        part = F.conv(F.substring(digest, 16 * lane + 1, 16), 16, 10).cast("decimal(20,0)")
        sums.append(F.coalesce(F.sum(part), F.lit(0)).alias(f"lane_{lane}"))
    return written.agg(F.count(F.lit(1)).alias("n"), *sums)
