"""Which try of which task this process is, where a scheduler started it.

A scheduler says so in the environment, because it may lose the process of a task and try the task
again while that process is still at work.
"""

import os
from dataclasses import dataclass

from windowing.errors import UsageError

VARIABLE = "TIDEMARK_ATTEMPT"


@dataclass(frozen=True)
class Attempt:
    """The try `number`, counted from 1, of a task; no other task has the same name."""

    task: str
    number: int

    def __str__(self) -> str:
        return f"{self.task}#{self.number}"

    def follows(self, other: "Attempt | None") -> bool:
        """Whether `other` is an earlier try of the same task."""
        return other is not None and other.task == self.task and other.number < self.number


def parse_attempt(text: str) -> Attempt | None:
    """The attempt that a text `TASK#NUMBER` names; None where it names none."""
    task, _, number = text.rpartition("#")
    if not task or not number.isascii() or not number.isdecimal() or int(number) < 1:
        return None
    return Attempt(task, int(number))


def find_own_attempt() -> Attempt | None:
    """The attempt that this process is; None where nothing says so.

    UsageError where the environment names one in another form.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    attempt = parse_attempt(text)
    if attempt is None:
        raise UsageError(
            f"{VARIABLE} is {text!r}; it names a task and which try of it this is, as in "
            "nightly/2026-03-02/run#2, or is not set"
        )
    return attempt
