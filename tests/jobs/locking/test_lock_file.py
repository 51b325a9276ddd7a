"""The lock of a pipeline whose directories its user may not enter or change."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobs.cli.errors import explain_error
from jobs.locking.lock_file import probe
from tests.support.hourly_trips import SPEC
from tests.support.unprivileged import as_anyone
from windowing.errors import UsageError
from windowing.spec.load import load_pipeline

PROBING = (
    ["run"],
    ["publish"],
    ["doctor"],
    ["reset", "--yes"],
    ["backfill", "--from", "2020-01-01", "--to", "2020-01-02"],
)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A spec, and the directory of its pipeline with a lock file and a table of state."""
    (tmp_path / "lake" / "trips" / "_ledger" / "_delta_log").mkdir(parents=True)
    (tmp_path / "lake" / "trips" / "_lock").touch()
    (tmp_path / "trips.yaml").write_text(SPEC)
    return tmp_path / "trips.yaml"


@contextmanager
def allowing(directory: Path, mode: int) -> Iterator[None]:
    """Inside, the directory has these permissions."""
    before = directory.stat().st_mode
    directory.chmod(mode)
    try:
        yield
    finally:
        directory.chmod(before)


def tidemark(name: str, spec: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """A command in a process that may do what permissions allow."""
    return subprocess.run(
        [sys.executable, "-m", "jobs", name, str(spec), *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=as_anyone(),
    )


@pytest.mark.parametrize("command", PROBING, ids=lambda command: command[0])
def test_a_directory_that_may_not_be_entered_is_one_sentence(
    command: list[str], spec: Path
) -> None:
    home = spec.parent / "lake" / "trips"
    with allowing(home, 0):
        ended = tidemark(command[0], spec, *command[1:])
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        f"tidemark: {home} can't be written to (Permission denied): {home}/_lock; "
        "the lake has to be a directory to which the user of this process may write\n"
    )


def test_a_lock_file_that_may_not_be_written_is_one_sentence(spec: Path) -> None:
    code = (
        "from jobs.locking.lock_file import held_here\n"
        "from windowing.errors import UsageError\n"
        "from windowing.spec.load import load_pipeline\n"
        "try:\n"
        f"    with held_here(load_pipeline({str(spec)!r})): pass\n"
        "except UsageError as error:\n"
        "    print(error)\n"
    )
    home = spec.parent / "lake" / "trips"
    with allowing(home / "_lock", 0o444):
        ended = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            preexec_fn=as_anyone(),
        )
    assert f"{home} can't be written to (Permission denied): {home}/_lock" in ended.stdout


@pytest.mark.parametrize("place", ["trips", ".trips.reset-1"], ids=["new", "left behind"])
def test_a_reset_names_what_it_may_not_delete(place: str, spec: Path) -> None:
    lake = spec.parent / "lake"
    home, renamed = lake / "trips", lake / ".trips.reset-1"
    (home / "_ledger" / "part.parquet").write_text("rows")
    (home / "_ledger").chmod(0o555)
    home.rename(lake / place)
    ended = tidemark("reset", spec, "--yes")
    (renamed / "_ledger").chmod(0o755)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"tidemark: {home} can't be written to (Permission denied): ")
    assert ended.stderr.count("\n") == 1
    again = tidemark("reset", spec, "--yes")
    assert (again.returncode, list(lake.iterdir())) == (0, [])


@pytest.mark.parametrize(
    ("cluster", "said", "code"),
    [
        (
            "Ns",
            "{root} can't be written to (HADOOP_CONF_DIR names no name nodes for Ns; set it to the "
            "directory with the settings of that cluster, or add the port, as in hdfs://Ns:8020): "
            "{root}/._tokens__lock",
            2,
        ),
        (
            "127.0.0.1:1",
            "{root}/._tokens__lock: the name node can't be reached; check host and port; run "
            "again, which finishes what was begun",
            1,
        ),
    ],
    ids=["nameservice", "port"],
)
def test_a_cluster_that_is_not_there_is_one_sentence_without_credentials(
    cluster: str, said: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What may be there by the next try is tried again."""
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    file = tmp_path / "trips.yaml"
    file.write_text(SPEC.replace("lake: lake", f"lake: hdfs://{cluster}/lake"))
    pipeline = load_pipeline(str(file))
    with pytest.raises((UsageError, OSError)) as refused:
        probe(pipeline)
    failure = explain_error(refused.value)
    # The lock is looked for by its token.
    root = f"hdfs://{cluster}/lake/trips"
    assert (failure.message, failure.code) == (said.format(root=root), code)
