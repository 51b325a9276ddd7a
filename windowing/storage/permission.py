"""Whether the lock under which a command commits is still its own.

A lock of the system is held as long as its process lives, so nothing is asked there. One on a
shared store may be taken over from a process that sleeps.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from windowing.errors import Busy
from windowing.location import Location

FENCE = "tidemark-fence"
"""The application whose transactions are fences; their numbers are epochs of locks."""


class Permission(Protocol):
    """What a writer may do as long as its lock is its own."""

    @property
    def epoch(self) -> int:
        """The number of its lock; whoever takes the lock after it has a higher one."""

    def check(self) -> None:
        """Busy where the writer has lost its lock, as far as it knows."""


_PERMISSION: ContextVar[Permission | None] = ContextVar("permission", default=None)


@contextmanager
def writing_by(permission: Permission) -> Iterator[None]:
    """Inside, whatever is committed is committed by this permission.

    Threads with a copy of the caller's context are inside, too.
    """
    before = _PERMISSION.set(permission)
    try:
        yield
    finally:
        _PERMISSION.reset(before)


def check_permission(table: Location, fence: int | None = None) -> None:
    """Busy where the command may not commit to `table` any more.

    `fence` is the number of the last fence in the version that a commit follows, if there is one. A
    later one than the command's own lock is one against it, whatever its clock says.
    """
    permission = _PERMISSION.get()
    if permission is None:
        return
    permission.check()
    if fence is not None and fence > permission.epoch:
        raise Busy(
            f"{table}: another process has taken over the lock while this one was at work; "
            "the next command finishes what is left"
        )
