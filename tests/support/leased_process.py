"""Processes that hold the lease of a pipeline, as commands without a JVM do.

python -m tests.support.leased_process SPEC      does a step for each line, and says `done`
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from jobs.cli.errors import explain_error
from jobs.locking.lease_note import LeaseNote
from jobs.locking.lease_object import LeaseObject, find_lease
from jobs.locking.lock_file import held_here
from windowing.ledger.rule import OPEN, PUBLISH, LedgerEntry
from windowing.ledger.table import create_ledger, read_history, record_entries
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.storage import plain_table
from windowing.storage.permission import check_permission
from windowing.storage.store import store_of

ROWS = pa.table({"n": [1]})
COLUMNS = '{"type":"struct","fields":[{"name":"n","type":"long","nullable":true,"metadata":{}}]}'
_SPEC = {
    "name": "trips",
    "watermark": {"delay": "0 seconds"},
    "aggregates": {"n": "count()"},
    "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
}
_PATIENCE = 60
Known = dict[str, Any]
"""What a process has read in an earlier step."""


def describe_trips(home: Location) -> dict[str, object]:
    """The spec of a pipeline whose lake is `home`."""
    source = {"table": f"{home}/bronze/trips", "event_time": "at", "key": ["place"]}
    return {**_SPEC, "lake": str(home), "source": source}


def make_tables(trips: Pipeline) -> None:
    """A ledger with a step that is open, and an output."""
    create_ledger(trips)
    record_entries(trips, read_history(trips), [LedgerEntry(OPEN, run=1)])
    plain_table.create(trips.table("hourly"), COLUMNS, {})


def lease_of(trips: Pipeline) -> LeaseObject:
    """The lease of a pipeline that has one."""
    lease = find_lease(trips)
    assert lease is not None
    return lease


def note_of(trips: Pipeline) -> LeaseNote:
    """What the lease says, which there is."""
    note = lease_of(trips).read().note
    assert note is not None
    return note


def prepare(trips: Pipeline, known: Known) -> None:
    """Reads the ledger and opens an output."""
    known["past"] = read_history(trips)
    known["hourly"] = plain_table.find_plain(trips.table("hourly"))


def record(trips: Pipeline, known: Known) -> None:
    """Appends to the ledger that was read."""
    record_entries(trips, known["past"], [LedgerEntry(PUBLISH)])


def append(_: Pipeline, known: Known) -> None:
    """Appends to the output that was opened."""
    plain_table.append(known["hourly"], ROWS)


def append_anew(trips: Pipeline, _: Known) -> None:
    """Opens an output, and appends to it."""
    found = plain_table.find_plain(trips.table("hourly"))
    assert found is not None
    plain_table.append(found, ROWS)


def check(_: Pipeline, __: Known) -> None:
    """Asks whether the lease is still there."""
    check_permission()


def fail(_: Pipeline, __: Known) -> None:
    """Ends as by an error in the code."""
    raise ValueError("made up")


def add_one(trips: Pipeline, _: Known) -> None:
    """Reads a number and writes the next one, as two processes at once must not."""
    file = trips.table("number")
    number = int(store_of(file).read(file) or 0)
    store_of(file).write(file, b"%d" % (number + 1))


STEPS: dict[str, Callable[[Pipeline, Known], None]] = {
    step.__name__: step for step in (prepare, record, append, append_anew, check, fail, add_one)
}


@contextmanager
def held_by(home: Location, **variables: str) -> Iterator["subprocess.Popen[str]"]:
    """Inside, another process holds the lease."""
    with subprocess.Popen(
        [sys.executable, "-m", __name__, json.dumps(describe_trips(home))],
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def tell(process: "subprocess.Popen[str]", step: str) -> str:
    """Lets the process do a step; what it says: `done`, or its last sentence."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{step}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def stop(process: "subprocess.Popen[str]") -> None:
    """Stops the process, as the sleep of its machine would."""
    os.kill(process.pid, signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)


def end(process: "subprocess.Popen[str]") -> int:
    """Lets the process end its block; its exit code."""
    process.communicate(timeout=_PATIENCE)
    return process.returncode


def main(spec: str) -> int:
    """Does what it is told."""
    trips, known = load_pipeline(json.loads(spec)), Known()
    try:
        with held_here(trips):
            print("held", flush=True)
            for line in sys.stdin:
                STEPS[line.strip()](trips, known)
                print("done", flush=True)
    except Exception as error:
        failure = explain_error(error)
        print(failure.message, flush=True)
        return failure.code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
