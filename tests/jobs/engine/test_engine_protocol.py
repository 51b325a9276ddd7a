"""An engine that keeps a sleeping process instead of Spark: whom it serves, and what ends it."""

import os
import pty
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.engine import control
from jobs.engine.engine_directory import find_directory
from tests.support.engine_lab import PATIENCE, Lab, eventually, is_alive, started_lab
from tests.support.fake_engine import ALONE, UNTIDY_SECONDS


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with started_lab(tmp_path) as lab:
        yield lab


def test_a_command_has_directory_environment_and_streams_of_its_client(lab: Lab) -> None:
    lab.engine()
    given = {"cwd": "/", "env": {**os.environ, "TIDEMARK_WORD": "given"}}
    assert lab.ask("run", "place", **given) == (0, "/ given False\n", "to stderr\n")
    client = lab.start("ask", "run", "read", stdin=subprocess.PIPE)
    assert client.communicate("a line\n", timeout=PATIENCE)[0] == "read a line\n"


def test_a_command_finds_the_terminal_of_its_client(lab: Lab) -> None:
    lab.engine()
    ours, theirs = pty.openpty()
    client = lab.start("ask", "run", "place", stdout=theirs)
    os.close(theirs)
    assert client.wait(PATIENCE) == 0
    assert os.read(ours, 1000).decode().strip().endswith("True")
    os.close(ours)


@pytest.mark.parametrize("code", [0, 2, 3, 4, 75])
def test_the_exit_code_is_that_of_the_command_and_all_stays_warm(lab: Lab, code: int) -> None:
    lab.engine()
    before = lab.kept()
    assert lab.ask("run", "exit", str(code)) == (code, "", "")
    assert lab.kept() == before


def test_after_an_unexpected_error_all_is_made_anew(lab: Lab) -> None:
    lab.engine()
    before = lab.kept()
    code, out, err = lab.ask("run", "fail")
    assert (code, out) == (1, "")
    assert err.endswith("ValueError: unforeseen\n")
    assert not is_alive(before)
    eventually(lambda: lab.ask("run", "exit", "0")[0] == 0)
    assert lab.kept() != before


@pytest.mark.parametrize("code", [0, 75])
def test_after_a_command_that_keeps_a_lease_all_is_made_anew(lab: Lab, code: int) -> None:
    """As one that meets an outage of the store; others see a holder at work until then."""
    lab.engine()
    before = lab.kept()
    assert lab.ask("run", "keep", str(code)) == (code, "", "")
    assert not is_alive(before), "the lease is free when the client ends"
    eventually(lambda: lab.ask("run", "exit", "0")[0] == 0)
    assert lab.kept() != before


def test_nothing_of_a_command_is_left_for_the_next(lab: Lab) -> None:
    lab.engine()
    assert lab.ask("run", "leak")[0] == 0
    assert lab.ask("run", "place")[1] == f"{Path.cwd()} None False\n"


def test_while_a_command_runs_others_run_without_the_engine(lab: Lab) -> None:
    lab.engine()
    client, mark, _ = lab.sleeping()
    assert lab.ask("run", "kept")[0] == ALONE
    mark.unlink()
    assert client.wait(PATIENCE) == 0
    assert lab.kept()


def test_ctrl_c_interrupts_the_command_and_all_is_made_anew(lab: Lab) -> None:
    lab.engine()
    before = lab.kept()
    client, _, command = lab.sleeping()
    client.send_signal(signal.SIGINT)
    assert client.communicate(timeout=PATIENCE) == ("interrupted\n", "")
    assert client.returncode == 130
    assert not is_alive(command)
    assert not is_alive(before), "the lock is free when the client ends"
    eventually(lambda: lab.ask("run", "exit", "0")[0] == 0)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_client_that_is_killed_ends_its_command(lab: Lab, end: signal.Signals) -> None:
    lab.engine()
    before = lab.kept()
    client, _, command = lab.sleeping()
    client.send_signal(end)
    assert client.wait(PATIENCE) == -end
    eventually(lambda: not is_alive(command) and not is_alive(before))
    eventually(lambda: lab.ask("run", "exit", "0")[0] == 0)


def test_a_command_that_is_killed_is_reported_and_all_is_made_anew(lab: Lab) -> None:
    lab.engine()
    before = lab.kept()
    client, _, command = lab.sleeping()
    os.kill(command, signal.SIGKILL)
    _, err = client.communicate(timeout=PATIENCE)
    assert client.returncode == 1
    assert err.startswith("tidemark: the engine ended while it ran this command; ")
    assert not is_alive(before)
    eventually(lambda: lab.ask("run", "exit", "0")[0] == 0)


def test_an_engine_that_is_killed_is_reported_and_the_next_command_runs_alone(lab: Lab) -> None:
    engine = lab.engine()
    client, _, command = lab.sleeping()
    (kept,) = [pid for pid in children(engine.pid) if pid != command]
    engine.kill()
    engine.wait(PATIENCE)
    time.sleep(0.5)
    assert client.poll() is None, "what the engine kept may have the lock"
    # A JVM ends by itself soon after its engine; this process needs help.
    os.kill(kept, signal.SIGKILL)
    _, err = client.communicate(timeout=PATIENCE)
    assert (client.returncode, err) == (
        1,
        "tidemark: the engine ended while it ran this command; "
        "rerun it, and what was interrupted is resumed\n",
    )
    eventually(lambda: not is_alive(command))
    assert lab.ask("run", "kept")[0] == ALONE


