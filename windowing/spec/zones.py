"""The zones that a spec can name."""

from functools import cache
from zoneinfo import available_timezones

_NO_PLACES = {"localtime", "Factory"}
"""Where a machine happens to be, and the clock of one that nobody has set."""
_COPIES = ("posix/", "right/")
"""Where some systems have the whole database again, the second time with leap seconds."""


@cache
def list_zones() -> frozenset[str]:
    """Their names; the files of the system's database are listed at the first call."""
    return frozenset(
        name
        for name in available_timezones()
        if name not in _NO_PLACES and not name.startswith(_COPIES)
    )
