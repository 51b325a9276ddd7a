"""The rows that fail one expectation of Great Expectations, as Spark selects them."""

from typing import Any

from pyspark.sql import DataFrame

from expectations.library import import_great_expectations
from windowing.rows import column_named

import_great_expectations()

from great_expectations.execution_engine.sparkdf_execution_engine import (  # noqa: E402
    SparkDFExecutionEngine,
)
from great_expectations.expectations.expectation import (  # noqa: E402
    ColumnMapExpectation,
    ColumnPairMapExpectation,
    Expectation,
    MulticolumnMapExpectation,
)
from great_expectations.validator.metric_configuration import MetricConfiguration  # noqa: E402
from great_expectations.validator.metrics_calculator import MetricsCalculator  # noqa: E402

_OF_ROWS = (ColumnMapExpectation, ColumnPairMapExpectation, MulticolumnMapExpectation)
_OF_COLUMNS = frozenset(
    ("expect_column_values_to_be_of_type", "expect_column_values_to_be_in_type_list")
)
"""Types that have rows elsewhere; Spark's columns have one type for all rows."""
_BY_OTHER_ROWS = frozenset(
    ("expect_column_value_z_scores_to_be_less_than", "expect_column_values_to_not_be_outliers")
)
"""Types by which a row fails or not, depending on rows that do not fail."""
_ROWS, _MARK = "rows", "unexpected."


def names_rows(kind: type[Expectation]) -> bool:
    """Whether single rows fail an expectation of this type."""
    return issubclass(kind, _OF_ROWS) and kind.expectation_type not in _OF_COLUMNS


def fails_by_rows(kind: type[Expectation]) -> bool:
    """Whether the rows that fail would also fail if there were no others."""
    return names_rows(kind) and kind.expectation_type not in _BY_OTHER_ROWS


def select_unexpected(rows: DataFrame, expectation: Any) -> DataFrame:
    """The rows that fail the expectation, which has to be one that `names_rows`.

    Its `mostly` is not regarded. Whatever Great Expectations can't evaluate is raised as its error.
    """
    engine = SparkDFExecutionEngine()
    engine.load_batch_data(_ROWS, rows)
    dependencies = expectation.get_validation_dependencies(engine, {"result_format": "BASIC"})
    counted = dependencies.metric_configurations[f"{expectation.map_metric}.unexpected_count"]
    wanted = MetricConfiguration(
        f"{expectation.map_metric}.condition",
        counted.metric_domain_kwargs,
        counted.metric_value_kwargs,
    )
    condition, compute, accessor = MetricsCalculator(engine).get_metric(wanted)
    domain = engine.get_domain_records({**compute, **accessor})
    # Some conditions compare rows with each other, which a filter can't.
    failing: DataFrame = domain.withColumn(_MARK, condition).where(column_named(_MARK))
    return failing.drop(_MARK)
