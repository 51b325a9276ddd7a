"""What the log stores say in the JVM is told as one sentence, and ends a command with its code."""

import re
from pathlib import Path

import pytest

import windowing.storage.java
from jobs.foreign_errors.commit_errors import explain_commit_error
from windowing.errors import Busy, CommitUnknown, TidemarkError, UsageError
from windowing.storage import spark_internals

SOURCES = "\n".join(
    file.read_text() for file in Path(windowing.storage.java.__path__[0]).glob("*.java")
)
IN_JAVA = """An error occurred while calling o77.save.
: {class_name}: {text}
\tat tidemark.ConditionalLogStore.write(ConditionalLogStore.java:66)
\tat io.delta.storage.Other.call(Other.java:1)
Caused by: java.io.IOException: again {text}
"""
FILE = "s3a://bucket/my lake/hourly/_delta_log/00000000000000000012.json"


def test_the_marks_are_those_that_the_log_stores_write() -> None:
    for mark in ("FENCED", "COMMIT_UNKNOWN", "UNSAFE_STORE"):
        assert f'"{getattr(spark_internals, mark)}"' in SOURCES
    assert len(re.findall(r'"TIDEMARK_\w+"', SOURCES)) == 3


@pytest.mark.parametrize(
    ("class_name", "text", "error", "said"),
    [
        (
            "tidemark.Fence$FencedException",
            "TIDEMARK_FENCED: version 9 of s3a://b/l may not be committed by this process",
            Busy,
            "another process has taken over while this one was at work (version 9 of s3a://b/l "
            "may not be committed by this process); the next command finishes what is left",
        ),
        (
            "tidemark.ConditionalLogStore$CommitUnknownException",
            f"TIDEMARK_COMMIT_UNKNOWN: it is unknown whether {FILE} was committed: "
            "org.apache.hadoop.fs.s3a.AWSClientIOException: PUT 0-byte object",
            CommitUnknown,
            f"it is unknown whether {FILE} was committed, because the store did not answer; the "
            "next command looks, and goes on from what it finds",
        ),
        (
            "tidemark.ConditionalLogStore$CommitUnknownException",
            f"TIDEMARK_COMMIT_UNKNOWN: it is unknown whether {FILE} was committed: "
            f"java.nio.file.AccessDeniedException: {FILE}: PUT: S3Exception: null (Service: S3, "
            "Status Code: 403, Request ID: 7)",
            CommitUnknown,
            f"it is unknown whether {FILE} was committed, because the store refused the "
            "credentials, which may have expired; renew them; the next command looks, and goes on "
            "from what it finds",
        ),
        (
            "java.io.IOException",
            "TIDEMARK_UNSAFE_STORE: s3a://bucket does not refuse to replace a file",
            UsageError,
            "s3a://bucket does not refuse to replace a file",
        ),
    ],
)
def test_each_is_one_sentence(
    class_name: str, text: str, error: type[TidemarkError], said: str
) -> None:
    found = explain_commit_error(IN_JAVA.format(class_name=class_name, text=text))
    assert type(found) is error
    assert str(found) == said


def test_other_errors_are_left_to_others() -> None:
    assert explain_commit_error(IN_JAVA.format(class_name="Other", text="DELTA_OTHER")) is None
