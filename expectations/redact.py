"""Takes the values of rows out of validation results, before anything is written or returned."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from great_expectations.core import ExpectationSuiteValidationResult, ExpectationValidationResult

from expectations.outcome import UNKNOWN
from windowing.storage.spark_conditions import find_condition

_COUNTS = (
    "element_count",
    "unexpected_count",
    "unexpected_percent",
    "unexpected_percent_total",
    "unexpected_percent_nonmissing",
    "missing_count",
    "missing_percent",
)
_STATISTICS = (
    "expect_column_mean_to_be_between",
    "expect_column_proportion_of_non_null_values_to_be_between",
    "expect_column_proportion_of_unique_values_to_be_between",
    "expect_column_stdev_to_be_between",
    "expect_column_sum_to_be_between",
    "expect_column_unique_value_count_to_be_between",
    "expect_table_column_count_to_be_between",
    "expect_table_column_count_to_equal",
    "expect_table_row_count_to_be_between",
    "expect_table_row_count_to_equal",
)
"""Types whose observed value is a statistic.

A minimum, a quantile or a set of distinct values is not one, because it is a value of some row.
"""
_WITHOUT_VALUES = re.compile(
    "|".join(
        (
            "the output lacks .+",
            r'Error: The column "[^"\n]+" in BatchData does not exist\.',
            r"'[<>=]+' not supported between instances of '[\w.]+' and '[\w.]+'",
            r"\w+ metrics cannot be computed on column of type [\w(), ]+\.",
            r"Expected numeric column type for function \w+\(\)\. Recieved type: [\w(), ]+",
            r"Unrecognized spark type: \w+",
            "No recognized spark types in expected_types_list",
        )
    )
)
"""Messages that name columns, types and operators, and nothing of a row."""
_ERROR = re.compile(r"Traceback \(most recent call last\):\n(?: .*\n)*(?:\w+\.)*([A-Z]\w*)[:\n]")
"""How a traceback begins, up to the class of its first error."""


def redact_results(
    suite: ExpectationSuiteValidationResult, ours: frozenset[str]
) -> ExpectationSuiteValidationResult:
    """The same results with counts and statistics alone; exceptions become failures with a reason.

    `ours`: types whose observed value is known to hold counts only.
    """
    suite.results = [_redact_result(result, ours) for result in suite.results]
    suite.success = all(result.success for result in suite.results)
    return suite


def reason_of_failure(info: Mapping[str, Any] | None) -> str | None:
    """Why an expectation couldn't be evaluated; None if it was.

    Messages quote values. Of those of Spark the error condition is kept, of others the class of the
    error, and the message where it can't have a value. `info` is Great Expectations' own, with
    everything in it.
    """
    raised = next(_find_raised(info or {}), None)
    if raised is None:
        return None
    message = str(raised.get("exception_message") or "")
    condition = find_condition(message)
    if condition is not None:
        return f"{UNKNOWN}Spark says {condition}"
    if _WITHOUT_VALUES.fullmatch(message):
        return UNKNOWN + message
    error = _ERROR.match(str(raised.get("exception_traceback") or ""))
    return (
        f"{UNKNOWN}it raised {error[1] if error else 'an error'}, and its message may quote rows; "
        "check that its arguments fit the type of the column"
    )


def reason_of_result(result: ExpectationValidationResult) -> str | None:
    """Why a redacted result couldn't be evaluated, None if it was."""
    message: str | None = result.exception_info["exception_message"]
    return message


def _find_raised(info: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What was raised, by an exception info, which is one, or one per metric."""
    if info.get("raised_exception"):
        yield info
    for value in info.values():
        if isinstance(value, Mapping):
            yield from _find_raised(value)


def _redact_result(
    result: ExpectationValidationResult, ours: frozenset[str]
) -> ExpectationValidationResult:
    config = result.expectation_config
    kind = config.type if config else ""
    message = reason_of_failure(result.exception_info)
    raised = {
        "raised_exception": message is not None,
        "exception_message": message,
        "exception_traceback": "",
    }
    success = bool(result.success) and message is None
    kept = _select_counts(kind, result.result or {}, ours)
    return ExpectationValidationResult(
        success=success, expectation_config=config, result=kept, exception_info=raised
    )


def _select_counts(kind: str, result: Mapping[str, Any], ours: frozenset[str]) -> dict[str, Any]:
    """The counts of a result, and its observed value if that can't be a value of some row."""
    kept = {name: result[name] for name in _COUNTS if name in result}
    value = result.get("observed_value")
    is_statistic = kind in _STATISTICS and isinstance(value, int | float)
    if kind in ours or is_statistic:
        kept["observed_value"] = value
    return kept
