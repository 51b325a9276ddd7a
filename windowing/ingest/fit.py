"""Records -> rows with the pinned types, and the reason for each record that is none.

What does not fit is never changed until it does; values.py says what fits.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import FILE, RECORD, RESCUED, WHY
from windowing.ingest.columns import PinnedColumn
from windowing.ingest.frame import Records
from windowing.ingest.json_values import (
    OBJECT,
    as_json,
    compute_once,
    find_unknown,
    given_in,
    is_nested,
    join_lists,
    map_of,
)
from windowing.ingest.values import Fitted, Fitting, describe_unfit
from windowing.spec.pipeline import CsvForm

_FITTED = "__fitted_"


def fit_rows(
    records: Records,
    columns: Sequence[PinnedColumn],
    types: T.StructType,
    csv: CsvForm,
    on_unfit_value: str,
) -> DataFrame:
    """The rows of the source table, and for those that are none the reason.

    Records -> [columns..., source_file, rescued, __record, __why]. With `on_unfit_value` rescue, a
    value that does not fit is NULL in its column and kept in `rescued`.
    """
    fitting = Fitting(csv, on_unfit_value)
    nested: dict[str, Column] = {}
    made: dict[str, Column] = {}
    whys: list[Column] = [F.col(WHY)]
    rests: dict[str, Column] = {}
    for place, (column, field) in enumerate(zip(columns, types.fields, strict=True)):
        kind, no = field.dataType, describe_unfit(column.source, column.type)
        opened = _open(records, fitting, column, kind)
        if opened is None:
            made[column.name] = F.lit(None).cast(kind)
            continue
        value, stored = opened
        if stored is None or not is_nested(kind):
            fitted = fitting.fit_scalar(value, stored, kind, no, column.format)
        else:
            # All that was found of it is a column of the rows, so that it is computed once.
            name = f"{_FITTED}{place}"
            nested[name] = fitting.fit_nested(value, stored, kind, column.source, no)
            fitted = Fitted.from_column(F.col(name))
        made[column.name] = fitted.value
        if not fitting.rescues:
            whys.append(fitted.why)
        if fitting.rescues or is_nested(kind):
            rests[column.source] = fitted.rest
    # A record with a name twice is none, and no map either.
    rest = F.when(F.col(WHY).isNull(), records.rest)
    left = given_in(F.map_concat(rest, map_of(rests)) if rests else rest)
    return records.rows.withColumns(nested).select(
        *(value.alias(name) for name, value in made.items()),
        F.col(FILE),
        F.when(F.size(left) > 0, F.to_json(left)).alias(RESCUED),
        F.col(RECORD),
        F.coalesce(*whys, F.lit(None).cast("string")).alias(WHY),
    )


def _open(
    records: Records, fitting: Fitting, column: PinnedColumn, kind: T.DataType
) -> tuple[Column, T.DataType | None] | None:
    """The value of a column as it is fitted, and the type that it has; None where files lack it."""
    value = records.values.get(column.source)
    if value is None:
        return None
    stored = None if records.types is None else records.types[column.source]
    return fitting.open_column(value, stored, kind)


def find_new(
    records: Records, columns: Sequence[PinnedColumn], types: T.StructType, csv: CsvForm
) -> DataFrame:
    """The names in records that belong to no pinned column, and to no field of one. -> [name].

    A field has the names of all that it is in before it, with points between.
    """
    fitting = Fitting(csv, "rescue")
    found = [F.map_keys(records.rest)]
    for column, field in zip(columns, types.fields, strict=True):
        opened = _open(records, fitting, column, field.dataType)
        if opened is not None:
            found += _find_inside(as_json(*opened), column, field.dataType)
    return _distinct(records.rows, found)


def find_rescued(
    rows: DataFrame, columns: Sequence[PinnedColumn], types: T.StructType
) -> DataFrame:
    """The same names of what is in `rescued`, which has the form that the record had. -> [name]."""
    rescued = F.from_json(RESCUED, OBJECT)
    known = [column.source for column in columns]
    found = [F.filter(F.map_keys(rescued), lambda name: ~name.isin(known))]
    for column, field in zip(columns, types.fields, strict=True):
        found += _find_inside(
            F.try_element_at(rescued, F.lit(column.source)), column, field.dataType
        )
    return _distinct(rows.where(F.col(WHY).isNull() & F.col(RESCUED).isNotNull()), found)


def _find_inside(value: Column, column: PinnedColumn, kind: T.DataType) -> list[Column]:
    """The names inside a JSON value that its type does not have, as at most one list."""
    if not is_nested(kind):
        return []
    path = F.lit(column.source)
    return [compute_once(value, lambda value: join_lists(find_unknown(value, kind, path)))]


def _distinct(rows: DataFrame, found: Sequence[Column]) -> DataFrame:
    return rows.select(F.explode(join_lists(found)).alias("name")).distinct()
