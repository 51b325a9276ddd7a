"""Files or tables of a pipeline that were lost, restored or changed from outside.

The next run is refused with a code, and the repair that its message names is exact.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from jobs import doctor
from jobs.diagnosis import diagnose
from jobs.doctor import recover
from jobs.shortcuts.nothing_new import find_nothing_new
from tests import oracle
from tests.support.command_line import run_command
from tests.support.long_lived_pipeline import MINUTE, Crash, Crasher, Life
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab
from tests.support.rare_cases import quick_and_rare
from windowing.errors import StateRefused
from windowing.ledger.history import LedgerHistory
from windowing.spec.pipeline import Pipeline

WINDOWS = (oracle.Tumbling("hourly", 60 * MINUTE),)
LEDGER, POINTER = "_ledger", "_published.json"


@pytest.fixture(scope="module")
def life(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """A pipeline after three runs; `first` is a copy of it after the first one."""
    root = tmp_path_factory.mktemp("doctor")
    new = Life(
        Lab(
            spark,
            root,
            WINDOWS,
            lateness=240 * MINUTE,
            delay=10 * MINUTE,
            shows=FEW,
        )
    )
    (new.lab.root / "lab.yaml").write_text(json.dumps(new.lab.spec()))
    new.run()
    new.copy("first")
    new.run()
    new.run()
    return new


def command(life: Life, *words: str) -> Result:
    """The command line on the pipeline."""
    return run_command(life.lab, *words)


def refused(life: Life, code: str) -> None:
    """The next run is refused with this code and writes nothing; its message names the repair."""
    before = sorted(life.root.rglob("*.json"))
    assert find_nothing_new(life.lab.pipeline, ARRIVAL) is None
    with pytest.raises(StateRefused) as error:
        life.lab.go()
    message = str(error.value)
    assert error.value.code == code, message
    assert "`tidemark recover lab`" in message or "`tidemark reset lab`" in message
    assert sorted(life.root.rglob("*.json")) == before


def sql(statement: str, table: str) -> Callable[[Life], object]:
    """A statement on one table of the pipeline."""

    def execute(life: Life) -> object:
        name = f"delta.`{life.root / table}`"
        return life.lab.spark.sql(statement.format(name))

    return execute


LOSSES: dict[str, tuple[str, Callable[[Life], object]]] = {
    "ledger": ("LEDGER_LOST", lambda life: life.put_back(Path("/nowhere"), LEDGER)),
    "older ledger": ("LEDGER_OLDER", lambda life: life.put_back(life.lab.root / "first", LEDGER)),
    "output": ("TABLE_LOST", lambda life: life.put_back(Path("/nowhere"), "hourly")),
    "ids": ("TABLE_LOST", lambda life: life.put_back(Path("/nowhere"), "_seen")),
    "older output": ("TABLE_OLDER", lambda life: life.put_back(life.lab.root / "first", "hourly")),
    "rows": ("TABLE_CHANGED", sql("delete from {} where key = 'a'", "hourly")),
    "values": ("TABLE_CHANGED", sql("update {} set n = n + 1", "hourly")),
    "restored table": ("TABLE_CHANGED", sql("restore table {} to version as of 1", "hourly")),
}
"""What is lost, and the code with which the next run is refused."""


RARE_LOSSES = ("ids", "values")


@pytest.mark.parametrize("loss", quick_and_rare(LOSSES, RARE_LOSSES))
def test_what_no_ledger_can_tell_is_refused(loss: str, life: Life) -> None:
    shutil.rmtree(life.lab.root / "kept", ignore_errors=True)
    code, does = LOSSES[loss]
    kept = life.copy("kept")
    does(life)
    refused(life, code)
    with pytest.raises(StateRefused, match=f"{code}: .*`tidemark reset lab`"):
        recover(life.lab.spark, life.lab.pipeline)
    life.put_back(kept)


@pytest.mark.slow
def test_optimizing_and_vacuuming_a_table_from_outside_is_no_change(life: Life) -> None:
    for statement in (
        "optimize {}",
        "vacuum {}",
        "alter table {} set tblproperties ('house.owner' = 'someone')",
        "alter table {} unset tblproperties ('house.owner')",
    ):
        sql(statement, "hourly")(life)
    life.run()


@pytest.mark.slow
def test_a_pipeline_put_back_as_a_whole_goes_on_from_there(life: Life) -> None:
    life.put_back(life.copy("whole"))
    life.run()


@pytest.mark.slow
def test_the_commands_say_what_is_wrong_and_repair_it(life: Life) -> None:
    assert json.loads(command(life, "doctor", "--json").stdout) == {
        "pipeline": "lab",
        "healthy": True,
        "findings": [],
        "lock": None,
        "lake": str(life.lab.pipeline.lake),
        "project": None,
        "target": None,
    }
    (life.root / POINTER).write_text('{"seq": 1000, "outputs": {}}')
    sick = command(life, "doctor", "--json")
    codes = [finding["code"] for finding in json.loads(sick.stdout)["findings"]]
    assert (sick.exit_code, codes) == (4, ["POINTER_NEWER"])
    assert "no run will start until it is repaired" in sick.stderr
    assert "POINTER_NEWER" in command(life, "run").stderr
    repaired = command(life, "recover")
    assert (repaired.exit_code, repaired.stderr) == (0, "")
    assert "repaired POINTER_NEWER" in repaired.stdout
    assert "nothing to repair" in command(life, "recover").stdout
    life.run()


@pytest.mark.slow
def test_a_diagnosis_beside_a_run_looks_again(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    problems = diagnose.find_problems
    looked = []

    def beside_a_run(
        spark: SparkSession, pipeline: Pipeline, found: StructType, past: LedgerHistory
    ) -> Iterator[StateRefused]:
        looked.append(past)
        if len(looked) == 1:
            life.run()
        yield from problems(spark, pipeline, found, past)

    for module in (doctor, diagnose):
        monkeypatch.setattr(module, "find_problems", beside_a_run)
    assert doctor.diagnose(life.lab.spark, life.lab.pipeline) == ()
    assert len(looked) == 3, "the first look, the run's own, and the second look"


@pytest.mark.slow
def test_reset_asks_and_starts_over(life: Life) -> None:
    """The last test: it ends this life."""
    asked = command(life, "reset")
    assert (asked.exit_code, asked.stdout) == (2, "")
    assert "give --yes" in asked.stderr
    life.check()
    next((life.root / LEDGER).glob("*.parquet")).unlink()
    with pytest.raises(Crash):
        ended_at_reset(life)
    assert not life.root.exists()
    gone = command(life, "reset", "--yes")
    assert (gone.exit_code, gone.stdout) == (0, "lab: nothing to delete\n")
    assert not list(life.root.parent.glob(".lab.*"))
    life.forget()
    lab = life.lab
    again = oracle.Oracle(lab.delay, lab.lateness, 10**15, None, lab.windows, None)
    lab.truth = again
    lab.go()
    again.run(lab.landed, ARRIVAL)
    life.check()


def ended_at_reset(life: Life) -> None:
    """A reset that is killed when the pipeline's directory has been renamed."""
    from jobs.reset import reset
    from windowing.crash import armed

    with armed(Crasher("reset.taken")):
        reset(life.lab.pipeline)