def test_a_stale_socket_of_a_crash_is_replaced(lab: Lab) -> None:
    engine = lab.engine()
    kept = lab.kept()
    engine.kill()
    engine.wait(PATIENCE)
    os.kill(kept, signal.SIGKILL)
    assert lab.ask("run", "kept")[0] == ALONE
    lab.engine()
    assert lab.kept() != kept


def test_an_engine_of_other_code_is_not_used_and_ends(lab: Lab) -> None:
    engine = lab.engine(code="of another version")
    status = control.engine_status()
    assert status is not None
    assert not status.used_here
    assert lab.ask("run", "kept")[0] == ALONE
    assert engine.wait(PATIENCE) == 0


def test_an_engine_of_another_environment_is_not_used_and_stays(lab: Lab) -> None:
    engine = lab.engine()
    there = {**os.environ, "SPARK_MASTER": "local[1]"}
    assert lab.ask("run", "kept", env=there)[0] == ALONE
    assert engine.poll() is None
    assert lab.kept()


@pytest.mark.parametrize("value", ["absolute", "relative"])
def test_other_files_of_settings_are_another_environment(
    value: str, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code of this terminal differs as well, because its settings are other files."""
    engine = lab.engine()
    settings = tmp_path / "settings"
    settings.mkdir()
    (settings / "spark-defaults.conf").write_text("spark.executor.memory 2g\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARK_CONF_DIR", str(settings if value == "absolute" else settings.name))
    where = [] if value == "absolute" else ["current directory"]
    assert lab.ask("run", "kept")[0] == ALONE
    status = control.start_engine()
    assert status.pid == engine.pid
    assert status.because == f"it was started with another {', '.join(['SPARK_CONF_DIR', *where])}"
    monkeypatch.delenv("SPARK_CONF_DIR")
    assert lab.kept()


def test_an_idle_engine_ends_with_all_it_keeps(lab: Lab) -> None:
    engine = lab.engine(idle=1.5)
    kept = lab.kept()
    assert engine.wait(PATIENCE) == 0
    assert not is_alive(kept)


@pytest.mark.slow
def test_an_engine_is_not_idle_while_a_command_runs(lab: Lab) -> None:
    # Long enough for the command to come, also on a machine that is busy.
    engine = lab.engine(idle=2.0)
    client, mark, _ = lab.sleeping()
    time.sleep(3.0)
    assert engine.poll() is None
    mark.unlink()
    assert client.wait(PATIENCE) == 0
    assert engine.wait(PATIENCE) == 0


def test_after_so_many_commands_all_is_made_anew(lab: Lab) -> None:
    lab.engine(most=2)
    before = lab.kept()
    assert lab.kept() == before
    eventually(lambda: not is_alive(before))
    eventually(lambda: lab.ask("run", "exit", "0")[0] == 0)


def test_what_has_ended_by_itself_is_made_anew(lab: Lab) -> None:
    lab.engine()
    before = lab.kept()
    os.kill(before, signal.SIGKILL)
    eventually(lambda: not is_alive(before))
    assert lab.ask("run", "kept")[0] == ALONE
    eventually(lambda: lab.ask("run", "exit", "0")[0] == 0)
    assert lab.kept() != before


@pytest.mark.slow
def test_the_output_ends_with_the_command_though_the_engine_is_tidied_up(lab: Lab) -> None:
    lab.engine()
    before = time.monotonic()
    client = lab.start("ask", "run", "untidy")
    assert client.communicate(timeout=PATIENCE) == ("done\n", "")
    assert time.monotonic() - before < UNTIDY_SECONDS
    assert lab.kept(), "it waited until the engine was ready"
    assert time.monotonic() - before >= UNTIDY_SECONDS


def test_asking_for_the_status_keeps_no_engine_up(lab: Lab) -> None:
    engine = lab.engine(idle=1.0)
    eventually(lambda: control.engine_status() is None)
    assert engine.wait(PATIENCE) == 0


def test_stopping_waits_for_the_command(lab: Lab) -> None:
    engine = lab.engine()
    client, mark, _ = lab.sleeping()
    stopping = lab.start("stop")
    eventually(lambda: (s := control.engine_status()) is not None and s.is_ending)
    assert stopping.poll() is None
    mark.unlink()
    assert client.wait(PATIENCE) == 0
    assert stopping.wait(PATIENCE) == 0
    assert engine.poll() == 0
    assert not control.stop_engine()


def test_a_second_engine_is_refused(lab: Lab) -> None:
    lab.engine()
    second = lab.start("serve", "600", "1000")
    _, err = second.communicate(timeout=PATIENCE)
    assert "an engine is up already" in err


def test_only_this_user_reaches_the_socket(lab: Lab) -> None:
    lab.engine()
    directory = find_directory()
    assert directory is not None
    modes = [
        stat.S_IMODE(path.stat().st_mode)
        for path in (directory.path.parent, directory.path, directory.path / "socket")
    ]
    assert modes == [0o700, 0o700, 0o600]


def test_a_client_that_sends_nonsense_or_nothing_harms_nobody(lab: Lab) -> None:
    lab.engine()
    directory = find_directory()
    assert directory is not None
    for sent in (b"", b"\xff\xff\xff\xff", b"\x00\x00\x00\x02[]", b"\x00\x00\x00\x09{}"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(directory.socket)
            connection.sendall(sent)
    assert lab.kept()


def children(pid: int) -> list[int]:
    """The processes that a process has started and that live."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]
