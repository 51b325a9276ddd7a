"""Equal rows have equal digests, before and after their columns were widened."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from windowing.admit.digest import with_row_digest
from windowing.columns import DIGEST


def digests(spark: SparkSession, values: str, *earlier: T.DataType) -> list[int]:
    """The digests of rows of one column `v`, whose earlier types are these."""
    rows = spark.sql(f"select v from values {values} as t(v)")
    return [row[DIGEST] for row in with_row_digest(rows, {"v": earlier}).collect()]


INT, LONG, DECIMAL = T.IntegerType(), T.LongType(), T.DecimalType(12, 2)


@pytest.mark.parametrize(
    ("before", "after", "earlier"),
    [
        ("(7), (-1)", "(7L), (-1L)", (INT,)),
        ("(7), (-1)", "(7.00BD), (-1.00BD)", (INT,)),
        ("(7), (-1)", "(7.0D), (-1.0D)", (INT,)),
        ("(0.1F), (float('nan'))", "(cast(0.1F as double)), (double('nan'))", (T.FloatType(),)),
        ("(1.50BD)", "(cast(1.5 as decimal(20,6)))", (T.DecimalType(3, 2),)),
        ("(date'1969-12-31')", "(timestamp_ntz'1969-12-31 00:00:00')", (T.DateType(),)),
        ("(array(1, null))", "(array(1L, null))", (T.ArrayType(INT),)),
        (
            "(named_struct('x', 1))",
            "(named_struct('x', 1L))",
            (T.StructType([T.StructField("x", INT)]),),
        ),
    ],
)
def test_a_value_keeps_its_digest_when_its_column_is_widened(
    before: str, after: str, earlier: tuple[T.DataType, ...], spark: SparkSession
) -> None:
    assert digests(spark, after, *earlier) == digests(spark, before)
    assert digests(spark, after) != digests(spark, before), "or nothing has to be done for it"


def test_each_value_is_hashed_as_the_first_type_that_holds_it(spark: SparkSession) -> None:
    found = digests(spark, "(7.00BD), (5000000000.00BD), (7.25BD)", INT, LONG)
    as_int, as_long = digests(spark, "(7)"), digests(spark, "(5000000000L)")
    assert found == [*as_int, *as_long, *digests(spark, "(7.25BD)")]
    assert len(set(found)) == 3


def test_a_missing_value_has_the_digest_of_a_missing_column(spark: SparkSession) -> None:
    assert digests(spark, "(cast(null as bigint))", INT) == [0]
