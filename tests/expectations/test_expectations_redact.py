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
        ("could not convert 'secret'\nmore", "could not convert '...'"),
        (
            'Error: The column "p59" in BatchData does not exist.',
            'Error: The column "p59" in BatchData does not exist.',
        ),
        ("", "no reason given"),
    ],
)
def test_a_reason_is_one_sentence_without_values(message: str, expected: str) -> None:
    flat = {"raised_exception": True, "exception_message": message, "exception_traceback": "secret"}
    assert reason_of_failure(flat) == "could not be evaluated: " + expected
    assert reason_of_failure({"some metric": flat}) == reason_of_failure(flat)


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
