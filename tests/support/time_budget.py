"""Which tests of a long suite begin when there is time for a part of it.

    --begin-within MINUTES   tests that have not begun by then are skipped, and counted at the end
    --begin-at WORD          files keep their order, but another one comes first for another word

What began is finished, and a test that fails fails the suite. With the hash of a commit as the
word, what one commit leaves out comes first for another.
"""

from collections.abc import Sequence
from time import monotonic
from zlib import crc32

import pytest


def add_options(parser: pytest.Parser) -> None:
    """The two options."""
    group = parser.getgroup("a part of a long suite")
    group.addoption("--begin-within", type=float, metavar="MINUTES", help="skip what begins later")
    group.addoption("--begin-at", metavar="WORD", help="the word chooses the file that comes first")


def turn_files(items: Sequence[pytest.Item], word: str) -> list[pytest.Item]:
    """The same tests; the file that the word chooses comes first, and those before it come last."""
    files = list(dict.fromkeys(item.path for item in items))
    first = crc32(word.encode()) % len(files) if files else 0
    turned = {path: n for n, path in enumerate([*files[first:], *files[:first]])}
    return sorted(items, key=lambda item: turned[item.path])


class TimeBudget:
    """The minutes within which tests begin; None is no limit.

    `chosen` tells how many tests there are.
    """

    def __init__(self, minutes: float | None) -> None:
        self.chosen = 0
        self._minutes, self._begun = minutes, monotonic()
        self._skipped = 0

    @property
    def is_spent(self) -> bool:
        """Whether no other test begins."""
        return self._minutes is not None and monotonic() - self._begun >= self._minutes * 60

    def skip(self) -> None:
        """Ends a test before it begins."""
        self._skipped += 1
        pytest.skip(f"{self._minutes:g} minutes were over before it began")

    def summary(self) -> str | None:
        """How many of the chosen tests began; None without a limit."""
        if self._minutes is None:
            return None
        return (
            f"{self.chosen - self._skipped} of {self.chosen} tests began within "
            f"{self._minutes:g} minutes; {self._skipped} did not"
        )
