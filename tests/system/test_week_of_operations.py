"""A week in the life of one lake, operated by the recipes of the docs as they are written.

The lake was made by an older version and lies on a small disk. Each day something happens to it;
after each day its tables are those of an oracle to which only the events happened.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.oracle import Event, Session
from tests.support.long_lived_pipeline import MINUTE
from tests.support.operated_lake import SPEC, OperatedLake, list_recipes
from tests.support.pipeline_under_test import AGGREGATES, ARRIVAL
from tests.support.published_readers import Row, open_delta, to_rows
from tests.support.release_lake import restored
from tests.support.small_disk import fill_disk, small_disk
from tests.support.stored_rows import list_stored
from tests.support.tutorial import checkout
from windowing.grid.zone import micros
from windowing.merge.rule import published_name

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "data" / "lake-form-2.tar.xz"
CUSTOMER = "customer-7"
WEIGHT = 2
"""What each event weighs that lands after the source has got the column."""
CHANGED = Session("visits_of_20", 20 * MINUTE, emit="on_close")
HANGS = ("operations/incidents-by-exit-code.md", "End a command that hangs")
HANGING = """
import sys, time
from jobs.cli.main import main
from windowing.crash import armed

def hang(place):
    if place == "state.stored":
        print("hangs", flush=True)
        time.sleep(3600)

sys.argv = ["tidemark", "run", "lab.yaml"]
with armed(hang):
    main(prog_name="tidemark")
"""
"""A run that stops in the middle, as one does whose disk no longer answers."""


@pytest.fixture
def lake(jvm: None, spark: SparkSession, tmp_path: Path) -> Iterator[OperatedLake]:
    """The lake of an older version on a small disk, and somebody who operates it."""
    reader = checkout(tmp_path / "bin", ROOT)
    # With it commands use no engine.
    del reader["TIDEMARK_DEBUG"]
    reader |= {"TIDEMARK_ENGINE": "auto", "XDG_RUNTIME_DIR": str(tmp_path)}
    here = tmp_path / "lab"
    here.mkdir()
    with small_disk(here / "lake", megabytes=64):
        operated = OperatedLake(restored(spark, GOLDEN, here), reader)
        operated.save_spec()
        yield operated
        operated.type_command("engine", "stop")


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_week_of_operations_by_the_recipes_of_the_docs(lake: OperatedLake) -> None:
    for day in (
        upgrade_and_go_back,
        add_a_column,
        change_a_window,
        take_bad_rows_out,
        erase_a_customer,
        fill_the_disk,
        move_the_lake,
        restore_the_pointer_alone,
        end_what_hangs,
        end_a_jvm_that_hangs,
    ):
        day(lake)
        lake.check()
    assert list_recipes() <= lake.begun


def upgrade_and_go_back(lake: OperatedLake) -> None:
    """Monday: the newer version reads a batch, is taken back, and reads it again."""
    recipe = lake.recipe("operations/deploy.md", "Upgrade", BEFORE="before")
    assert "healthy" in next(recipe)
    assert "healthy" in next(recipe)
    lake.check()
    lake.deliver()
    lake.check()
    assert "healthy" in next(recipe)
    assert next(recipe, None) is None
    lake.expect_code(0, "run", SPEC)
    publish(lake)


def add_a_column(lake: OperatedLake) -> None:
    """Tuesday: the source gets a column, which runs ignore until the spec names it."""
    lab = lake.lab
    lab.spark.sql(f"alter table delta.`{lab.root}/source` add columns (weight bigint)")
    lab.schema += ", weight bigint"
    lab.more = {"weight": WEIGHT}
    before = {event.id for event in lab.landed}
    lake.deliver()
    lake.check()
    # Windows that show changes would also show those of the weight, which the oracle knows not of.
    windows = lab.spec()["windows"]
    windows["rolling"]["aggregates"] = [*AGGREGATES]
    aggregates = {**lab.spec()["aggregates"], "weight": "sum(weight)"}
    lake.save_spec(aggregates=aggregates, windows=windows)
    lake.load_spec()
    recipe = lake.recipe("operations/change-a-pipeline.md", "Add a column")
    assert "weight" in next(recipe)
    next(recipe)
    assert next(recipe, None) is None
    lake.deliver()
    lake.check()
    rows = read_output(lake, "hourly")
    weights = {
        (row["key"], micros(row["window_start"].replace(tzinfo=UTC))): row["weight"] for row in rows
    }
    assert weights == weigh_hours(lake, before)


def weigh_hours(lake: OperatedLake, without: set[str | None]) -> dict[tuple[object, ...], object]:
    """By key and hour, the weight of its events; None where all are of before the column."""
    hour, found = 60 * MINUTE, {}
    for admitted in lake.lab.truth.accepted:
        event = admitted.event
        if "hourly" in dict(admitted.missed):
            continue
        place = event.key, event.t - event.t % hour
        weight = 0 if event.id in without else WEIGHT
        found[place] = found.get(place, 0) + weight
    return {place: weight or None for place, weight in found.items()}


def change_a_window(lake: OperatedLake) -> None:
    """Wednesday: a window can't get another gap, but another window has it."""
    lab = lake.lab
    windows = {**lake.changes["windows"]}
    gap = {**windows["visits"], "gap": "20 minutes"}
    lake.save_spec(windows=windows | {"visits": gap})
    refusal = lake.expect_code(4, "run", SPEC)
    assert "SPEC_CHANGED" in refusal and "windows.visits" in refusal
    lake.save_spec(windows=windows | {CHANGED.name: gap})
    lab.respecify((*lab.windows, CHANGED))
    lake.load_spec()
    recipe = lake.recipe("operations/change-a-pipeline.md", "Change a window", WINDOW="visits")
    assert CHANGED.name in next(recipe)
    lake.check()
    del windows["visits"]
    lake.save_spec(windows=windows | {CHANGED.name: gap})
    lab.respecify(tuple(window for window in lab.windows if window.name != "visits"))
    lake.load_spec()
    next(recipe)
    lake.check()
    next(recipe)
    assert next(recipe, None) is None
    lake.deliver()


