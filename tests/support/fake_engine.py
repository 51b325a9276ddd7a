"""An engine without Spark, and a client of it, as processes of their own.

python -m tests.support.fake_engine serve IDLE_SECONDS MOST_COMMANDS [CODE]
python -m tests.support.fake_engine ask WORDS...
python -m tests.support.fake_engine stop

What it keeps warm is a process that sleeps.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from jobs.engine.client import run_in_engine
from jobs.engine.control import hold_directory, stop_engine
from jobs.engine.engine_directory import make_directory
from jobs.engine.fingerprint import code_fingerprint, surroundings
from jobs.engine.server import Engine, Settings, end_on_signals, listen

UNTIDY_SECONDS = 2.0
STOPPING_SECONDS = 0.3
ALONE = 99
"""The exit code of a client that no engine serves."""


class Sleeper:
    """A process that is kept; commands print it, and do what their second word says."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._untidy_seconds = 0.0
        self._is_lease_kept = False

    def start(self) -> None:
        self._process = subprocess.Popen(["sleep", "600"])

    def warm_up(self) -> None:
        """Nothing needs to be warmed."""

    def is_up(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def process_id(self) -> int:
        return self._process.pid if self._process else 0

    def run_words(self, words: Sequence[str]) -> object:
        act, *more = words[1:]
        if act == "kept":
            print(self.process_id())
        elif act == "place":
            print(os.getcwd(), os.environ.get("TIDEMARK_WORD"), sys.stdout.isatty())
            print("to stderr", file=sys.stderr)
        elif act == "read":
            print(f"read {sys.stdin.readline().strip()}")
        elif act == "leak":
            os.environ["TIDEMARK_WORD"] = "leaked"
            os.chdir("/")
        elif act == "exit":
            sys.exit(int(more[0]))
        elif act == "untidy":
            print("done")
            self._untidy_seconds = UNTIDY_SECONDS
        elif act == "keep":
            self._is_lease_kept = True
            sys.exit(int(more[0]))
        elif act == "lease":
            self._hold_lease(*more)
        elif act == "fail":
            raise ValueError("unforeseen")
        elif act == "sleep":
            self._sleep(Path(more[0]))
        return None

    def _sleep(self, mark: Path) -> None:
        """Writes its process to `mark`, and waits until that is deleted."""
        mark.write_text(str(os.getpid()))
        try:
            while mark.exists():
                time.sleep(0.02)
        except KeyboardInterrupt:
            print("interrupted")
            sys.exit(130)

    def _hold_lease(self, spec: str, mark: str) -> None:
        """Holds the lease of a pipeline with the kept process as its JVM, and sleeps meanwhile."""
        # Clients, whose start is measured, need none of these.
        from jobs.locking.lease import holding, take_lease
        from jobs.locking.lease_object import is_any_not_ended
        from tests.support.leased_process import lease_of
        from windowing.spec.load import load_pipeline

        lease = lease_of(load_pipeline(json.loads(spec)))
        with holding(take_lease(lease, [self.process_id()])):
            self._sleep(Path(mark))
        self._is_lease_kept = is_any_not_ended()

    def may_hold_lease(self) -> bool:
        return self._is_lease_kept

    def reset_after_command(self) -> bool:
        time.sleep(self._untidy_seconds)
        return True

    def stop(self) -> None:
        if self._process and self.is_up():
            # A JVM needs a moment, too.
            time.sleep(STOPPING_SECONDS)
            self._process.kill()
            self._process.wait()


def serve(idle_seconds: str, most_commands: str, code: str = "") -> None:
    """Is the engine."""
    settings = Settings(
        code or code_fingerprint(os.environ),
        surroundings(os.environ),
        float(idle_seconds),
        int(most_commands),
    )
    directory = make_directory()
    hold_directory(directory)
    end_on_signals()
    Engine(listen(directory.socket), Sleeper(), settings).serve()


def ask(*words: str) -> int:
    """The exit code of a client."""
    code = run_in_engine(words)
    return ALONE if code is None else code


def stop() -> int:
    """0 once the engine has ended."""
    return 0 if stop_engine() else ALONE


if __name__ == "__main__":
    acts = {"serve": serve, "ask": ask, "stop": stop}
    sys.exit(acts[sys.argv[1]](*sys.argv[2:]))
