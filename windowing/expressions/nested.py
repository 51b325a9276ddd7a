"""Parts of columns: fields of structs, elements of arrays and maps, and values in JSON text.

A part that is not there is null: a field of a null struct, an element beyond the end, a key that a
map does not have, a path that a text does not contain.
"""

from collections.abc import Iterable
from functools import reduce
from operator import and_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import quoted
from windowing.expressions.values import (
    TEXT,
    Built,
    Unfit,
    Value,
    Values,
    literal_value,
    require_families,
)
from windowing.rows import column_named
from windowing.spec.expressions.parse import print_expression
from windowing.spec.expressions.tree import Call, path_of
from windowing.spec.words import join_names, quote_value, suggest_name


def part_column(path: Iterable[str | int]) -> Column:
    """The part of a column that a path leads to: its name, then fields and places of elements.

    A text is a field here, also where it is the key of a map, because Spark reads both alike.
    """
    name, *steps = path
    return part_of(column_named(str(name)), steps)


def part_of(column: Column, steps: Iterable[str | int]) -> Column:
    """The same from a column of any name, along fields and places of elements."""
    return reduce(_take_step, steps, column)


def _take_step(column: Column, step: str | int) -> Column:
    # Spark's brackets would raise beyond the end of an array; `get` gives null there.
    return F.get(column, F.lit(step)) if isinstance(step, int) else column.getItem(step)


def find_part_type(path: Iterable[str | int], schema: T.StructType) -> T.DataType | None:
    """The type of the part of a column that a path leads to; None where there is no such part."""
    kind: T.DataType = schema
    for step in path:
        if isinstance(kind, T.StructType) and step in kind.names:
            kind = kind[step].dataType
        elif isinstance(kind, T.ArrayType):
            kind = kind.elementType
        elif isinstance(kind, T.MapType):
            kind = kind.valueType
        else:
            return None
    return kind


def have_values(paths: Iterable[Iterable[str | int]]) -> Column:
    """True where none of the parts of columns is null."""
    return reduce(and_, (part_column(path).isNotNull() for path in paths), F.lit(True))


def refuse_column_with_points(call: Call, schema: T.StructType) -> None:
    """Raises Unfit where `a.b` is a field of nothing, but the name of a column."""
    path = path_of(call)
    name = ".".join(map(str, path))
    if path[0] not in schema.names and name in schema.names:
        how = f"the column of that name is written {quoted(name)}"
        raise Unfit(f"{quote_value(print_expression(call))} is a field of a struct; {how}")


def build_field(call: Call, values: Values) -> Built:
    """The field of a struct, by its very name."""
    (struct,) = values[:1]
    name = str(literal_value(call.arguments[1]))
    if not isinstance(struct.kind, T.StructType):
        raise Unfit(f"{_describe_part(call, struct)} is no struct{_advise(struct, name)}")
    if name not in struct.kind.names:
        fields = struct.kind.names
        has = f"{suggest_name(name, fields)}; it has {join_names(sorted(fields))}"
        whole = quote_value(print_expression(struct.node))
        raise Unfit(f"{quote_value(print_expression(call))}: {whole} has no field {name!r}{has}")
    return struct.kind[name].dataType, struct.column.getField(name)


def build_element(call: Call, values: Values) -> Built:
    """The element of an array at a place from 0, or that of a map by its key."""
    (whole,) = values[:1]
    step = literal_value(call.arguments[1])
    if isinstance(whole.kind, T.ArrayType):
        if not isinstance(step, int):
            raise Unfit(f"{_describe_part(call, whole)} is an array; write its place, as in [0]")
        return whole.kind.elementType, F.get(whole.column, F.lit(step))
    if not isinstance(whole.kind, T.MapType):
        raise Unfit(f"{_describe_part(call, whole)} is neither an array nor a map")
    if not isinstance(step, str) or whole.kind.keyType != TEXT:
        raise Unfit(f"{_describe_part(call, whole)} is a map; only texts can be keys, as in ['k']")
    return whole.kind.valueType, whole.column.getItem(step)


def build_json_value(call: Call, values: Values) -> Built:
    """What a text of JSON has at a path, as text; null where it is no JSON."""
    require_families("a text", call, values)
    path = str(literal_value(call.arguments[1]))
    return TEXT, F.get_json_object(values[0].column, path)


def _describe_part(call: Call, whole: Value) -> str:
    return f"{quote_value(print_expression(call))}: {quote_value(str(whole))}"


def _advise(whole: Value, name: str) -> str:
    """What to write instead of a field of something that is no struct."""
    text = print_expression(whole.node)
    match whole.kind:
        case T.StringType():
            return f"; read JSON text by get_json_object({text}, '$.{name}')"
        case T.ArrayType():
            return f"; write a place first, as in {text}[0].{name}"
        case T.MapType():
            return f"; write {text}['{name}']"
    return ""