def take_bad_rows_out(lake: OperatedLake) -> None:
    """Thursday: five orders were wrong, and somebody has seen the numbers."""
    publish(lake)
    when = newest(lake) - 20 * MINUTE
    bad = [Event("a", when + n * MINUTE, 5000, f"bad-order-{n}", n) for n in range(5)]
    lake.deliver(*bad)
    go_back(lake)
    lake.check()
    words = {"SOURCE": str(lake.here / "source"), "price > 1000": "value > 1000"}
    recipe = lake.recipe("operations/backfill-and-corrections.md", "Take bad rows out", **words)
    next(recipe)
    refusal = lake.expect_code(4, "run", SPEC)
    assert "SOURCE_REWRITTEN" in refusal and "5 rows fewer" in refusal
    assert f"`tidemark backfill {SPEC} --source newest`" in refusal
    next(recipe)
    assert next(recipe, None) is None
    lake.forget_rows(*bad)
    lake.check()
    lake.deliver()


def go_back(lake: OperatedLake) -> None:
    """The wrong numbers are published, and until they are repaired readers get those before."""
    right, seen = list_publications(lake)[-1], read_published(lake, "hourly")
    publish(lake)
    assert read_published(lake, "hourly") != seen
    number = str(right["publication"])
    page = "operations/backfill-and-corrections.md"
    recipe = lake.recipe(page, "Go back to an earlier publication", NUMBER=number)
    assert f"from publication {number}" in next(recipe)
    assert next(recipe, None) is None
    newest_one = list_publications(lake)[-1]
    assert newest_one["rolled_back_to"] == right["publication"]
    assert newest_one["outputs"] == right["outputs"]
    assert read_published(lake, "hourly") == seen


def erase_a_customer(lake: OperatedLake) -> None:
    """Friday: a customer is erased, deleted in the source, and orders once more."""
    when = newest(lake) - 30 * MINUTE
    orders = [Event(CUSTOMER, when + n * MINUTE, 1, f"order-{n}", n) for n in range(3)]
    lake.deliver(*orders)
    lake.check()
    recipe = lake.recipe("operations/erase.md", "In which order", JFK=f"{CUSTOMER} --yes")
    next(recipe)
    next(recipe)
    lake.lab.truth.erase(CUSTOMER)
    lake.check()
    lake.lab.spark.sql(f"delete from delta.`{lake.here}/source` where key = '{CUSTOMER}'")
    assert "SOURCE_REWRITTEN" in lake.expect_code(4, "run", SPEC)
    next(recipe)
    assert next(recipe, None) is None
    lake.forget_rows(*orders)
    lake.check()
    lake.deliver(replace(orders[0], id="order-again"))


