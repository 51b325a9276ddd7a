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
from jobs.run import run
from jobs.shortcuts.nothing_new import find_nothing_new
from tests import oracle
from tests.support.command_line import run_command
from tests.support.long_lived_pipeline import MINUTE, Crash, Crasher, Life, ends_at
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab
from tests.support.rare_cases import quick_and_rare
from windowing.errors import StateRefused
from windowing.grid.zone import moment
from windowing.ledger.rule import LedgerHistory
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline

WINDOWS = (oracle.Tumbling("hourly", 60 * MINUTE),)
CHECKPOINT, LEDGER = "_checkpoint", "_ledger"


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


def newest(folder: Path) -> Path:
    """The file of the newest batch."""
    files = [file for file in folder.iterdir() if file.name.isdigit()]
    return max(files, key=lambda file: int(file.name))


def shorten(file: Path) -> None:
    """Half of the file is missing, and so is the checksum beside it."""
    half = file.stat().st_size // 2
    file.write_text(file.read_text()[:half])
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def gone(file: Path) -> None:
    """Deletes the file and its checksum."""
    file.unlink()
    file.with_name(f".{file.name}.crc").unlink()


def flip(file: Path) -> None:
    """One digit is another one; only the checksum shows it."""
    text = file.read_text()
    digit = next(c for c in reversed(text) if c.isdigit())
    other = str((int(digit) + 1) % 10)
    at = text.rindex(digit)
    file.write_text(text[:at] + other + text[at + 1 :])


def older(life: Life) -> None:
    life.put_back(life.lab.root / "first", CHECKPOINT)


def of_another(life: Life) -> None:
    """The checkpoint of another query over the same source, with the batch numbers of this one."""
    pipeline = load_pipeline(life.lab.spec() | {"name": "other"})
    run(life.lab.spark, pipeline, moment(ARRIVAL))
    home = life.root / CHECKPOINT
    other = life.root.with_name("other")
    kept = life.lab.root / "kept" / CHECKPOINT
    shutil.rmtree(home)
    shutil.copytree(other / CHECKPOINT, home)
    shutil.rmtree(other)
    for folder in ("offsets", "commits"):
        last = newest(kept / folder).name
        for file in (home / folder).glob("*"):
            file.rename(file.with_name(file.name.replace("0", last)))


DAMAGES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "another digit": ("CHECKPOINT_DAMAGED", lambda home: flip(newest(home / "offsets"))),
    "a checksum alone": ("CHECKPOINT_DAMAGED", lambda home: newest(home / "commits").unlink()),
    "no metadata": ("CHECKPOINT_DAMAGED", lambda home: (home / "metadata").unlink()),
    "empty metadata": ("CHECKPOINT_DAMAGED", lambda home: (home / "metadata").write_text("")),
    "half an offset": ("CHECKPOINT_DAMAGED", lambda home: shorten(newest(home / "offsets"))),
    "empty offset": ("CHECKPOINT_DAMAGED", lambda home: newest(home / "offsets").write_text("")),
    "half a commit": ("CHECKPOINT_DAMAGED", lambda home: shorten(newest(home / "commits"))),
    "no files": (
        "CHECKPOINT_LOST",
        lambda home: [f.unlink() for f in home.rglob("*") if f.is_file()],
    ),
    "nothing": ("CHECKPOINT_LOST", shutil.rmtree),
    "no newest batch": (
        "CHECKPOINT_OLDER",
        lambda home: [gone(newest(home / f)) for f in ("offsets", "commits")],
    ),
}
"""What happens to a checkpoint, and the code of the refusal."""
GOES_ON = ("another digit", "no newest batch", "nothing")
"""After these, one of each code, a run follows; the repair rebuilds the same checkpoint for all."""


RARE_DAMAGES = ("a checksum alone", "empty metadata", "half an offset", "empty offset", "no files")
"""Of their codes the others have cases that end the same way."""


@pytest.mark.parametrize("damage", quick_and_rare(DAMAGES, RARE_DAMAGES))
def test_a_broken_checkpoint_is_refused_and_made_anew(damage: str, life: Life) -> None:
    code, does = DAMAGES[damage]
    does(life.root / CHECKPOINT)
    refused(life, code)
    repaired = recover(life.lab.spark, life.lab.pipeline)
    assert [f.code for f in repaired.findings] == [code]
    assert recover(life.lab.spark, life.lab.pipeline).findings == ()
    if damage in GOES_ON:
        life.run()


@pytest.mark.parametrize(
    ("code", "change"),
    [
        pytest.param("CHECKPOINT_OLDER", older, marks=pytest.mark.deep),
        ("CHECKPOINT_FOREIGN", of_another),
    ],
    ids=["older", "foreign"],
)
def test_a_checkpoint_of_another_time_or_query_is_refused_and_made_anew(
    code: str, change: Callable[[Life], None], life: Life
) -> None:
    shutil.rmtree(life.lab.root / "kept", ignore_errors=True)
    life.copy("kept")
    change(life)
    refused(life, code)
    kept = recover(life.lab.spark, life.lab.pipeline).kept
    assert kept is not None and Path(kept).is_dir()
    life.run()


