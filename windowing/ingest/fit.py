"""Records -> rows with the pinned types, and the reason for each record that is none.

What does not fit is never changed until it does; values.py says what fits.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import FILE, RECORD, RESCUED, WHY
from windowing.ingest.columns import PinnedColumn
from windowing.ingest.frame import Records
from windowing.ingest.json_values import (
    OBJECT,
    as_json,
    find_unknown,
    given_in,
    is_nested,
    join_lists,
    map_of,
)
from windowing.ingest.values import Fitted, Fitting, describe_unfit, parts_of
from windowing.spec.pipeline import CsvForm

_OPENED = "__opened_"
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
    rows, opened = _open(records, fitting, columns, types)
    rows, fitted = _fit_columns(rows, opened, fitting, columns, types)
    made: dict[str, Column] = {}
    whys: list[Column] = [F.col(WHY)]
    rests: dict[str, Column] = {}
    for column, field in zip(columns, types.fields, strict=True):
        found = fitted.get(column.source)
        if found is None:
            made[column.name] = F.lit(None).cast(field.dataType)
            continue
        made[column.name] = found.value
        if on_unfit_value != "rescue":
            whys.append(found.why)
        if found.rest is not None:
            rests[column.source] = found.rest
    rest = F.map_concat(records.rest, map_of(rests)) if rests else records.rest
    left = given_in(rest)
    return rows.select(
        *(value.alias(name) for name, value in made.items()),
        F.col(FILE),
        F.when(F.size(left) > 0, F.to_json(left)).alias(RESCUED),
        F.col(RECORD),
        F.coalesce(*whys, F.lit(None).cast("string")).alias(WHY),
    )


def _open(
    records: Records, fitting: Fitting, columns: Sequence[PinnedColumn], types: T.StructType
) -> tuple[DataFrame, dict[str, tuple[Column, T.DataType | None]]]:
    """The values of the columns by their names in files, with the types that they have.

    Those with parts are columns of the rows, because each of their parts is found in them.
    """
    found: dict[str, tuple[Column, T.DataType | None]] = {}
    more: dict[str, Column] = {}
    for place, (column, field) in enumerate(zip(columns, types.fields, strict=True)):
        value = records.values.get(column.source)
        if value is None:
            continue
        stored = None if records.types is None else records.types[column.source]
        value, stored = fitting.open_column(value, stored, field.dataType)
        if isinstance(stored, T.VariantType) and is_nested(field.dataType):
            more[f"{_OPENED}{place}"], value = value, F.col(f"{_OPENED}{place}")
        found[column.source] = value, stored
    return records.rows.withColumns(more), found


def _fit_columns(
    rows: DataFrame,
    opened: Mapping[str, tuple[Column, T.DataType | None]],
    fitting: Fitting,
    columns: Sequence[PinnedColumn],
    types: T.StructType,
) -> tuple[DataFrame, dict[str, Fitted]]:
    """The values of the columns by their names in files, as they fit.

    Those with parts are columns of the rows with all that was found of them.
    """
    found: dict[str, Fitted] = {}
    more: dict[str, Column] = {}
    for place, (column, field) in enumerate(zip(columns, types.fields, strict=True)):
        if column.source not in opened:
            continue
        value, stored = opened[column.source]
        kind, no = field.dataType, describe_unfit(column.source, column.type)
        if stored is None or not is_nested(kind):
            found[column.source] = fitting.fit_scalar(value, stored, kind, no, column.format)
            continue
        name = f"{_FITTED}{place}"
        more[name] = fitting.fit_nested(value, stored, kind, column.source, no)
        found[column.source] = parts_of(F.col(name))
    return rows.withColumns(more), found


def find_new(
    records: Records, columns: Sequence[PinnedColumn], types: T.StructType, csv: CsvForm
) -> DataFrame:
    """The names in records that belong to no pinned column, and to no field of one. -> [name].

    A field has the names of all that it is in before it, with points between.
    """
    rows, opened = _open(records, Fitting(csv, "rescue"), columns, types)
    found = [F.map_keys(records.rest)]
    for column, field in zip(columns, types.fields, strict=True):
        if column.source in opened:
            inside = as_json(*opened[column.source])
            found += find_unknown(inside, field.dataType, F.lit(column.source))
    return _distinct(rows, found)


def find_rescued(
    rows: DataFrame, columns: Sequence[PinnedColumn], types: T.StructType
) -> DataFrame:
    """The same names of what is in `rescued`, which has the form that the record had. -> [name]."""
    rescued = F.from_json(RESCUED, OBJECT)
    known = [column.source for column in columns]
    found = [F.filter(F.map_keys(rescued), lambda name: ~name.isin(known))]
    for column, field in zip(columns, types.fields, strict=True):
        value = F.try_element_at(rescued, F.lit(column.source))
        found += find_unknown(value, field.dataType, F.lit(column.source))
    return _distinct(rows.where(F.col(WHY).isNull() & F.col(RESCUED).isNotNull()), found)


def _distinct(rows: DataFrame, found: Sequence[Column]) -> DataFrame:
    return rows.select(F.explode(join_lists(found)).alias("name")).distinct()
