"""Starts processes of their own: commands, and rows that are landed without a JVM staying behind.

Their messages are shown where they fail.
"""

import ctypes
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
_ADOPT = 36
"""What Linux calls PR_SET_CHILD_SUBREAPER."""


def run_process(*command: Path | str, environment: Mapping[str, str] | None = None) -> str:
    """What a process printed; ends the program where the process failed."""
    # Commands must not find a warm engine here.
    variables = {**os.environ, "TIDEMARK_ENGINE": "off", **(environment or {})}
    parts = [str(part) for part in command]
    ended = subprocess.run(
        parts, check=False, cwd=ROOT, env=variables, capture_output=True, text=True
    )
    if ended.returncode:
        raise SystemExit(f"{command[:3]} ended with {ended.returncode}: {ended.stderr[-500:]}")
    return ended.stdout


def run_python(code: str, *arguments: Path | str) -> str:
    """What a program prints in a process of this Python."""
    return run_process(sys.executable, "-c", code, *arguments)


def adopt_orphans() -> None:
    """From here on the CPU seconds of a JVM count as those of this process.

    A command ends before its JVM, which would then be a child of the system. On Linux this process
    becomes its parent, which is told what it used once it has ended and is waited for.
    """
    ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0)


def wait_for_orphans() -> None:
    """Waits for every process that this one has adopted, after all that it has started."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return
