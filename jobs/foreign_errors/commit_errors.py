"""Errors of our own log stores, by which Spark commits to S3 and HDFS, as sentences."""

import re

from windowing.errors import Busy, CommitUnknown, TidemarkError, UsageError
from windowing.storage.spark_conditions import REFUSED_KEYS
from windowing.storage.spark_internals import COMMIT_UNKNOWN, FENCED, UNSAFE_STORE

_SAID = re.compile(
    rf"({FENCED}|{UNSAFE_STORE}): (.+)|({COMMIT_UNKNOWN}): (it is unknown .+? was committed)"
)


def explain_commit_error(text: str) -> TidemarkError | None:
    """The error to raise for a message of Spark's; None where no log store of ours has raised it.

    Busy where another process has taken over, UsageError where the store would lose commits, and
    CommitUnknown where nobody knows whether one was made.
    """
    said = _SAID.search(text)
    if said is None:
        return None
    kind, sentence = (part for part in said.groups() if part)
    if kind == FENCED:
        return Busy(
            f"another process has taken over while this one was at work ({sentence}); "
            "the next command finishes what is left"
        )
    if kind == UNSAFE_STORE:
        return UsageError(sentence)
    because = "the store did not answer"
    if REFUSED_KEYS.search(text) is not None:
        because = "the store refused the credentials, which may have expired; renew them"
    return CommitUnknown(
        f"{sentence}, because {because}; the next command looks, and goes on from what it finds"
    )
