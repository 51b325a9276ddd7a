"""Why there is no JVM, from what it has printed."""

import pytest

from jobs.cli.spark import _explain_no_java


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ("", "it said nothing"),
        ("JAVA_HOME is not set\n", "JAVA_HOME is not set"),
        (
            "Error occurred during initialization of VM\nMultiple garbage collectors selected\n",
            "Multiple garbage collectors selected",
        ),
    ],
)
def test_the_reason_is_quoted(printed: str, reason: str) -> None:
    assert _explain_no_java(printed).startswith(f"Spark's JVM did not start ({reason}); ")
