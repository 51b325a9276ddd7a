"""Delta's record of widened columns -> the columns as they were, step by step."""

from typing import Any

from pyspark.sql import types as T

from windowing.source.widening import schemas_over_time


def column(name: str, kind: Any, *changes: tuple[str, str, str]) -> dict[str, Any]:
    """A column as Delta's log has it; each change is (from, to, path)."""
    listed = [
        {"fromType": old, "toType": new} | ({"fieldPath": path} if path else {})
        for old, new, path in changes
    ]
    metadata = {"delta.typeChanges": listed} if listed else {}
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def over_time(*columns: dict[str, Any]) -> list[str]:
    """Every step as Spark writes a type."""
    schema = T.StructType.fromJson({"type": "struct", "fields": list(columns)})
    return [step.simpleString() for step in schemas_over_time(schema)]


def test_a_table_that_never_changed_has_one_step() -> None:
    assert over_time(column("key", "string"), column("v", "long")) == [
        "struct<key:string,v:bigint>"
    ]


def test_every_step_of_a_column_is_kept_in_order() -> None:
    changes = [("short", "integer", ""), ("integer", "decimal(12,2)", "")]
    assert over_time(column("v", "decimal(12,2)", *changes)) == [
        "struct<v:smallint>",
        "struct<v:int>",
        "struct<v:decimal(12,2)>",
    ]


def test_columns_with_fewer_steps_are_at_their_first_type_earlier() -> None:
    twice = column("v", "long", ("short", "integer", ""), ("integer", "long", ""))
    once = column("d", "timestamp_ntz", ("date", "timestamp_ntz", ""))
    assert over_time(twice, once, column("key", "string")) == [
        "struct<v:smallint,d:date,key:string>",
        "struct<v:int,d:date,key:string>",
        "struct<v:bigint,d:timestamp_ntz,key:string>",
    ]


def test_types_within_arrays_and_structs_are_followed() -> None:
    array = {"type": "array", "elementType": "double", "containsNull": True}
    inner = {"type": "struct", "fields": [column("x", "long", ("integer", "long", ""))]}
    nested = {"type": "array", "elementType": array, "containsNull": True}
    assert over_time(
        column("list", nested, ("float", "double", "element.element")),
        column("inner", inner),
    ) == [
        "struct<list:array<array<float>>,inner:struct<x:int>>",
        "struct<list:array<array<double>>,inner:struct<x:bigint>>",
    ]
