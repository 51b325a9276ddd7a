"""Runs independent steps in threads.

Each step commits to at most one table, which no other one writes. What a step reads of a table that
another one appends to is of other batches, so their order does not matter.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextvars import copy_context
from typing import TypeVar

R = TypeVar("R")
AT_ONCE = 4
"""How many steps run at the same time."""


def run_parallel(
    steps: Sequence[Callable[[], R]],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[R]:
    """The results of `steps` in order; every step ends before the first error is raised.

    `progress` is called with (steps that have ended, all steps), by the caller's thread.
    """
    if len(steps) == 1:
        result = steps[0]()
        progress(1, 1)
        return [result]
    # Leaving the block waits for all threads. Each has a copy of the caller's context, where crash
    # points are armed.
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(copy_context().run, step) for step in steps]
        for ended, _ in enumerate(as_completed(running), 1):
            progress(ended, len(running))
    return [step.result() for step in running]
