"""Prints the heap of a JVM that keeps to the memory limit of its container, such as `1228m`.

    memory.py command         of a command, within this container; nothing where it has no limit
    memory.py worker LIMIT    of all executors of a Spark worker whose container has that limit

A process needs more than its heap: code, threads, buffers, and a command its Python.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

AIRFLOW_MIB = 1024
"""What Airflow's scheduler needs beside the commands that it starts."""
DAEMON_MIB = 384
"""What a Spark worker needs beside its executors."""
COMMAND_SHARE, EXECUTOR_SHARE = 0.6, 0.7
"""Which part of the memory of a command or an executor is its heap."""
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux says the limit of a container, by version 2 and version 1 of its control groups."""
_MIB = {"": 1 / 2**20, "b": 1 / 2**20, "k": 1 / 2**10, "m": 1, "g": 2**10}
_UNLIMITED_MIB = 2**30


def command_heap(limit_mib: int, environment: Mapping[str, str]) -> int:
    """The heap of a command in MiB, where as many run at once as Airflow is allowed to start.

    Where the environment names no Airflow, the command has the container to itself.
    """
    at_once = int(environment.get("AIRFLOW__CORE__PARALLELISM") or 0)
    room = limit_mib - AIRFLOW_MIB if at_once else limit_mib
    return int(room / max(at_once, 1) * COMMAND_SHARE)


def worker_heap(limit_mib: int) -> int:
    """The heap of all executors of a worker in MiB."""
    return int((limit_mib - DAEMON_MIB) * EXECUTOR_SHARE)


def parse_size(text: str) -> int:
    """MiB of a size as Docker writes it: 3g, 3072m, 3145728k, or bytes; ValueError for others."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([bkmg]?)b?", text.strip().lower())
    if not found:
        message = f"{text!r} is no size; write it as in 3g or 3072m"
        raise ValueError(message)
    return int(float(found[1]) * _MIB[found[2]])


def read_limit() -> int | None:
    """The limit of this container in MiB; None where it has none."""
    for file in map(Path, LIMITS):
        if file.exists():
            text = file.read_text().strip()
            limit = _UNLIMITED_MIB if text == "max" else parse_size(text)
            return limit if limit < _UNLIMITED_MIB else None
    return None


def main(what: str, limit: str | None = None) -> None:
    """Prints what is asked for."""
    found = parse_size(limit) if limit else read_limit()
    if found is not None:
        heap = command_heap(found, os.environ) if what == "command" else worker_heap(found)
        print(f"{heap}m")


if __name__ == "__main__":
    main(*sys.argv[1:])
