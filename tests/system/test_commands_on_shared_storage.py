"""Commands on a lake on S3 or HDFS, as they are typed."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from jobs.cli.main import main
from tests.support.long_lived_pipeline import Life
from tests.support.pipeline_under_test import ARRIVAL
from tests.support.shared_storage import SharedStorage
from windowing.storage.files import list_tables
from windowing.storage.store import store_of

pytestmark = pytest.mark.deep
Command = Callable[..., str]
REFUSED = 4


@pytest.fixture
def life(storage: SharedStorage) -> Life:
    """A pipeline of which nothing has come yet."""
    return storage.make_life(Random(1))


@pytest.fixture
def tidemark(life: Life, tmp_path: Path) -> Command:
    """A command of the pipeline, which has to end with a code; what it prints."""
    spec = tmp_path / "lab.yaml"
    spec.write_text(json.dumps(life.lab.spec()))

    def call(name: str, *words: str, code: int = 0) -> str:
        done = CliRunner().invoke(main, [name, str(spec), *words], prog_name="tidemark")
        print(name, words, done.output)
        assert done.exit_code == code, (name, done.output, done.exception)
        return done.stdout

    return call


def test_commands_work_and_give_the_oracles_tables(life: Life, tidemark: Command) -> None:
    lab = life.lab
    lab.land([])
    always = ("--from", "1970-01-01", "--to", "2100-01-01")
    assert tidemark("backfill", *always, "--check", code=2) == ""
    for _ in range(2):
        events = lab.land(life.batch())
        tidemark("run")
        lab.truth.run(events, ARRIVAL)
    life.check()
    assert tidemark("validate")
    assert tidemark("publish")
    assert store_of(lab.pipeline.root).read(lab.pipeline.table("_published.json"))
    window = lab.windows[0].name
    assert tidemark("show", window, "--published")
    for name in ("late", "state", "explain", "report"):
        assert tidemark(name)
    assert tidemark("backfill", *always, "--check")
    tidemark("backfill", *always)
    lab.truth.backfill(lab.landed, 0, 2**62, ARRIVAL)
    tidemark("maintain")
    tidemark("doctor")
    life.check()
    tidemark("validate")
    tidemark("publish")
    tidemark("erase", "--key", "a", "--yes")
    lab.truth.erase("a")
    lab.check()


def test_a_pointer_is_made_anew_and_a_reset_starts_over(life: Life, tidemark: Command) -> None:
    root, pointer = life.lab.pipeline.root, life.lab.pipeline.table("_published.json")
    store = store_of(root)
    life.lab.land(life.batch())
    for name in ("run", "validate", "publish"):
        tidemark(name)
    healthy = json.loads(tidemark("doctor", "--json"))
    assert (healthy["healthy"], healthy["findings"]) == (True, [])
    assert healthy["lock"]["state"] == "free"
    before = json.loads(store.read(pointer) or b"")
    store.write(pointer, json.dumps(before | {"seq": before["seq"] + 1000}).encode())
    (found,) = json.loads(tidemark("doctor", "--json", code=REFUSED))["findings"]
    assert found["code"] == "POINTER_NEWER"
    tidemark("recover")
    assert json.loads(store.read(pointer) or b"") == before
    tidemark("reset", "--yes")
    assert list_tables(root) == []
    tidemark("run")
    life.lab.truth.run(life.lab.landed, ARRIVAL)
    life.check()
