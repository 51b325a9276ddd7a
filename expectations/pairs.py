"""Pairs of columns in order, where a NULL on one side fails.

Great Expectations counts a row for Spark only where its condition is false, and with a NULL it is
neither true nor false. Elsewhere such a row fails, as `ignore_row_if` says.
"""

from typing import Any

from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.metrics.column_pair_map_metrics import (
    column_pair_values_greater as greater,
)
from great_expectations.expectations.metrics.map_metric_provider.column_pair_condition_partial import (  # noqa: E501
    column_pair_condition_partial as of_pairs,
)
from pyspark.sql import Column

from windowing.rows import is_true


class PairsInOrder(greater.ColumnPairValuesAGreaterThanB):
    """Whether the first value is greater; takes the place of the condition of this name."""

    @of_pairs(engine=SparkDFExecutionEngine)  # type: ignore[untyped-decorator]
    def _spark(cls, column_A: Column, column_B: Column, **arguments: Any) -> Column:  # noqa: N803
        in_order = column_A > column_B
        if arguments.get("or_equal"):
            in_order = in_order | column_A.eqNullSafe(column_B)
        return is_true(in_order)
