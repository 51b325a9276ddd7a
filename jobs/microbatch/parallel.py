"""Runs independent steps in threads.

Each step commits to at most one table, which no other one writes. What a step reads of a table that
another one appends to is of other batches, so their order does not matter.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

R = TypeVar("R")
AT_ONCE = 4
"""How many steps run at the same time."""


def run_parallel(steps: Sequence[Callable[[], R]]) -> list[R]:
    """The results of `steps` in order; every step ends before the first error is raised."""
    if len(steps) == 1:
        return [steps[0]()]
    # Leaving the block waits for all threads. Each has a copy of the caller's context, where crash
    # points are armed.
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(copy_context().run, step) for step in steps]
    return [step.result() for step in running]
