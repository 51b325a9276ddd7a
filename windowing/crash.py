"""Named places between two effects, where a test may end a run.

Nothing happens there unless a test has armed one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Hook = Callable[[str], None]
_HOOKS: ContextVar[tuple[Hook, ...]] = ContextVar("hooks", default=())


def crashpoint(name: str) -> None:
    """Reports to armed tests that the process has reached `name`; without one, does nothing."""
    for hook in _HOOKS.get():
        hook(name)


@contextmanager
def armed(hook: Hook) -> Iterator[None]:
    """Calls `hook` with the name of every place that is reached inside the block.

    What the hook does or raises happens at that place. Threads that the block's own steps start are
    armed, too; others are not.
    """
    before = _HOOKS.set((*_HOOKS.get(), hook))
    try:
        yield
    finally:
        _HOOKS.reset(before)
