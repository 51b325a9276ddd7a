"""Maintenance changes no value, can be interrupted, and keeps published versions.

It deletes everything else that is past its retention.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from jobs import maintain as maintenance
from jobs.cli.main import main
from jobs.history import history
from jobs.maintain import maintain
from jobs.publish import publish
from jobs.read import read
from jobs.show import Wanted, show_partials
from jobs.show import show_refused as listed
from jobs.validate import validate
from tests.jobs.recompute.test_spec_evolution import become
from tests.oracle import Event, Session, Sliding, Tumbling
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, Life, ends_at
from tests.support.managed_table import become_managed
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab, become_older
from tests.support.session_settings import setting_changed
from windowing.admit.outcomes import DUPLICATE, LATE, PARTIAL, QUARANTINED, REFUSED
from windowing.errors import StateRefused, UsageError
from windowing.grid.zone import moment
from windowing.ledger.table import read_history
from windowing.revisions.rule import Cause
from windowing.spec.load import load_pipeline
from windowing.storage import delta, delta_log

pytestmark = pytest.mark.slow

WINDOWS = (Sliding("rolling", 60 * MINUTE, 20 * MINUTE), Session("visits", 10 * MINUTE))
FIRST = f"*/_delta_log/{0:020}.json"
DAY = 1440 * MINUTE
CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


@pytest.fixture(scope="module")
def life(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Four runs with windows of every family, some of their events partly late."""
    root = tmp_path_factory.mktemp("maintain")
    lab = Lab(spark, root, WINDOWS, lateness=60 * MINUTE, delay=10 * MINUTE, shows=FEW)
    new = Life(lab)
    for _ in range(4):
        new.run()
    return new


