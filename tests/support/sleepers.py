"""What a run that sleeps on shared storage does when another one has taken over meanwhile."""

import json
import os
import re
import signal
import subprocess
import sys

from tests.support.long_lived_pipeline import Life
from windowing.storage.store import store_of

AFTER_ALL = "run.closed"
COMMIT = re.compile(r"/_delta_log/\d{20}\.json$")
_PATIENCE = 240.0


def wake_up_behind_another(life: Life, nth: int, lease_seconds: float) -> None:
    """Stops a run, with its JVM, at the nth place; another finishes, then the first goes on.

    All tables are the oracle's after the other one, and the first changes nothing.
    """
    lab = life.lab
    events = lab.land(life.batch())
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.sleeping_process", json.dumps(lab.spec()), str(nth)],
        env={**os.environ, "TIDEMARK_LEASE_SECONDS": f"{lease_seconds:g}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    place, jvm = process.stdout.readline().split()
    os.waitpid(process.pid, os.WUNTRACED)
    try:
        lab.go()
        lab.truth.run(events, lab.truth.arrival)
        life.check()
        lab.maintain()
        found = list_commits(life)
    finally:
        os.kill(int(jvm), signal.SIGCONT)
        os.kill(process.pid, signal.SIGCONT)
    said, _ = process.communicate(timeout=_PATIENCE)
    print(f"stopped at {place}: {process.returncode} {said}")
    # Behind its last commit there is nothing left to refuse.
    expected = (0,) if place == AFTER_ALL else (4, 75)
    assert process.returncode in expected, said
    assert list_commits(life) == found
    life.run()


def list_commits(life: Life) -> set[str]:
    """The commits of all tables of the pipeline."""
    root = life.lab.pipeline.root
    return {name for name in store_of(root).list_files(root) if COMMIT.search(name)}
