"""The host's clock as the product reads it, set forward or back by a test."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from unittest.mock import patch

_PRODUCT = ("jobs", "windowing", "expectations", "tidemark")


@dataclass
class HostClock:
    """How far the clock is from the true time; the JVM and Delta keep the true one."""

    ahead: timedelta = timedelta(0)

    def now(self) -> datetime:
        """What the clock shows."""
        return datetime.now(UTC) + self.ahead

    def set_back(self, by: timedelta) -> None:
        """It jumps."""
        self.ahead -= by


@contextmanager
def host_clock() -> Iterator[HostClock]:
    """Meanwhile every module of the product that is imported reads this clock."""
    clock = HostClock()
    shown = _class_that_shows(clock)
    found = []
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _PRODUCT and vars(module).get("datetime") is datetime:
            found.append(patch.object(module, "datetime", shown))
    for each in found:
        each.start()
    try:
        yield clock
    finally:
        for each in found:
            each.stop()


def _class_that_shows(clock: HostClock) -> type[datetime]:
    class Kind(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, datetime)

    class Shown(datetime, metaclass=Kind):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + clock.ahead

    return Shown
