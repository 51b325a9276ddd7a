"""The directory of an engine: made for this user alone, refused where others could have a hand."""

import os
import socket
from pathlib import Path

import pytest

from jobs.engine.client import run_in_engine
from jobs.engine.engine_directory import find_directory, make_directory
from jobs.engine.server import _is_same_user
from windowing.errors import UsageError


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which places are made."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("TIDEMARK_ENGINE", raising=False)
    return tmp_path


def test_nothing_is_made_until_an_engine_is_started(runtime: Path) -> None:
    assert find_directory() is None
    assert list(runtime.iterdir()) == []
    assert make_directory().path.parent == runtime / "tidemark"
    assert find_directory() is not None


def test_without_a_runtime_directory_the_user_is_in_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert make_directory().path.parent == tmp_path / f"tidemark-{os.getuid()}"


def test_a_path_too_long_for_a_socket_is_none(runtime: Path) -> None:
    os.environ["XDG_RUNTIME_DIR"] = str(runtime / ("long" * 40))
    Path(os.environ["XDG_RUNTIME_DIR"]).mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(make_directory().socket)


def test_a_directory_that_others_can_enter_is_refused(runtime: Path) -> None:
    directory = make_directory()
    directory.path.parent.chmod(0o755)
    with pytest.raises(UsageError, match="has mode 0755; the engine only uses a directory of user"):
        make_directory()


def test_a_directory_below_one_that_gives_its_group_on_is_used(runtime: Path) -> None:
    """What is made below a setgid directory has that bit, too, and still lets nobody in."""
    runtime.chmod(0o2700)
    made = make_directory().path
    assert made.stat().st_mode & 0o7777 == 0o2700
    assert find_directory() is not None
    made.chmod(0o2710)
    with pytest.raises(UsageError, match="has mode 2710; the engine only uses a directory of user"):
        find_directory()


def test_a_link_is_refused(runtime: Path) -> None:
    (runtime / "mine").mkdir(mode=0o700)
    (runtime / "tidemark").symlink_to(runtime / "mine")
    with pytest.raises(UsageError, match="is not a directory that you can read"):
        make_directory()


def test_a_directory_of_somebody_else_is_refused_and_commands_do_without(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_directory()
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    with pytest.raises(UsageError, match="the engine only uses a directory of user 4000000"):
        find_directory()
    assert run_in_engine(["run", "spec.yaml"]) is None


def test_where_no_directory_can_be_made_the_error_names_the_variable(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime / "absent"))
    with pytest.raises(UsageError, match="set XDG_RUNTIME_DIR to one, or TIDEMARK_ENGINE=off"):
        make_directory()


def test_a_client_of_another_user_is_recognized(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert _is_same_user(ours)
        monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
        assert not _is_same_user(ours)
