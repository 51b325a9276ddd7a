"""Files that land become rows once: what is read, what is refused, and what a crash leaves."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs.ingest import find_nothing_new, keep_taken
from tests.support.drop_folder import DropFolder
from tests.support.session_settings import setting_changed
from windowing.crash import armed
from windowing.errors import Busy, SpecError, StateRefused, UsageError
from windowing.ingest.rule import QUARANTINE
from windowing.ingest.table import home_of
from windowing.location import Location
from windowing.storage import delta_log, landed_files, upkeep
from windowing.storage.own_tables import append_many, open_snapshot
from windowing.storage.store import is_draft, name_draft

BEFORE_THE_FENCE = ("ingest.read", "ingest.recorded", "ingest.quarantined", "ingest.appended")
BEHIND_THE_FENCE = ("ingest.fenced", "ingest.withdrawn", "ingest.voided")
DAY = "id,place,at,price\n1,a,2026-03-02T10:05:00Z,1.5\n2,b,2026-03-02T10:10:00Z,\n"


class Stopped(Exception):
    """Ends an ingest at a place."""


def stop_at(place: str, spark: SparkSession, drop: DropFolder) -> bool:
    """Whether an ingest came to the place, and ended there."""

    def hook(name: str) -> None:
        if name == place:
            raise Stopped

    try:
        with armed(hook):
            drop.take(spark)
    except Stopped:
        return True
    return False


def test_a_first_file_pins_its_columns_and_becomes_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    drop = DropFolder(tmp_path)
    drop.land("day 1.csv", DAY.replace("price", "Total Amount"))
    done = drop.take(spark)
    assert (done.read, done.appended, done.quarantined, done.columns) == (2, 2, 0, str(drop.pinned))
    assert drop.rows(spark, "id", "place", "Total_Amount", "source_file", "rescued") == [
        (1, "a", 1.5, "day 1.csv", None),
        (2, "b", None, "day 1.csv", None),
    ]
    text = drop.pinned.read_text()
    assert '  at: timestamp\n  Total_Amount: {type: "double", from: "Total Amount"}\n' in text
    assert find_nothing_new(drop.pipeline) is not None
    again = drop.take(spark)
    assert (again.read, again.columns) == (0, None)
    assert drop.pinned.read_text() == text


@pytest.mark.slow
def test_a_file_is_taken_once_it_has_bytes(spark: SparkSession, tmp_path: Path) -> None:
    drop = DropFolder(tmp_path)
    drop.pin(id="bigint", place="string")
    drop.land("1.csv", "id,place\n1,a\n")
    drop.land("2.csv", "")
    assert [taken.file.name for taken in drop.take(spark).files] == ["1.csv"]
    assert find_nothing_new(drop.pipeline) is not None
    drop.land("2.csv", "id,place\n2,b\n")
    assert [taken.file.name for taken in drop.take(spark).files] == ["2.csv"]
    assert drop.rows(spark, "id", "place", "source_file") == [(1, "a", "1.csv"), (2, "b", "2.csv")]


def test_files_have_columns_in_any_order_and_number(spark: SparkSession, tmp_path: Path) -> None:
    drop = DropFolder(tmp_path)
    drop.pin(id="bigint", place="string", at="timestamp")
    drop.land("1.csv", "place,id,at\na,1,2026-03-02T10:05:00Z\n")
    drop.land("sub/2.csv", "id,extra,place\n2,x,b\n3,,c\n")
    done = drop.take(spark)
    assert (len(done.files), done.appended, done.quarantined) == (2, 3, 0)
    assert drop.rows(spark, "id", "place", "source_file", "rescued") == [
        (1, "a", "1.csv", None),
        (2, "b", "sub/2.csv", '{"extra":"x"}'),
        (3, "c", "sub/2.csv", None),
    ]


def test_a_column_that_is_not_pinned_is_added_or_fails(spark: SparkSession, tmp_path: Path) -> None:
    drop = DropFolder(tmp_path, {"on_new_column": "fail"})
    drop.pin(id="bigint")
    drop.land("1.csv", "id,Unit Price\n1,2.5\n")
    drop.land("no header.csv", "7,8\n")
    with pytest.raises(SpecError, match="Unit Price"):
        drop.take(spark)
    assert (drop.rows(spark), drop.record()) == ([], [])
    drop.settings["on_new_column"] = "add"
    assert drop.take(spark).added == ("Unit_Price",)
    assert drop.rows(spark) == [(1, 2.5, "1.csv", None)]
    assert drop.pinned.read_text().endswith('  Unit_Price: {type: "double", from: "Unit Price"}\n')


def test_a_broken_record_is_kept_with_its_reason(spark: SparkSession, tmp_path: Path) -> None:
    drop = DropFolder(tmp_path)
    drop.pin(id="bigint", price="'decimal(5,2)'")
    drop.land("1.csv", "id,price\n1,2.50\nx,3\n2\n3,4,5\n4,1.005\n5,\n")
    done = drop.take(spark)
    assert (done.read, done.appended, done.quarantined) == (6, 2, 4)
    assert [row[0] for row in drop.rows(spark)] == [1, 5]
    assert drop.quarantine(spark) == [
        ("1.csv", "2", "has not 2 values"),
        ("1.csv", "3,4,5", "has not 2 values"),
        ("1.csv", "4,1.005", "price is no decimal(5,2)"),
        ("1.csv", "x,3", "id is no bigint"),
    ]
    assert [(row["rows"], row["quarantined"]) for row in drop.record()] == [(2, 4)]


@pytest.mark.slow
def test_a_file_that_was_written_again_is_told_and_not_taken_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    drop = DropFolder(tmp_path)
    drop.land("1.csv", DAY)
    drop.take(spark)
    before = drop.rows(spark)
    drop.land("1.csv", DAY + "3,c,2026-03-02T10:11:00Z,7\n")
    drop.land("2.csv", DAY)
    for look in (lambda: drop.take(spark), lambda: find_nothing_new(drop.pipeline)):
        with pytest.raises(StateRefused, match=r"FILE_CHANGED: 1\.csv in .* is not the file of"):
            look()
    assert drop.rows(spark) == before
    assert keep_taken(drop.pipeline) == ("1.csv",)
    assert keep_taken(drop.pipeline) == ()
    assert drop.take(spark).appended == 2
    assert len(drop.rows(spark)) == 4


@pytest.mark.slow
def test_a_file_that_was_written_again_waits_for_an_interrupted_ingest(
    spark: SparkSession, tmp_path: Path
) -> None:
    drop = DropFolder(tmp_path)
    drop.land("1.csv", DAY)
    drop.take(spark)
    drop.land("2.csv", DAY)
    assert stop_at("ingest.recorded", spark, drop)
    drop.land("1.csv", DAY + "3,c,2026-03-02T10:11:00Z,7\n")
    with pytest.raises(UsageError, match=r"an ingest was interrupted; run `tidemark ingest"):
        keep_taken(drop.pipeline)
    assert find_nothing_new(drop.pipeline) is None
    with pytest.raises(StateRefused, match=r"FILE_CHANGED: 1\.csv"):
        drop.take(spark)
    assert keep_taken(drop.pipeline) == ("1.csv",)
    assert find_nothing_new(drop.pipeline) is None
    assert drop.take(spark).appended == 2
    assert len(drop.rows(spark)) == 4


def test_a_file_that_is_written_while_it_is_read_is_left_for_later(
    spark: SparkSession, tmp_path: Path
) -> None:
    drop = DropFolder(tmp_path)
    file = drop.land("1.csv", DAY)

    def write_on(name: str) -> None:
        if name == "ingest.counted":
            file.write_text(DAY + "3,c,2026-03-02T10:11:00Z,7\n")

    with armed(write_on), pytest.raises(UsageError, match="while it was read"):
        drop.take(spark)
    assert (drop.rows(spark), drop.record()) == ([], [])
    assert drop.take(spark).appended == 3


@pytest.mark.parametrize("is_found", [False, True])
def test_a_file_that_is_moved_away_while_spark_reads_it_is_a_sentence(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_found: bool
) -> None:
    drop = DropFolder(tmp_path)
    drop.pin(id="bigint", place="string")
    file = drop.land("1.csv", DAY)
    read = landed_files.read_lines

    def read_moved(spark: SparkSession, folder: Location, files: Sequence[str]) -> DataFrame:
        lines = read(spark, folder, files) if is_found else None
        file.unlink()
        return lines or read(spark, folder, files)

    monkeypatch.setattr(landed_files, "read_lines", read_moved)
    with pytest.raises(UsageError, match=r"/1\.csv was written to or removed while it was read"):
        drop.take(spark)
    assert drop.record() == []


QUICK = ("ingest.quarantined", "ingest.appended")


@pytest.mark.slow
@pytest.mark.parametrize(
    "place",
    [
        place if place in QUICK else pytest.param(place, marks=pytest.mark.deep)
        for place in BEFORE_THE_FENCE + BEHIND_THE_FENCE
    ],
)
def test_an_ingest_that_ends_at_any_place_repeats_and_loses_nothing(
    place: str, spark: SparkSession, tmp_path: Path
) -> None:
    drop = DropFolder(tmp_path)
    drop.pin(id="bigint", place="string")
    drop.land("1.csv", "id,place\n1,a\n?,b\n")
    if place in BEHIND_THE_FENCE:
        assert stop_at("ingest.quarantined", spark, drop)
    assert stop_at(place, spark, drop)
    drop.land("2.csv", "id,place\n2,a\n!,b\n")
    drop.take(spark)
    assert drop.rows(spark) == [(1, "a", "1.csv", None), (2, "a", "2.csv", None)]
    assert [(file, text) for file, text, _ in drop.quarantine(spark)] == [
        ("1.csv", "?,b"),
        ("2.csv", "!,b"),
    ]
    taken = [row for row in drop.record() if row["file"]]
    assert [(row["file"], row["rows"], row["quarantined"]) for row in taken] == [
        ("1.csv", 1, 1),
        ("2.csv", 1, 1),
    ]
    assert find_nothing_new(drop.pipeline) is not None


def test_a_record_or_a_table_that_was_lost_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    drop = DropFolder(tmp_path)
    drop.land("1.csv", DAY)
    drop.take(spark)
    home = home_of(drop.pipeline.source.table).local
    home.rename(tmp_path / "kept")
    with pytest.raises(StateRefused, match="FILES_FORGOTTEN"):
        find_nothing_new(drop.pipeline)
    (tmp_path / "kept").rename(home)
    log = home.parent / "_delta_log"
    log.rename(tmp_path / "log")
    with pytest.raises(StateRefused, match=r"ROWS_LOST.*or delete .* to take every file"):
        find_nothing_new(drop.pipeline)


def test_a_table_that_has_lost_a_part_is_to_be_restored(
    spark: SparkSession, tmp_path: Path
) -> None:
    drop = DropFolder(tmp_path)
    for name in ("1.csv", "2.csv", "3.csv"):
        drop.land(name, DAY)
        drop.take(spark)
    log = home_of(drop.pipeline.source.table).local.parent / "_delta_log"
    for commit in sorted(log.glob("*.json"))[-2:]:
        for file in log.glob(f"*{commit.stem}.*"):
            file.unlink()
    with pytest.raises(StateRefused, match="ROWS_LOST") as refused:
        find_nothing_new(drop.pipeline)
    assert str(refused.value).endswith("rows are missing; restore the table")


def test_others_of_the_folder_are_passed_over_and_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    drop = DropFolder(tmp_path)
    drop.land("readme.md", "hello")
    drop.land(".1.csv", DAY)
    found = find_nothing_new(drop.pipeline)
    assert found is not None
    assert found.others == ("readme.md",)


@pytest.mark.slow
def test_files_that_killed_ingests_were_writing_are_deleted_by_the_next(
    spark: SparkSession, tmp_path: Path
) -> None:
    drop = DropFolder(tmp_path)
    drop.land("1.csv", DAY)
    drop.take(spark)
    home = home_of(drop.pipeline.source.table).local
    for name in ("files", "quarantine"):
        staged = home / name / "staged-1" / "_temporary" / "part-0.parquet"
        staged.parent.mkdir(parents=True)
        (home / name / "_delta_log").mkdir(exist_ok=True)
        for left in (staged, home / name / name_draft(), home / name / "_delta_log" / name_draft()):
            left.write_bytes(b"PAR1")
    left_over = {file for file in home.rglob("*") if "staged-" in str(file) or is_draft(file.name)}
    assert len(left_over) == 10
    drop.land("2.csv", DAY)

    met = []

    def another(name: str) -> None:
        if name == "ingest.read":
            met.append(name)
            live = home / "files" / name_draft()
            live.write_bytes(b"PAR1")
            with pytest.raises(Busy):
                drop.take(spark)
            assert live.exists()

    with armed(another):
        drop.take(spark)
    assert met
    assert not any(file.exists() for file in left_over)
    assert len(drop.rows(spark, "id")) == 4


def test_whoever_slept_over_a_batch_makes_no_quarantine_for_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    drop = DropFolder(tmp_path)
    drop.land("1.csv", DAY)
    drop.take(spark)
    drop.land("2.csv", DAY.replace("2026-03-02T10:10:00Z", "soon"))
    assert stop_at("ingest.recorded", spark, drop)
    place = home_of(drop.pipeline.source.table) / QUARANTINE
    asleep = open_snapshot(place)
    assert asleep.version == -1
    assert stop_at("ingest.voided", spark, drop)
    columns = "batch bigint, source_file string, record string, reason string, taken_at timestamp"
    late = spark.createDataFrame([(2, "2.csv", "2,b,soon,", "late", None)], columns)
    with pytest.raises(Busy, match="another writer committed first"):
        append_many(late, asleep)
    assert drop.take(spark).quarantined == 1
    assert [file for file, _, _ in drop.quarantine(spark)] == ["2.csv"]


def test_one_ingest_at_a_time(spark: SparkSession, tmp_path: Path) -> None:
    drop = DropFolder(tmp_path)
    drop.land("1.csv", DAY)

    met = []

    def another(name: str) -> None:
        if name == "ingest.read":
            met.append(name)
            with pytest.raises(Busy, match="another writer holds"):
                drop.take(spark)

    with armed(another):
        assert drop.take(spark).appended == 2
    assert met
    assert len(drop.rows(spark)) == 2


@pytest.mark.deep
def test_upkeep_of_the_source_leaves_the_record_of_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    drop = DropFolder(tmp_path)
    drop.land("1.csv", DAY)
    drop.take(spark)
    table = drop.pipeline.source.table
    upkeep.compact_files(spark, table)
    unchecked = "spark.databricks.delta.retentionDurationCheck.enabled"
    with setting_changed(spark, unchecked, "false"):
        upkeep.vacuum(spark, table, timedelta(0))
    delta_log.write_checkpoint(spark, table)
    assert find_nothing_new(drop.pipeline) is not None
    drop.land("2.csv", DAY)
    assert drop.take(spark).appended == 2
    assert len(drop.rows(spark)) == 4
