"""Commands through an engine with Spark: the same answers, one JVM, and a lock that is freed."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from jobs.locking.lock_file import probe
from tests.support.killed_process import light
from windowing.spec.load import load_pipeline

pytestmark = pytest.mark.slow

SPEC = """
name: trips
lake: lake
source: {table: lake/bronze/trips, event_time: at, key: [place], event_id: id}
watermark: {delay: 0 seconds, allowed_lateness: 1 hour}
aggregates: {n: count(), total: sum(fare)}
windows:
  hourly: {kind: tumbling, size: 1 hour}
"""
COMMANDS = {
    ("run", "trips.yaml", "--json"): 0,
    ("show", "trips.yaml", "daily"): 2,
}
"""What is asked, and the exit codes."""
MORE_COMMANDS = COMMANDS | {("show", "trips.yaml", "hourly"): 0, ("validate", "trips.yaml"): 0}
PATIENCE = 120.0


def land(home: Path, first: int, hour: int, count: int = 50) -> None:
    """Appends events of one hour to the source."""
    start = datetime(2013, 1, 1, hour, tzinfo=UTC)
    columns = {
        "id": [f"e{first + n}" for n in range(count)],
        "place": ["EWR" if n % 2 else "JFK" for n in range(count)],
        "at": [start + timedelta(minutes=n % 60) for n in range(count)],
        "fare": list(range(count)),
    }
    types = {"id": pa.string(), "place": pa.string(), "fare": pa.int64()}
    schema = pa.schema([*types.items(), ("at", pa.timestamp("us", "UTC"))])
    table = pa.Table.from_pydict(columns, schema=schema)
    deltalake.write_deltalake(str(home / "lake" / "bronze" / "trips"), table, mode="append")


def start(home: Path, *words: str, engine: str = "") -> "subprocess.Popen[str]":
    """A process of the command line, in the pipeline's directory."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "jobs", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=home,
        env={**light(home), "TIDEMARK_ENGINE": engine},
    )


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def status(home: Path) -> dict[str, Any]:
    code, out, err = ended(start(home, "engine", "status", "--json"))
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.fixture(scope="module")
def home(jvm: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A pipeline that never ran, whose source has late rows, and an engine that is up."""
    home = tmp_path_factory.mktemp("engine")
    (home / "trips.yaml").write_text(SPEC)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(home))
        patch.delenv("TIDEMARK_DEBUG", raising=False)
        land(home, 0, 5)
        code, out, err = ended(start(home, "engine", "start", "--json"))
        assert code == 0, err
        assert json.loads(out)["up"]
        yield home
        assert ended(start(home, "engine", "stop"))[0] == 0
        assert status(home) == {"up": False}


@pytest.mark.parametrize(
    "commands",
    [COMMANDS, pytest.param(MORE_COMMANDS, marks=pytest.mark.deep)],
    ids=["run and a wrong window", "show and validate too"],
)
def test_answers_are_those_of_a_process_of_its_own(
    commands: dict[tuple[str, ...], int], home: Path
) -> None:
    assert ended(start(home, "run", "trips.yaml"))[0] == 0
    # A late hour, and one that moves the watermark.
    land(home, 100, 2)
    land(home, 200, 9)
    shutil.copytree(home / "lake", home / "before")
    before = status(home)["commands"]
    warm = [ended(start(home, *words)) for words in commands]
    assert status(home)["commands"] == before + len(commands)
    shutil.rmtree(home / "lake")
    (home / "before").rename(home / "lake")
    alone = [ended(start(home, *words, engine="off")) for words in commands]
    assert [_without_times(end) for end in warm] == [_without_times(end) for end in alone]
    assert [code for code, _, _ in alone] == [*commands.values()]
    assert status(home)["commands"] == before + len(commands)


@pytest.mark.deep
def test_a_spec_that_changes_is_read_anew_and_a_table_that_is_made_again_too(home: Path) -> None:
    shown = ended(start(home, "show", "trips.yaml", "hourly", "--json"))
    (home / "trips.yaml").write_text(SPEC.replace("hourly", "bigger"))
    code, _, err = ended(start(home, "show", "trips.yaml", "hourly"))
    assert (code, "has no window 'hourly'" in err) == (2, True)
    (home / "trips.yaml").write_text(SPEC)
    assert ended(start(home, "reset", "trips.yaml", "--yes"))[0] == 0
    assert ended(start(home, "run", "trips.yaml"))[0] == 0
    again = ended(start(home, "show", "trips.yaml", "hourly", "--json"))
    assert json.loads(again[1])["total"] >= json.loads(shown[1])["total"]


def test_ctrl_c_ends_a_run_as_it_does_alone_and_frees_the_lock(home: Path) -> None:
    land(home, 300, 10)
    ledger = home / "lake" / "trips" / "_ledger" / "_delta_log"
    before = len(list(ledger.glob("*.json")))
    process = start(home, "run", "trips.yaml")
    while len(list(ledger.glob("*.json"))) == before and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert ended(process) == (
        130,
        "",
        "\ntidemark: interrupted; run the same command again to finish it\n",
    )
    # Busy would be raised here.
    probe(load_pipeline(home / "trips.yaml"))


def _without_times(end: tuple[int, str, str]) -> tuple[int, str, str]:
    """The end of a command, without what depends on when it ran."""
    code, out, err = end
    if not out.startswith("{"):
        return end
    found = json.loads(out)
    for name in ("arrival", "started", "seconds"):
        found.pop(name, None)
    return code, json.dumps(found), err
