"""A secret key of S3 is in the environment, and nothing that a command writes or says has it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.hourly_trips import SPEC
from tests.support.s3_server import KEYS, S3Server
from tests.support.warm_pipeline import Engine
from windowing.location import Location
from windowing.storage.s3_settings import read_s3_settings

WRONG = "another-made-up-secret"
RANGE = ("--from", "2026-01-05T00:00", "--to", "2026-01-05T02:00")
COMMANDS = (
    ("run",), ("validate",), ("publish",), ("report",), ("doctor",), ("show", "hourly"),
    ("run",), ("backfill", *RANGE), ("maintain",), ("recover",),
)  # fmt: skip
"""The day of a pipeline; the name of its spec comes second."""


class Watch:
    """The command lines of all processes that there were, as everybody on the machine sees them."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self.with_secret: set[int] = set()
        self._over = Event()
        self._thread = Thread(target=self._look)

    def _look(self) -> None:
        while not self._over.wait(0.2):
            for process in Path("/proc").iterdir():
                if process.name.isdecimal():
                    with suppress(OSError):
                        self.seen.add((process / "cmdline").read_bytes())
                        if KEYS.secret.encode() in (process / "environ").read_bytes():
                            self.with_secret.add(int(process.name))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Inside, it looks."""
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()


@pytest.fixture
def spec(s3_home: Location, s3_server: S3Server, tmp_path: Path) -> Path:
    """A pipeline whose source has rows of two hours, on S3 like its lake."""
    at = [datetime(2026, 1, 5, n % 3, 10, tzinfo=UTC) for n in range(9)]
    rows = pa.table({"place": ["a", "b", "c"] * 3, "at": at})
    options = read_s3_settings(s3_server.environ).for_rust()
    write_deltalake(f"{s3_home}/bronze/trips", rows, storage_options=options)
    file = tmp_path / "trips.yaml"
    file.write_text(SPEC.replace("lake", str(s3_home)).replace(f"{s3_home}: ", "lake: "))
    return file


def act(spec: Path, home: Path, *commands: tuple[str, ...]) -> tuple[int, str]:
    """Does the commands in a process of their own; its exit code, and all that it has said.

    Events of Spark, with the settings of its session, and all temporary files are below `home`.
    """
    for name in ("events", "tmp"):
        (home / name).mkdir(parents=True)
    words = json.dumps([[verb, str(spec), *more, "--debug"] for verb, *more in commands])
    events = {
        "enabled": "true",
        "dir": f"file://{home}/events",
        "compress": "false",
        "rolling.enabled": "false",
    }
    chosen = " ".join(f"--conf spark.eventLog.{name}={value}" for name, value in events.items())
    log = home / "said"
    with log.open("wb") as said:
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.commands_in_turn", words],
            env={
                **os.environ,
                "TIDEMARK_ENGINE": "off",
                "PYSPARK_SUBMIT_ARGS": f"{chosen} pyspark-shell",
                "TMPDIR": str(home / "tmp"),
            },
            stdout=said,
            stderr=said,
            timeout=500,
            check=False,
        )
    return done.returncode, log.read_text()


def list_files_with(secret: str, directory: Path) -> list[Path]:
    """The files below a directory that contain the secret."""
    files = [file for file in directory.rglob("*") if file.is_file()]
    return [file for file in files if secret.encode() in file.read_bytes()]


@pytest.mark.usefixtures("jvm")
@pytest.mark.timeout(600)
def test_nothing_of_a_pipelines_day_has_the_secret(
    spec: Path, s3_server: S3Server, tmp_path: Path
) -> None:
    watch, home = Watch(), tmp_path / "home"
    with watch.watching():
        code, said = act(spec, home, *COMMANDS)
    assert code == 0, said
    assert said.count("exit code 0") == len(COMMANDS), said
    assert len(watch.with_secret) >= 3, "that of the server, of the command, and its JVM"
    lines = b"\n".join(watch.seen)
    assert b"tests.support.commands_in_turn" in lines
    assert b"fs.s3a.endpoint" in lines
    assert KEYS.secret.encode() not in lines
    stored = {file.name for file in (s3_server.home / "data").rglob("*")}
    assert {"_published.json", "_report.html", "_docs", "_ledger"} <= stored
    assert list_files_with("fs.s3a.endpoint", home / "events")
    for place in (home, s3_server.home):
        assert list_files_with(KEYS.secret, place) == []


@pytest.mark.usefixtures("jvm")
@pytest.mark.timeout(300)
def test_an_error_by_wrong_keys_does_not_say_them(
    spec: Path, s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", WRONG)
    code, said = act(spec, tmp_path / "home", ("run",), ("publish",), ("doctor",))
    assert code != 0
    assert said.count("the credentials are refused; check AWS_ACCESS_KEY_ID") >= 3, said
    for place in (tmp_path / "home", s3_server.home):
        assert list_files_with(WRONG, place) == []


@pytest.mark.usefixtures("jvm")
@pytest.mark.timeout(600)
def test_a_warm_engine_keeps_the_secret_to_itself(
    spec: Path, s3_server: S3Server, tmp_path: Path
) -> None:
    """Each command hands its environment over; the log and the answers of the engine are here."""
    home, watch = tmp_path / "home", Watch()
    home.mkdir()
    engine, said = Engine(home), ""
    with watch.watching():
        for words in (("engine", "start"), ("run", str(spec)), ("engine", "status")):
            code, out, err = engine.ask(*words)
            assert code == 0, err
            said += out + err
            engine.wait_until_idle()
        served = engine.wait_until_idle()["commands"]
        code, out, err = engine.ask("engine", "stop")
        assert (code, served) == (0, 1), err
    lines = b"\n".join(watch.seen)
    assert b"engine" in lines
    assert KEYS.secret not in said + out + err
    assert KEYS.secret.encode() not in lines
    assert any(home.rglob("log")), "that of the engine"
    for place in (home, s3_server.home):
        assert list_files_with(KEYS.secret, place) == []
