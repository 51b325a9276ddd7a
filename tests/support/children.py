"""Servers that end with the process of the tests, even where that is killed."""

import ctypes
import signal
from collections.abc import Callable

# Number of an option of the system call prctl, from <linux/prctl.h>.
_SET_PDEATHSIG = 1


def end_with_parent(number: signal.Signals) -> Callable[[], None]:
    """What a child calls before it becomes another program; the kernel then sends it the signal."""

    def ask_kernel() -> None:
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, number, 0, 0, 0)

    return ask_kernel
