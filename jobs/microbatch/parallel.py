"""Independent steps side by side: each is a commit of its own table, so only their sum matters."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

R = TypeVar("R")
AT_ONCE = 4


def together(steps: Sequence[Callable[[], R]]) -> list[R]:
    """The results of `steps` in order; every step ends before the first error is raised."""
    if len(steps) == 1:
        return [steps[0]()]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(copy_context().run, step) for step in steps]
    return [step.result() for step in running]