@pytest.mark.deep
@pytest.mark.parametrize("place", ["state.stored", "batch.intended", "run.emitted"])
def test_a_checkpoint_lost_half_way_through_a_run_is_made_so_that_the_run_is_finished(
    place: str, life: Life
) -> None:
    events = life.lab.land(life.batch())
    ends_at(Crasher(place), life.lab.go)
    more = life.lab.land(life.batch())
    shutil.rmtree(life.root / CHECKPOINT)
    refused(life, "CHECKPOINT_LOST")
    recover(life.lab.spark, life.lab.pipeline)
    life.lab.go()
    life.lab.truth.run(events + more, ARRIVAL)
    life.check()


@pytest.mark.deep
@pytest.mark.parametrize("place", ["recover.drafted", "recover.moved"])
def test_a_repair_that_ends_half_way_is_asked_for_again(place: str, life: Life) -> None:
    shorten(newest(life.root / CHECKPOINT / "offsets"))
    ends_at(Crasher(place), lambda: recover(life.lab.spark, life.lab.pipeline))
    recover(life.lab.spark, life.lab.pipeline)
    life.run()


def test_a_commit_that_is_gone_makes_the_stream_repeat_a_batch_and_nothing_is_written_twice(
    life: Life,
) -> None:
    gone(newest(life.root / CHECKPOINT / "commits"))
    before = life.copy("before")
    life.lab.go()
    files = {p.relative_to(life.root) for p in life.root.rglob("*.json")}
    assert files == {p.relative_to(before) for p in before.rglob("*.json")}
    life.check()
    life.run()


def sql(statement: str, table: str) -> Callable[[Life], object]:
    """A statement on one table of the pipeline."""

    def execute(life: Life) -> object:
        name = f"delta.`{life.root / table}`"
        return life.lab.spark.sql(statement.format(name))

    return execute


LOSSES: dict[str, tuple[str, Callable[[Life], object]]] = {
    "ledger": ("LEDGER_LOST", lambda life: life.put_back(Path("/nowhere"), LEDGER)),
    "ledger and checkpoint": (
        "LEDGER_LOST",
        lambda life: life.put_back(Path("/nowhere"), LEDGER, CHECKPOINT),
    ),
    "older ledger": ("LEDGER_OLDER", lambda life: life.put_back(life.lab.root / "first", LEDGER)),
    "older ledger and checkpoint": (
        "LEDGER_OLDER",
        lambda life: life.put_back(life.lab.root / "first", LEDGER, CHECKPOINT),
    ),
    "output": ("TABLE_LOST", lambda life: life.put_back(Path("/nowhere"), "hourly")),
    "ids": ("TABLE_LOST", lambda life: life.put_back(Path("/nowhere"), "_seen")),
    "older output": ("TABLE_OLDER", lambda life: life.put_back(life.lab.root / "first", "hourly")),
    "rows": ("TABLE_CHANGED", sql("delete from {} where key = 'a'", "hourly")),
    "values": ("TABLE_CHANGED", sql("update {} set n = n + 1", "hourly")),
    "restored table": ("TABLE_CHANGED", sql("restore table {} to version as of 1", "hourly")),
}
"""What is lost, and the code with which the next run is refused."""


RARE_LOSSES = ("ledger and checkpoint", "ids", "values")


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


def test_optimizing_and_vacuuming_a_table_from_outside_is_no_change(life: Life) -> None:
    for statement in (
        "optimize {}",
        "vacuum {}",
        "alter table {} set tblproperties ('house.owner' = 'someone')",
        "alter table {} unset tblproperties ('house.owner')",
    ):
        sql(statement, "hourly")(life)
    life.run()


def test_a_pipeline_put_back_as_a_whole_goes_on_from_there(life: Life) -> None:
    life.put_back(life.copy("whole"))
    life.run()


def test_the_commands_say_what_is_wrong_and_repair_it(life: Life) -> None:
    assert json.loads(command(life, "doctor", "--json").stdout) == {
        "pipeline": "lab",
        "healthy": True,
        "findings": [],
    }
    shutil.rmtree(life.root / CHECKPOINT)
    sick = command(life, "doctor", "--json")
    codes = [finding["code"] for finding in json.loads(sick.stdout)["findings"]]
    assert (sick.exit_code, codes) == (4, ["CHECKPOINT_LOST"])
    assert "no run will start until it is repaired" in sick.stderr
    assert "CHECKPOINT_LOST" in command(life, "run").stderr
    repaired = command(life, "recover")
    assert (repaired.exit_code, repaired.stderr) == (0, "")
    assert "repaired CHECKPOINT_LOST" in repaired.stdout
    assert "nothing to repair" in command(life, "recover").stdout
    life.run()


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


def test_reset_asks_and_starts_over(life: Life) -> None:
    """The last test: it ends this life."""
    asked = command(life, "reset")
    assert (asked.exit_code, asked.stdout) == (2, "")
    assert "give --yes" in asked.stderr
    life.check()
    (life.root / "_checkpoint" / "metadata").unlink()
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
