"""The process that runs one command: a fork of the engine in the client's place.

It has the client's streams, directory and environment, and ends without touching the engine's.
"""

import ctypes
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

_PR_SET_PDEATHSIG = 1
_UNEXPECTED = 1
_FIRST_FREE = 3


@dataclass(frozen=True)
class CommandProcess:
    """A forked process as the engine sees it: it can be waited for, and it sends reports."""

    pid: int
    ended: int
    """A descriptor that is readable once the process has ended."""
    reports: socket.socket

    def interrupt(self) -> None:
        """Does to the process what Ctrl-C does."""
        signal.pidfd_send_signal(self.ended, signal.SIGINT)

    def kill(self) -> None:
        """Ends the process at once; what it wrote is finished by the next run."""
        signal.pidfd_send_signal(self.ended, signal.SIGKILL)

    def close(self) -> int:
        """Waits for the end of the process and closes what belongs to it; the wait status."""
        _, status = os.waitpid(self.pid, 0)
        os.close(self.ended)
        self.reports.close()
        return status


@dataclass(frozen=True)
class Command:
    """A command line, and the process that it was typed in."""

    words: tuple[str, ...]
    directory: str
    environ: Mapping[str, str]
    streams: tuple[int, ...]
    """Descriptors of its standard input, output and error."""


def fork_command(work: Callable[[socket.socket], int]) -> CommandProcess:
    """A process that does `work`, which gets a socket for its reports and returns a wait status.

    It is killed when the engine ends, however that ends.
    """
    engine = os.getpid()
    ours, theirs = socket.socketpair()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _work_and_exit(work, theirs, engine)
    theirs.close()
    return CommandProcess(pid, os.pidfd_open(pid), ours)


def run_command(
    command: Command, run_words: Callable[[Sequence[str]], object], reports: int
) -> int:
    """The exit code of the command, once all of its output is written.

    From then on this process prints where the engine does, and Ctrl-C does not reach it. The
    descriptor `reports` stays as it is.
    """
    log = os.dup(2)
    _become_client(command, (reports, log))
    code = _exit_code(run_words, command.words)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = code or _UNEXPECTED
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Whoever reads the output waits for its end.
    for number in range(_FIRST_FREE):
        os.dup2(log, number)
    return code


def _work_and_exit(
    work: Callable[[socket.socket], int], reports: socket.socket, engine: int
) -> NoReturn:
    status = _UNEXPECTED
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # The engine may have ended before the line above.
        if os.getppid() == engine:
            status = work(reports)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _become_client(command: Command, kept: Sequence[int]) -> None:
    """Makes this process like the one that the command was typed in."""
    for number, stream in enumerate(command.streams):
        os.dup2(stream, number)
    _close_others(kept)
    os.environ.clear()
    os.environ.update(command.environ)
    sys.argv = ["tidemark", *command.words]
    time.tzset()
    os.chdir(command.directory)
    _open_streams()


def _close_others(kept: Sequence[int]) -> None:
    """Redirects the engine's open files to the null device.

    Its socket and the input of its JVM then close when the engine ends. The numbers stay taken,
    because objects of the engine close them when they are deleted here.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number < _FIRST_FREE or number in (*kept, null):
            continue
        try:
            os.fstat(number)
        except OSError:
            # The listing itself was open.
            continue
        os.dup2(null, number)


def _open_streams() -> None:
    """Opens Python's streams as a new process does: terminals by lines, files by blocks."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        before = getattr(sys, name)
        buffering = 1 if name == "stderr" else -1
        # The stream stays open as long as the process.
        stream = open(  # noqa: SIM115
            number,
            mode,
            buffering,
            encoding=before.encoding,
            errors=before.errors,
            closefd=False,
        )
        setattr(sys, name, stream)


def _exit_code(run_words: Callable[[Sequence[str]], object], words: Sequence[str]) -> int:
    """What the process of the command would have exited with."""
    try:
        run_words(words)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return _UNEXPECTED
    except BaseException:
        traceback.print_exc()
        return _UNEXPECTED
    return 0
