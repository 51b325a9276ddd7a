"""A directory of its own for an engine without Spark, and the processes that are started there."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from jobs.engine import control

ROOT = Path(__file__).parents[2]
PATIENCE = 20.0
FOR_LONG = 600.0


def eventually(holds: Callable[[], bool]) -> None:
    """Returns as soon as it holds; fails where it never does."""
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


@dataclass
class Lab:
    """A directory of its own for an engine, and the processes that were started there."""

    home: Path
    engines: "list[subprocess.Popen[str]]" = field(default_factory=list)

    def engine(
        self, idle: float = FOR_LONG, most: int = 1000, code: str = ""
    ) -> "subprocess.Popen[str]":
        """An engine that is up."""
        words = ["serve", str(idle), str(most), *([code] if code else [])]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = self.start(*words, **quiet)
        self.engines.append(process)
        eventually(lambda: (found := control.engine_status()) is not None and found.state == "idle")
        return process

    def start(self, *words: str, **more: object) -> "subprocess.Popen[str]":
        """A process of the fake engine, or of a client."""
        command = [sys.executable, "-m", "tests.support.fake_engine", *words]
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more}
        return subprocess.Popen(command, **how)  # type: ignore[call-overload]

    def ask(self, *words: str, **more: object) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of a client."""
        process = self.start("ask", *words, **more)
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err

    def kept(self) -> int:
        """The process that the engine keeps."""
        code, out, _ = self.ask("run", "kept")
        assert code == 0
        return int(out)

    def sleeping(self) -> "tuple[subprocess.Popen[str], Path, int]":
        """A client whose command sleeps until a file is deleted, that file, and the command."""
        mark = self.home / "mark"
        client = self.start("ask", "run", "sleep", str(mark))
        eventually(lambda: mark.exists() and mark.read_text() != "")
        return client, mark, int(mark.read_text())


@contextmanager
def started_lab(home: Path) -> Iterator[Lab]:
    """Inside, commands of this process find the engines of the lab, which end with the block."""
    runtime = home / "runtime"
    runtime.mkdir()
    # Where nohup started the tests, their processes would ignore it as well.
    hangup = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    lab = Lab(home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.delenv("TIDEMARK_ENGINE", raising=False)
        yield lab
        signal.signal(signal.SIGHUP, hangup)
        for engine in lab.engines:
            engine.terminate()
            engine.wait(PATIENCE)
