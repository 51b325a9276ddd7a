"""What a table can have of a type that was guessed, and how it is written."""

import pytest
from pyspark.sql import types as T

from windowing.ingest.kinds import leave_impossible, write_kind


def struct(*names: str) -> T.StructType:
    return T.StructType([T.StructField(name, T.LongType()) for name in names])


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (T.LongType(), "bigint"),
        (struct("a", "b_2"), "struct<a:bigint,b_2:bigint>"),
        (
            struct("a-b", "c`d", "2", "a.b"),
            "struct<`a-b`:bigint,`c``d`:bigint,`2`:bigint,`a.b`:bigint>",
        ),
        (struct("a b", "c"), "struct<c:bigint>"),
        (struct("a", "A", "b"), "struct<a:bigint,b:bigint>"),
        (struct("a b", ""), "string"),
        (T.ArrayType(struct("a=b", "c")), "array<struct<c:bigint>>"),
        (T.MapType(T.StringType(), struct("x", "y;")), "map<string,struct<x:bigint>>"),
        (T.StructType([T.StructField("r", struct("x,", "y"))]), "struct<r:struct<y:bigint>>"),
        (T.DecimalType(10, 2), "decimal(10,2)"),
    ],
)
def test_fields_that_a_table_can_not_have_are_left_out(kind: T.DataType, text: str) -> None:
    assert write_kind(leave_impossible(kind)) == text