def fill_the_disk(lake: OperatedLake) -> None:
    """Saturday morning: the disk is full in the middle of a run."""
    disk = lake.here / "lake"
    events = lake.land()
    if os.path.ismount(disk):
        ballast = fill_disk(disk, left=3)
        refusal = lake.expect_code(1, "run", SPEC)
        assert "No space left on device; make room on the disk" in refusal
        ballast.unlink()
    else:
        limited = f"ulimit -f 1; TIDEMARK_ENGINE=off tidemark run {SPEC}"
        done = subprocess.run(
            ["bash", "-c", limited],
            cwd=lake.here,
            env=lake.reader,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "File too large; raise the limit of file sizes" in done.stderr
    # The recipe runs what has landed.
    lake.lab.truth.run(events, ARRIVAL)
    recipe = lake.recipe("operations/incidents-by-exit-code.md", "The disk is full")
    next(recipe)
    next(recipe)
    assert next(recipe, None) is None
    publish(lake)


def move_the_lake(lake: OperatedLake) -> None:
    """Saturday evening: the lake moves to a larger disk."""
    recipe = lake.recipe("operations/change-a-pipeline.md", "Move a lake", NEW="larger")
    next(recipe)
    lake.save_spec(lake=str(lake.here / "larger"))
    lake.load_spec()
    assert re.search(r"^lab: run (?!1 )\d+ would read nothing", next(recipe), re.MULTILINE)
    assert next(recipe, None) is None
    lake.names["LAKE"] = "larger"
    lake.deliver()


def restore_the_pointer_alone(lake: OperatedLake) -> None:
    """Sunday: somebody has restored what readers follow, of a lake that had got further."""
    pointer = lake.here / "larger/lab/_published.json"
    content = json.loads(pointer.read_text())
    pointer.write_text(json.dumps({**content, "seq": content["seq"] + 1000}))
    events = lake.land()
    refusal = lake.expect_code(4, "run", SPEC)
    assert "POINTER_NEWER" in refusal and f"`tidemark recover {SPEC}`" in refusal
    recipe = lake.recipe("operations/incidents-by-exit-code.md", "Recover the pointer")
    assert "repaired POINTER_NEWER" in next(recipe)
    assert json.loads(pointer.read_text()) == content
    assert next(recipe, None) is None
    lake.run(events)


def end_what_hangs(lake: OperatedLake) -> None:
    """Sunday night: a run hangs, and every other command exits with 75."""
    events = lake.land()
    with hanging(lake) as process:
        holder = read_holder(lake)
        assert holder == str(process.pid)
        recipe = lake.recipe(*HANGS, PROCESS=holder, JVM=find_java(lake))
        next(recipe)
        assert {holder, find_java(lake)} <= {*next(recipe).split()}
        next(recipe)
        assert process.wait(30) == -signal.SIGTERM
    wait_until_free(lake)
    lake.run(events)


def end_a_jvm_that_hangs(lake: OperatedLake) -> None:
    """Later that night: the JVM does not even end with its process."""
    events = lake.land()
    with hanging(lake) as process:
        holder, jvm = read_holder(lake), find_java(lake)
        os.kill(int(jvm), signal.SIGSTOP)
        recipe = lake.recipe(*HANGS, PROCESS=holder, JVM=jvm)
        for _ in range(3):
            next(recipe)
        process.wait(30)
        assert read_holder(lake) == holder
        next(recipe)
        assert next(recipe, None) is None
    wait_until_free(lake)
    lake.run(events)


@contextmanager
def hanging(lake: OperatedLake) -> Iterator["subprocess.Popen[str]"]:
    """Inside, a run holds the lock and does not go on."""
    with subprocess.Popen(
        [sys.executable, "-c", HANGING],
        cwd=lake.here,
        env={**lake.reader, "TIDEMARK_ENGINE": "off"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "hangs\n"
            yield process
        finally:
            process.kill()


def read_holder(lake: OperatedLake) -> str:
    """The process that the message of a command names which finds the lock held."""
    refusal = lake.expect_code(75, "doctor", SPEC)
    named = rf"`tidemark run`, process (\d+) on {socket.gethostname()}, since 20"
    found = re.search(named, refusal)
    assert found is not None, refusal
    return found[1]


def wait_until_free(lake: OperatedLake) -> None:
    """Returns once no command exits with 75, half a minute later at most."""
    deadline = time.monotonic() + 30
    while lake.type_command("doctor", SPEC).returncode == 75:
        assert time.monotonic() < deadline


def find_java(lake: OperatedLake) -> str:
    """The process that has the lock, as the first block of the recipe prints it."""
    printed = next(lake.recipe(*HANGS, PROCESS="", JVM=""))
    return printed.split()[4]


def publish(lake: OperatedLake) -> None:
    """Validates and publishes the newest versions."""
    for command in ("validate", "publish"):
        lake.expect_code(0, command, SPEC)


def list_publications(lake: OperatedLake) -> list[dict[str, Any]]:
    """What `publish --list` tells of each publication, oldest first."""
    done = lake.type_command("publish", SPEC, "--list", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["publications"]


def read_published(lake: OperatedLake, name: str) -> list[Row]:
    """The rows of an output that readers see."""
    return to_rows(open_delta(lake.lab.pipeline.table(published_name(name))).to_pyarrow_table())


def newest(lake: OperatedLake) -> int:
    """The newest event time so far."""
    return max(event.t for event in lake.lab.landed if event.t is not None)


def read_output(lake: OperatedLake, name: str) -> list[dict[str, Any]]:
    """The rows of an output."""
    return list_stored(lake.lab.spark, lake.lab.pipeline.table(name))
