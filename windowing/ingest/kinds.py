"""Types of columns with parts: which a table can have, and how they are written."""

import re

from pyspark.sql import types as T

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_IMPOSSIBLE = set(" ,;{}()\n\t=")
"""Characters that no field of a Delta table has in its name."""


def write_kind(kind: T.DataType) -> str:
    """Spark's text for a type, with names in backticks where they need them."""
    match kind:
        case T.StructType():
            fields = (f"{_write_name(f.name)}:{write_kind(f.dataType)}" for f in kind.fields)
            return f"struct<{','.join(fields)}>"
        case T.ArrayType():
            return f"array<{write_kind(kind.elementType)}>"
        case T.MapType():
            return f"map<{write_kind(kind.keyType)},{write_kind(kind.valueType)}>"
    return kind.simpleString()


def _write_name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`"


def leave_impossible(kind: T.DataType) -> T.DataType:
    """The type without the fields whose names a table can't have, text where it has no others.

    Of names that differ by case alone a table has the first.
    """
    match kind:
        case T.StructType():
            possible: dict[str, T.StructField] = {}
            for field in kind.fields:
                if field.name and not _IMPOSSIBLE & {*field.name}:
                    inner = leave_impossible(field.dataType)
                    possible.setdefault(field.name.lower(), T.StructField(field.name, inner))
            return T.StructType([*possible.values()]) if possible else T.StringType()
        case T.ArrayType():
            return T.ArrayType(leave_impossible(kind.elementType))
        case T.MapType():
            return T.MapType(leave_impossible(kind.keyType), leave_impossible(kind.valueType))
    return kind
