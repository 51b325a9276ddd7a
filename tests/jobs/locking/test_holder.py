"""Whoever is refused learns who holds the lock; naming it frees no lock."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.locking.holder import parse_holder
from jobs.locking.lock_file import held_here, lock_path, probe
from tests.windowing.cases import pipeline
from windowing.errors import Busy
from windowing.location import Location
from windowing.spec.pipeline import Pipeline

PROGRAM = """
import sys
from dataclasses import replace
from jobs.locking.lock_file import held_here, probe
from tests.windowing.cases import pipeline
from windowing.location import Location
sys.argv[0] = sys.argv[2]
lake = replace(pipeline(), lake=Location(sys.argv[1]))
sys.argv[1:] = sys.argv[3:]
with held_here(lake):
    print("held", flush=True)
    input()
"""


@pytest.fixture
def shop(tmp_path: Path) -> Pipeline:
    """A pipeline whose directory is there."""
    lake = replace(pipeline(), lake=Location(str(tmp_path)))
    lock_path(lake).parent.mkdir()
    return lake


def start(shop: Pipeline, *words: str) -> "subprocess.Popen[str]":
    """A process that locks the pipeline as the command `words`."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(shop.lake), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def held_by(shop: Pipeline, *words: str) -> Iterator[int]:
    """Inside, another process holds the lock; its id."""
    with start(shop, *words) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process.pid
        finally:
            process.kill()


def is_refused(shop: Pipeline) -> bool:
    """Whether another process finds the lock held."""
    done = start(shop, "other").communicate(input="\n")
    return "windowing.errors.Busy" in done[1]


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("/usr/bin/tidemark", "erase", "orders.yaml", "--key", "Ann"), "tidemark erase"),
        (("/opt/jobs/__main__.py", "run", "orders.yaml"), "tidemark run"),
        (("/usr/bin/tidemark", "--key=Ann"), "tidemark"),
        (("/home/ann/nightly.py", "Ann"), "nightly.py"),
    ],
)
def test_the_holder_is_named_without_its_arguments(
    shop: Pipeline, words: tuple[str, ...], command: str
) -> None:
    with held_by(shop, *words) as process:
        for attempt in (probe, lambda lake: held_here(lake).__enter__()):
            with pytest.raises(Busy) as refused:
                attempt(shop)
            named = f": `{command}`, process {process} on {socket.gethostname()}, since 20"
            assert f"_lock{named}" in str(refused.value)
            assert str(refused.value).endswith("+00:00; try again when it has finished")
        assert "Ann" not in lock_path(shop).read_text()


def test_a_holder_that_was_killed_is_named_no_more(shop: Pipeline) -> None:
    with held_by(shop, "tidemark", "run"):
        pass
    probe(shop)
    with held_here(shop):
        holder = parse_holder(lock_path(shop).read_bytes())
        assert holder is not None
        assert holder.process == os.getpid()


@pytest.mark.slow
def test_naming_the_holder_does_not_free_the_lock(shop: Pipeline) -> None:
    with held_here(shop):
        assert is_refused(shop)
        with pytest.raises(Busy), held_here(shop):
            pass
        assert is_refused(shop)
    assert not is_refused(shop)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"process": 1}', b"\xff", b"3"])
def test_a_file_that_names_nobody_is_no_error(shop: Pipeline, content: bytes) -> None:
    with held_by(shop, "tidemark", "run"):
        lock_path(shop).write_bytes(content)
        with pytest.raises(Busy, match=r"_lock; try again"):
            probe(shop)
