"""What a publication costs of which few windows of many differ.

    python -m tests.support.published_costs [ROWS]

An output has so many windows (a million), 100 of which each run corrects. It prints for each
publication how long it took and what it wrote to the disk. For comparison it prints a publication
without published tables, and how long the whole output takes to be written again. No JVM is
started.
"""

import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from tests.support.published_lake import COLUMNS, HOUR, INSTANT, PublishedLake
from windowing.location import Location
from windowing.storage import plain_table
from windowing.storage.version_files import PlainFile, list_version, write_plain

_ROUNDS = 5
_CHANGED = 100
_PLACES = 1_000


def main(rows: int) -> None:
    """Prints the figures."""
    with TemporaryDirectory(prefix="tidemark-publications-") as directory:
        lake = PublishedLake(Path(directory))
        _fill(lake, rows)
        print(f"{rows:,} windows; first publication {_publish(lake)}", flush=True)
        for number in range(_ROUNDS):
            chosen = np.linspace(0, rows - 1, _CHANGED).astype(int)
            began = time.process_time()
            lake.run({_name(int(n)): number + 2 for n in chosen})
            correction = time.process_time() - began
            print(f"{_CHANGED} corrected in {correction:.2f} CPU s; {_publish(lake)}", flush=True)
        lake.run({_name(0): _ROUNDS + 2})
        with patch("jobs.publish.show_editions"):
            print(f"without a published table: {_publish(lake)}", flush=True)
        version = list_version(lake.output, lake.runs)
        began = time.process_time()
        for n, file in enumerate(version.files):
            again = PlainFile(file.name, file.original, file.rows)
            write_plain(again, version, Location(f"{directory}/again/{n}.parquet"))
        print(f"the whole output read and written again: {time.process_time() - began:.2f} CPU s")


def _name(number: int) -> tuple[str, int]:
    return f"p{number % _PLACES}", number // _PLACES


def _fill(lake: PublishedLake, rows: int) -> None:
    """The first run: one file with all windows."""
    numbers = np.arange(rows)
    starts = numbers // _PLACES * HOUR
    columns = [
        pa.array([f"p{n % _PLACES}" for n in numbers]),
        pa.array(starts).cast(INSTANT),
        pa.array(starts + HOUR).cast(INSTANT),
        pa.array(np.ones(rows, dtype=np.int64)),
        pa.array(np.zeros(rows, dtype=np.int64)),
        pa.array(np.ones(rows, dtype=np.int64)),
    ]
    opened = plain_table.find_plain(lake.output)
    if opened is None:
        raise ValueError(f"{lake.output} is no plain table")
    plain_table.append(opened, pa.table(columns, schema=COLUMNS))
    lake.rows = {_name(int(n)): (1, 0, 1) for n in numbers}
    lake.runs = 1
    lake.close(opened.version)


def _publish(lake: PublishedLake) -> str:
    before = _measure_disk(lake.home)
    began, cpu = time.monotonic(), time.process_time()
    lake.publish()
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    written = _measure_disk(lake.home) - before
    return f"published in {seconds:.2f} s ({cpu:.2f} CPU s), {written:,} bytes written"


def _measure_disk(home: Path) -> int:
    """The bytes of all files, each of which counts once however many names it has."""
    found = {}
    for file in home.rglob("*"):
        if file.is_file():
            facts = os.stat(file)
            found[facts.st_ino] = facts.st_size
    return sum(found.values())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
