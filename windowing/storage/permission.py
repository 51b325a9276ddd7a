"""Whether the lock under which a command commits is still its own.

A lock of the system is held as long as its process lives, so nothing is asked there. One on shared
storage may be taken over from a command that sleeps.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Check = Callable[[], None]
"""Raises Busy where the lock was lost, as far as its holder knows."""
_CHECKS: ContextVar[tuple[Check, ...]] = ContextVar("checks", default=())


@contextmanager
def writing_while(check: Check) -> Iterator[None]:
    """Inside, whatever is committed is committed under a lock that `check` knows of.

    Threads with a copy of the caller's context are inside, too.
    """
    before = _CHECKS.set((*_CHECKS.get(), check))
    try:
        yield
    finally:
        _CHECKS.reset(before)


def check_permission() -> None:
    """Raises Busy where a lock of this block was lost, so that no more is computed in vain.

    What keeps a commit from being made then is not this, but the fence.
    """
    for check in _CHECKS.get():
        check()
