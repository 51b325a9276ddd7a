"""The types that a column had before the source widened it, as Delta's log names them.

Delta records every widening in the metadata of the field: `delta.typeChanges`, a list of `fromType`
and `toType`, oldest first, with a `fieldPath` where the type lies within an array or a map.
"""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import types as T

_CHANGES = "delta.typeChanges"


def schemas_over_time(schema: T.StructType) -> tuple[T.StructType, ...]:
    """`schema` as it was before its columns were widened, oldest first, `schema` itself last.

    The steps of one column are in order. Which step of one column went with which of another is not
    recorded, so they are counted back from today.
    """
    steps = _count_changes(schema)
    schemas = [_struct_before(schema, back) for back in range(steps + 1)]
    schemas.reverse()
    return tuple(schemas)


def _count_changes(kind: T.DataType) -> int:
    """The most changes that any one column, nested ones too, has gone through."""
    if isinstance(kind, T.ArrayType):
        return _count_changes(kind.elementType)
    if not isinstance(kind, T.StructType):
        return 0
    most = 0
    for field in kind.fields:
        own = [len(changes) for changes in _changes_by_path(field).values()]
        most = max(most, _count_changes(field.dataType), *own)
    return most


def _struct_before(schema: T.StructType, back: int) -> T.StructType:
    fields = []
    for field in schema.fields:
        kind = _type_before(field, back)
        fields.append(T.StructField(field.name, kind, field.nullable))
    return T.StructType(fields)


def _type_before(field: T.StructField, back: int) -> T.DataType:
    """The type of `field` before its last `back` changes; before all, if it had fewer."""
    kind = _nested_before(field.dataType, back)
    if not back:
        return kind
    for path, changes in _changes_by_path(field).items():
        first_undone = changes[-min(back, len(changes))]
        kind = _with_type_at(kind, path, _parse_type(first_undone["fromType"]))
    return kind


def _nested_before(kind: T.DataType, back: int) -> T.DataType:
    if isinstance(kind, T.StructType):
        return _struct_before(kind, back)
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_nested_before(kind.elementType, back), kind.containsNull)
    return kind


def _with_type_at(kind: T.DataType, path: Sequence[str], new: T.DataType) -> T.DataType:
    """`kind` with the type `new` at `path`; maps stay as they are, because no digest has them."""
    if not path:
        return new
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_with_type_at(kind.elementType, path[1:], new), kind.containsNull)
    return kind


def _changes_by_path(field: T.StructField) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """The changes of a field, by where in its type they are; the empty path is the field itself."""
    by_path: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for change in field.metadata.get(_CHANGES, []):
        field_path = change.get("fieldPath", "")
        path = tuple(part for part in field_path.split(".") if part)
        by_path.setdefault(path, []).append(change)
    return by_path


def _parse_type(name: str) -> T.DataType:
    """A type by the name that Delta's log gives it, such as `integer` or `decimal(10,2)`."""
    field = {"name": "c", "type": name, "nullable": True, "metadata": {}}
    return T.StructField.fromJson(field).dataType