@pytest.fixture(scope="module")
def small(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Two runs with one window, for tests that are not about state."""
    home = tmp_path_factory.mktemp("small")
    lab = Lab(spark, home, WINDOWS[:1], lateness=60 * MINUTE, delay=10 * MINUTE, shows=FEW)
    new = Life(lab)
    new.run()
    new.run()
    return new


def events_of_a(*minutes: int) -> list[Event]:
    """Events of key a, one for each minute."""
    return [Event("a", BASE + minute * MINUTE, 1, f"e{minute}", minute) for minute in minutes]


def rows(life: Life, table: str) -> int:
    """How many a table has."""
    return delta.read(life.lab.spark, life.lab.pipeline.table(table)).count()


def tend(life: Life) -> dict[str, maintenance.Tended]:
    """What maintenance did, by table."""
    return {t.name: t for t in maintain(life.lab.spark, life.lab.pipeline).tables}


def published(life: Life) -> dict[str, list[str]]:
    """What readers see of every output."""
    lab = life.lab
    outputs: dict[str, list[str]] = {}
    for window in lab.windows:
        rows_seen = read(lab.spark, lab.pipeline, window.name).collect()
        outputs[window.name] = sorted(map(str, rows_seen))
    return outputs


def test_state_shrinks_and_no_number_changes(life: Life) -> None:
    before = {name: rows(life, name) for name in ("_panes_20m", "_fragments_visits", "_seen")}
    left = [life.leave_killed_write(table) for table in ("_panes_20m", "visits")]
    done = tend(life)
    assert not any(folder.exists() for folder in left)
    assert done["_panes_20m"].merged > 0 and done["_fragments_visits"].merged > 0
    assert {name: n - done[name].merged for name, n in before.items()} == {
        name: rows(life, name) for name in before
    }
    for table in done.values():
        files_before, files_after = table.files
        assert files_after <= files_before, table
        assert files_after <= 1, table
    life.check()
    for table in tend(life).values():
        # The first maintenance has added its own entries to the ledger.
        if table.name != "_ledger":
            assert table.merged == table.expired == 0
            assert table.files[0] == table.files[1]
    life.run()


@pytest.mark.deep
def test_windows_over_compacted_state_are_made_anew_by_a_backfill(life: Life) -> None:
    tend(life)
    life.lab.backfill(BASE, BASE + 180 * MINUTE)
    life.run()


@pytest.mark.deep
def test_what_was_late_for_some_windows_stays_so_when_a_backfill_makes_them_anew(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, WINDOWS[:1], lateness=0, delay=0, shows=FEW)
    lab.run(events_of_a(5, 45, 70))
    lab.run(events_of_a(50, 51))
    assert {t.name: t.merged for t in maintain(spark, lab.pipeline).tables}["_panes_20m"] == 0
    lab.backfill(BASE, BASE + 20 * MINUTE)
    lab.check()
    assert lab.table("rolling")["a", BASE, BASE + 60 * MINUTE]["count"] == 2


PLACES = [
    ("maintain.intended", "maintain.kept", "maintain.compacted"),
    ("maintain.expired", "maintain.optimized", "maintain.shared"),
    ("maintain.vacuumed", "maintain.done"),
]


@pytest.mark.deep
@pytest.mark.parametrize("places", PLACES, ids=", ".join)
def test_maintenance_that_ends_anywhere_harms_nothing(
    places: tuple[str, ...], life: Life, small: Life
) -> None:
    life = life if "maintain.compacted" in places else small
    life.lab.pipeline = load_pipeline(life.lab.spec() | {"retention": {"output": "30 days"}})
    for place in places:
        ends_at(Crasher(place), lambda: maintain(life.lab.spark, life.lab.pipeline))
    life.lab.pipeline = load_pipeline(life.lab.spec())
    if places == PLACES[-1]:
        tend(life)
    life.run()


@pytest.mark.deep
def test_a_run_that_was_left_open_is_finished_first(small: Life) -> None:
    events = small.lab.land(small.batch())
    ends_at(Crasher("batch.processed"), small.lab.go)
    tend(small)
    small.lab.truth.run(events, read_history(small.lab.pipeline).last_arrival or 0)
    small.check()


@pytest.fixture
def at_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets VACUUM delete every file that no version in use needs."""
    monkeypatch.setattr(maintenance, "KEPT", timedelta(0))
    with setting_changed(spark, CHECK, "false"):
        yield


@pytest.mark.deep
@pytest.mark.usefixtures("at_once")
def test_what_readers_are_pointed_at_stays_and_other_old_files_go(small: Life) -> None:
    publish_newest(small)
    seen, path = published(small), small.lab.pipeline.table("rolling")
    none = ", ".join(
        f"'delta.{name}RetentionDuration' = 'interval 0 days'" for name in ("log", "deletedFile")
    )
    small.lab.spark.sql(f"alter table delta.`{path}` set tblproperties ({none})")
    small.run()
    small.run()
    parquet = len(list((small.root / "_panes_20m").glob("*.parquet")))
    tend(small)
    small.forget()
    assert published(small) == seen
    assert len(list((small.root / "_panes_20m").glob("*.parquet"))) == 1 < parquet
    small.run()


@pytest.mark.deep
def test_retention_deletes_what_is_older(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, WINDOWS[:1], lateness=60 * MINUTE, delay=10 * MINUTE, shows=FEW)
    kept = {"state": "1 day", "output": "2 days", "refused": "1 day"}
    lab.pipeline = load_pipeline(lab.spec() | {"retention": kept})
    days = [
        [Event("a", BASE + d * 1440 * MINUTE + n * MINUTE, 1, f"{d}-{n}", n) for n in range(3)]
        for d in range(5)
    ]
    for some in (days[:2], days[2:]):
        landed: list[Event] = []
        for day in some:
            landed += [*day, Event("a", None, 1, f"bad{day[0].id}")]
        lab.land(landed)
        lab.go()
    done = {t.name: t for t in maintain(spark, lab.pipeline).tables}
    assert done["_quarantine"].expired == 0, "its runs arrived today"
    assert done["_panes_20m"].expired == 3
    assert done["_seen"].expired == 9
    assert done["rolling"].expired == 6
    output = delta.read(spark, lab.pipeline.table("rolling")).collect()
    assert sorted({row["window_start"].day for row in output}) == [6, 7, 8, 9]
    assert validate(spark, lab.pipeline).passed
    version = delta_log.version(spark, lab.pipeline.table("rolling"))
    lab.windows = (*WINDOWS[:1], Tumbling("thirds", 20 * MINUTE))
    lab.pipeline = load_pipeline(lab.spec() | {"retention": kept})
    lab.land(days[0])
    again = lab.go()
    assert "windows.thirds" in again.evolved
    assert again.late == 3
    assert delta_log.version(spark, lab.pipeline.table("rolling")) == version
    thirds = delta.read(spark, lab.pipeline.table("thirds")).collect()
    assert sorted(row["window_start"].day for row in thirds) == [7, 8, 9]


@pytest.mark.deep
def test_a_pipeline_whose_last_row_has_expired_is_still_valid(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The source is quiet for 31 days, in which W follows the clock."""
    lab = Lab(spark, tmp_path, (Tumbling("hourly", 60 * MINUTE),), idle_after=15 * MINUTE)
    lab.pipeline = load_pipeline(lab.spec() | {"retention": {"output": "30 days"}})
    lab.run(events_of_a(5))
    assert validate(spark, lab.pipeline).passed
    lab.run([], ARRIVAL + 31 * DAY)
    expired = {t.name: t.expired for t in maintain(spark, lab.pipeline).tables}
    assert expired["hourly"] == 1
    lab.run([], ARRIVAL + 32 * DAY)
    found = validate(spark, lab.pipeline)
    assert found.passed, list(found.failed)


def test_what_an_interrupted_maintenance_has_expired_is_its_own(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, (Tumbling("hourly", 60 * MINUTE),), shows=FEW)
    lab.pipeline = load_pipeline(lab.spec() | {"retention": {"output": "30 days"}})
    lab.run(events_of_a(5))
    lab.run(events_of_a(5 + 40 * 1440))
    ends_at(Crasher("maintain.expired"), lambda: maintain(spark, lab.pipeline))
    lab.run(events_of_a(7 + 40 * 1440))
    first = Wanted(end=moment(BASE + DAY))
    (told,) = history(spark, lab.pipeline, lab.pipeline.window("hourly"), first).windows
    causes = [each.made_by and each.made_by.cause for each in told.values]
    assert causes == [Cause.RUN, Cause.MAINTENANCE]


@pytest.mark.deep
def test_refused_rows_that_were_emptied_still_do_not_count(
    spark: SparkSession, tmp_path: Path
) -> None:
    lab = Lab(spark, tmp_path, WINDOWS[:1], lateness=0, delay=0, shows=FEW)
    life = Life(lab)
    lab.pipeline = load_pipeline(lab.spec() | {"retention": {"refused": "1 day"}})
    refused = [
        Event("a", t and BASE + t * MINUTE, 1, name, 9)
        for name, t in (("e5", 5), ("late", 6), ("partial", 190), ("bad", None))
    ]
    for batch in (events_of_a(5, 45, 200), refused):
        life.batches.append(batch)
        lab.run(batch)
    in_three_days = moment(ARRIVAL) + timedelta(days=3)
    maintained = maintain(spark, lab.pipeline, in_three_days).tables
    expired = {table.name: table.expired for table in maintained}
    assert [expired[table] for table in REFUSED] == [2, 1, 1]
    for table in REFUSED:
        rows = delta.read(spark, lab.pipeline.table(table))
        assert rows.where("value is not null or id is not null").isEmpty()
    outcomes = (LATE, PARTIAL, DUPLICATE, QUARANTINED)
    assert listed(spark, lab.pipeline, outcomes, Wanted({})).rows == ()
    become(life, WINDOWS[0], Tumbling("hourly", 60 * MINUTE))
    lab.go()
    lab.check()
    for start, end in ((BASE + 180 * MINUTE, BASE + 240 * MINUTE), (BASE, BASE + 60 * MINUTE)):
        lab.backfill(start, end)
        lab.check()
    assert delta.read(spark, lab.pipeline.table("_late")).where("resolved_by is null").isEmpty()
    again = maintain(spark, lab.pipeline, in_three_days).tables
    assert not any(table.expired for table in again)


DAY_MS = 86_400_000
TIMES = re.compile(r'("(?:timestamp|deletionTimestamp|modificationTime)":)(\d+)')


def days_pass(life: Life, days: int) -> None:
    """Makes all files and the times in logs older, and clears the cache of Delta."""
    for log in life.root.glob("*/_delta_log/*.json"):
        written = log.stat().st_mtime_ns
        text = log.read_text()
        log.write_text(TIMES.sub(lambda found: f"{found[1]}{int(found[2]) - days * DAY_MS}", text))
        os.utime(log, ns=(written, written))
        log.with_name(f".{log.name}.crc").unlink(missing_ok=True)
    become_older(life.root.rglob("*"), timedelta(days=days))
    life.forget()


@pytest.mark.deep
def test_logs_of_state_and_ledger_forget_commits_of_days_ago_and_those_of_other_tables_do_not(
    small: Life,
) -> None:
    before = {log.parent.parent.name for log in small.root.glob(FIRST)}
    days_pass(small, 5)
    ends_at(Crasher("maintain.done"), lambda: maintain(small.lab.spark, small.lab.pipeline))
    days_pass(small, 5)
    small.run()
    tend(small)
    whole = {log.parent.parent.name for log in small.root.glob(FIRST)}
    assert before - whole == {"_panes_20m", "_seen", "_ledger"}
    small.forget()
    small.check()
    first = Wanted(limit=1)
    with pytest.raises(UsageError, match="version of _panes_20m written by run 1 has been removed"):
        show_partials(
            small.lab.spark, small.lab.pipeline, small.lab.pipeline.window("rolling"), first, "1"
        )


def test_the_command_says_what_it_did(small: Life) -> None:
    (small.lab.root / "lab.yaml").write_text(json.dumps(small.lab.spec()))
    result = CliRunner().invoke(
        main, ["maintain", str(small.lab.root / "lab.yaml"), "--json"], prog_name="tidemark"
    )
    assert result.exit_code == 0, result.output
    assert {"rolling", "_ledger", "_panes_20m"} <= json.loads(result.stdout)["tables"].keys()


def test_a_table_that_a_catalog_manages_is_refused_before_any_is_touched(
    spark: SparkSession, tmp_path: Path
) -> None:
    home = tmp_path / "life"
    managed = Life(Lab(spark, home, WINDOWS[:1], lateness=60 * MINUTE, shows=FEW))
    managed.step()
    publish_newest(managed)
    for name in ("published/rolling", "rolling"):
        kept = tmp_path / name.replace("/", "-")
        shutil.copytree(managed.root, kept)
        become_managed(managed.root / name)
        delta_log.forget_all(spark)
        before = list_written(managed.root)
        with pytest.raises(StateRefused, match=f"{name} is managed by a catalog"):
            tend(managed)
        assert list_written(managed.root) == before
        shutil.rmtree(managed.root)
        kept.rename(managed.root)
        delta_log.forget_all(spark)
    assert "rolling" in tend(managed)


def list_written(root: Path) -> dict[str, float]:
    """When each file of a pipeline's tables was written; a lock is none."""
    files = [file for file in root.rglob("*") if file.is_file() and "_delta_log" in file.parts]
    return {str(file): file.stat().st_mtime for file in files}


@pytest.mark.deep
def test_a_version_that_was_published_long_ago_can_be_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    life = Life(
        Lab(spark, tmp_path, WINDOWS[:1], lateness=60 * MINUTE, delay=10 * MINUTE, shows=FEW)
    )
    life.step()
    path = life.lab.pipeline.table("rolling")
    spark.sql(f"alter table delta.`{path}` set tblproperties ('delta.checkpointInterval' = '1')")
    publish_newest(life)
    seen = published(life)
    life.step()
    for days, kept in ((24, 38), (12, 50)):
        days_pass(life, days)
        tend(life)
        assert delta_log.file_retention(spark, path) == timedelta(days=kept)
    life.run()
    assert published(life) == seen
    first = delta_log.version(spark, path)
    for log in (path.local / "_delta_log").glob("0*"):
        if int(log.name[:20]) < first:
            log.unlink()
    life.forget()
    removed = r"version of rolling has been removed: .* Available versions: .*"
    with pytest.raises(UsageError, match=f"{removed}; run `tidemark validate`"):
        published(life)


def publish_newest(life: Life) -> None:
    """Readers see what the newest run left."""
    validate(life.lab.spark, life.lab.pipeline)
    publish(life.lab.pipeline)
