"""A pipeline whose commands are processes that a warm engine serves, some of them killed.

Landing rows and comparing tables is done in the process of the test, by a JVM of its own.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from tests.oracle import Window
from tests.support.killed_process import light
from tests.support.pipeline_under_test import ARRIVAL, Lab
from windowing.grid.zone import micros, moment
from windowing.ledger.rule import COUNTS
from windowing.ledger.table import read_history
from windowing.storage import delta_log

PATIENCE = 240.0
CHANCES = {"run": 0.5, "backfill": 0.5, "maintain": 0.5}
"""How likely a command is killed, and after that once more."""
SOONEST, LATEST = 0.05, 1.2
"""Seconds after which a command is killed; a run in a warm engine takes one to two."""


class Engine:
    """An engine in a directory of its own, and the commands that it serves."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._environ = {**light(home), "TIDEMARK_ENGINE": "", "XDG_RUNTIME_DIR": str(home)}

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """A process of the command line."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "jobs", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.home,
            env=self._environ,
        )

    def ask(self, *words: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of a command."""
        process = self.start(*words)
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err

    def status(self) -> dict[str, Any]:
        """What `tidemark engine status` prints."""
        code, out, err = self.ask("engine", "status", "--json")
        assert code == 0, err
        found: dict[str, Any] = json.loads(out)
        return found

    def wait_until_idle(self) -> dict[str, Any]:
        """The status of the engine, once it can serve a command."""
        until = time.monotonic() + PATIENCE
        while (found := self.status())["state"] != "idle":
            assert time.monotonic() < until, found
            time.sleep(0.1)
        return found


@dataclass
class WarmLab(Lab):
    """A lab whose runs, backfills and maintenances go through an engine; after each it publishes.

    As `rng` says, a command is killed after a while and asked for again.
    """

    engine: Engine | None = None
    rng: Random = field(default_factory=Random)
    done: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._write_spec()

    def _write_spec(self) -> None:
        (self.root / "lab.yaml").write_text(json.dumps(self.spec()))

    def respecify(self, windows: tuple[Window, ...]) -> None:
        """The file of the spec has these windows from now on."""
        super().respecify(windows)
        self._write_spec()

    def go(self, arrival: int = ARRIVAL) -> Any:
        """A run; its report is what the ledger has recorded of it."""
        before = read_history(self.pipeline)
        was_killed = self._command("run", "--arrival", moment(arrival).isoformat())
        past = read_history(self.pipeline)
        is_new = past.closed is not None and past.closed != before.closed
        counts = past.closed.counts if past.closed is not None and is_new else {}
        watermark = None if past.watermark is None else moment(past.watermark)
        report = {**{name: counts.get(name, 0) for name in COUNTS}, "watermark": watermark}
        if not was_killed:
            printed = {name: self._printed[name] for name in COUNTS}
            assert printed == {name: report[name] for name in COUNTS}
        self.publish()
        return SimpleNamespace(**report)

    def backfill(self, start: int, end: int, arrival: int = ARRIVAL) -> Any:
        """A backfill, which arrives now whatever `arrival` is: the schedule lies in the past."""
        low, high = (moment(us).isoformat() for us in (start, end))
        self._command("backfill", "--from", low, "--to", high)
        self.truth.backfill(self.landed, start, end, micros(datetime.now(UTC)))
        self.publish()

    def maintain(self) -> None:
        """A maintenance."""
        self._command("maintain")

    def publish(self) -> None:
        """Validates what is newest and publishes it; readers then see these versions."""
        if read_history(self.pipeline).newest is None:
            return
        self._command("validate")
        self._command("publish")
        past = read_history(self.pipeline)
        assert past.published is not None and past.is_published
        pointer = json.loads((self.pipeline.root.local / "_published.json").read_text())
        shown = {name: output["version"] for name, output in pointer["outputs"].items()}
        assert pointer["seq"] == past.published.seq
        assert shown == {w.name: past.published.versions[w.name] for w in self.windows}

    def _command(self, name: str, *words: str) -> bool:
        """Whether the command was killed before it was asked for again and ended well."""
        assert self.engine is not None
        given = (name, str(self.root / "lab.yaml"), *words, "--json")
        killed = False
        while self.rng.random() < CHANCES.get(name, 0.1):
            killed = True
            self._kill(given)
        before = self.engine.wait_until_idle()
        code, out, err = self.engine.ask(*given)
        assert code == 0, (given, code, out, err[-3000:])
        self._printed = json.loads(out)
        # Shortcuts decide in the engine, too, so each command is one that it has served.
        assert self.engine.wait_until_idle()["commands"] == before["commands"] + 1
        self.done[name] += 1
        delta_log.forget_all(self.spark)
        return killed

    def _kill(self, given: tuple[str, ...]) -> None:
        """Starts the command and ends it, its client or the engine's JVM after a while."""
        assert self.engine is not None
        status = self.engine.wait_until_idle()
        process = self.engine.start(*given)
        time.sleep(self.rng.uniform(SOONEST, LATEST))
        whom = self.rng.choice(("client", "client is interrupted", "command", "JVM"))
        if whom == "client":
            process.kill()
        elif whom == "client is interrupted":
            process.send_signal(signal.SIGINT)
        else:
            _kill_below(status["pid"], java=whom == "JVM")
        process.communicate(timeout=PATIENCE)
        self.done[f"{whom} {'survives' if process.returncode == 0 else 'is killed'}"] += 1


def _kill_below(engine: int, *, java: bool) -> None:
    """Kills the processes of the engine that are its JVM, or all others."""
    for pid in _list_below(engine):
        try:
            is_java = Path(f"/proc/{pid}/comm").read_text().strip() == "java"
            if is_java == java:
                os.kill(pid, signal.SIGKILL)
        except OSError:
            continue


def _list_below(pid: int) -> list[int]:
    """All that a process has started, and what these have started."""
    found = []
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    for child in map(int, listed.split()):
        found += [child, *_list_below(child)]
    return found
