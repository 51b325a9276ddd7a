"""Starts processes of their own: commands, and rows that are landed without a JVM staying behind.

Their messages are shown where they fail.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]


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
