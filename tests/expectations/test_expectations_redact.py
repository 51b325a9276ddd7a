"""Reasons say what went wrong without quoting rows.

Packages that were put off come when they are asked for.
"""

import subprocess
import sys

import pytest

from expectations.redact import reason_of_failure


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "[CAST_INVALID_INPUT] The value 'secret' of the type \"STRING\" cannot be cast",
            "Spark says CAST_INVALID_INPUT",
        ),
        ("[OUT_OF_RANGE.WITHOUT_SUGGESTION] 4711", "Spark says OUT_OF_RANGE.WITHOUT_SUGGESTION"),
        ("the output lacks p59, p95", "the output lacks p59, p95"),
        (
            'Error: The column "p59" in BatchData does not exist.',
            'Error: The column "p59" in BatchData does not exist.',
        ),
        (
            "'<=' not supported between instances of 'str' and 'float'",
            "'<=' not supported between instances of 'str' and 'float'",
        ),
        (
            "ColumnValuesBetween metrics cannot be computed on column of type DecimalType(10,2).",
            "ColumnValuesBetween metrics cannot be computed on column of type DecimalType(10,2).",
        ),
        (
            "Expected numeric column type for function mean(). Recieved type: StringType()",
            "Expected numeric column type for function mean(). Recieved type: StringType()",
        ),
        ("Unrecognized spark type: Strings", "Unrecognized spark type: Strings"),
    ],
)
def test_a_reason_is_one_sentence_without_values(message: str, expected: str) -> None:
    flat = raised(message, "secret")
    assert reason_of_failure(flat) == "could not be evaluated: " + expected
    assert reason_of_failure({"some metric": flat}) == reason_of_failure(flat)


@pytest.mark.parametrize(
    "message",
    [
        "Unknown string format: customer-4711@example.org",
        "Unknown string format: [A4711]",
        "could not convert string to float: 'customer-4711@example.org'\nmore",
        'Could not parse "metric_value" of 4711 (of type "<class \'int\'>) into datetime',
        "Bucketizer_5f6a1e165ff1 parameter splits given invalid value [-Infinity,4711.0,Infinity].",
        "4711",
        "the output\nlacks 4711",
        "",
    ],
)
def test_of_any_other_message_the_class_of_the_error_is_kept(message: str) -> None:
    trace = (
        "Traceback (most recent call last):\n"
        '  File "validator.py", line 683, in graph_validate\n'
        "    result = expectation.metrics_validate(\n"
        "             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        f"dateutil.parser._parser.ParserError: {message}\nSecret: 4711\n"
    )
    meant = "its message may quote rows; check that its arguments fit the type of the column"
    reason = f"could not be evaluated: it raised %s, and {meant}"
    assert reason_of_failure(raised(message, trace)) == reason % "ParserError"
    for unknown in ("", "4711", "Secret: 4711", "Traceback (most recent call last):\n 4711: 4711"):
        assert reason_of_failure(raised(message, unknown)) == reason % "an error"


def raised(message: str, trace: str) -> dict[str, object]:
    """What Great Expectations says of an error."""
    return {"raised_exception": True, "exception_message": message, "exception_traceback": trace}


def test_without_an_exception_there_is_no_reason() -> None:
    assert reason_of_failure(None) is None
    assert reason_of_failure({"raised_exception": False, "exception_message": None}) is None


@pytest.mark.slow
def test_packages_that_were_put_off_come_when_they_are_asked_for() -> None:
    code = """
import sys
from expectations.library import import_great_expectations
import_great_expectations()
assert "scipy.stats" not in sys.modules and "altair" not in sys.modules
from great_expectations.expectations.core import expect_column_kl_divergence_to_be_less_than as kl
assert kl.stats.entropy([0.5, 0.5]) > 0.69 and kl.alt.Chart
import scipy.stats, altair
assert scipy.stats.norm.cdf(0) == 0.5 and altair.Chart
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
