"""A source that isn't there, doesn't fit or is no longer what was read, and a second writer.

One refusal each, and nothing is written.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from jobs.cli.main import main
from jobs.locking import lock
from jobs.run import run
from tests.support.managed_table import become_managed
from tests.support.session_settings import setting_changed
from tests.system.test_bad_rows import ARRIVAL, Source
from windowing.errors import Busy, SourceMissing, SpecError, StateRefused, TidemarkError
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.storage import delta, delta_log


def test_a_missing_table_is_one_sentence_and_exit_2(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    with pytest.raises(
        SourceMissing,
        match="source.table: there is no Delta table at .*; create it or correct the path",
    ):
        run(source.spark, source.pipeline, ARRIVAL)
    (source.root / "bad.yaml").write_text(json.dumps(source.spec()))
    result = CliRunner().invoke(main, ["run", str(source.root / "bad.yaml")], prog_name="tidemark")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("feature", ["catalogManaged", "catalogOwned-preview"])
def test_a_source_that_a_catalog_manages_is_refused(
    spark: SparkSession, tmp_path: Path, feature: str
) -> None:
    source = Source(spark, tmp_path)
    source.land("'a', 'a', timestamp'2026-01-01 10:00', 1")
    become_managed(Path(source.table), feature)
    delta_log.forget_all(spark)
    sentence = "^source.table: .* is managed by a catalog, so its log may lack commits; name an ext"
    refuses(source, sentence, SpecError, 2)
    assert not (tmp_path / "lake").joinpath("bad", "_ledger").exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"event_time": "when"},
            "source.event_time: the source has no column 'when'; it has id, key, ts, value",
        ),
        (
            {"event_time": "when", "columns": {"amount": "value * 2"}},
            "source.event_time: the source has no column 'when'; it has id, key, ts, value$",
        ),
        ({"key": ["place"]}, "source.key: the source has no column 'place'"),
        ({"event_id": "uuid"}, "source.event_id: the source has no column 'uuid'"),
        ({"order_by": ["seq"]}, "source.order_by: the source has no column 'seq'"),
        ({"event_time": "value"}, "source.event_time: 'value' is of type bigint; allowed are"),
        ({"event_time": "id"}, "source.zone: 'id' contains times without a zone; name it"),
    ],
    ids=["event_time", "computed", "key", "event_id", "order_by", "type", "zone"],
)
def test_a_spec_that_does_not_fit_the_source_is_a_spec_error(
    idle: Source, change: dict[str, Any], sentence: str
) -> None:
    wrong = Source(idle.spark, idle.root, source=change)
    with pytest.raises(SpecError, match=sentence) as refused:
        wrong.run()
    assert refused.value.exit_code == 2
    assert not (idle.root / "lake").joinpath("bad", "_ledger").exists()


def test_an_aggregate_of_a_column_that_is_not_there_or_no_number_is_a_spec_error(
    idle: Source,
) -> None:
    for call, sentence in (
        ("sum(fare)", "aggregates.x: the source has no column 'fare'"),
        ("sum(ts)", "'ts' is of type timestamp"),
    ):
        with pytest.raises(SpecError, match=sentence):
            Source(idle.spark, idle.root, aggregates={"x": call}).run()


def test_a_source_with_a_column_of_the_change_feed_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = "id string, key string, ts timestamp, value bigint, _change_type string"
    source = Source(spark, tmp_path, schema)
    source.land("'a', 'x', timestamp'2026-01-01 10:00', 1, 'update'")
    sentence = (
        "source.table: its column '_change_type' has the name of one that the change feed adds"
    )
    with pytest.raises(SpecError, match=sentence):
        source.run()
    assert not (tmp_path / "lake").joinpath("bad", "_ledger").exists()


@pytest.mark.deep
def test_a_key_that_is_called_as_a_part_in_state_is_refused_until_the_part_has_another_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = "id string, at string, ts timestamp, value bigint, Value__N string"
    taken = Source(spark, tmp_path, schema, {"key": ["at", "Value__N"]})
    taken.land("'a', 'x', timestamp'2026-01-01 10:00', 1, 'k'")
    sentence = r"aggregates.total: state keeps 'sum\(value\)' in a column 'value__n', which is"
    with pytest.raises(SpecError, match=sentence) as refused:
        taken.run()
    assert refused.value.exit_code == 2
    assert not (tmp_path / "lake").joinpath("bad", "_ledger").exists()

    columns = {"columns": {"value_value": "value"}, "key": ["at", "Value__N"]}
    spec = Source(spark, tmp_path, source=columns, aggregates={"total": "sum(value_value)"}).spec()
    spec["windows"]["steps"] = {"kind": "delta", "attribute": "value", "delta": 1}
    spec["windows"]["busy"] = {"kind": "session", "gap": "1 hour", "max_duration": "2 hours"}
    pipeline = load_pipeline(spec)
    assert run(spark, pipeline, ARRIVAL).accepted == 1
    for name in ("hourly", "steps", "busy"):
        rows = delta.read(spark, pipeline.table(name)).select("at", "Value__N", "total").collect()
        assert [tuple(row) for row in rows] == [("x", "k", 1)]


@pytest.fixture(scope="module")
def idle(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Source:
    """A source with one row that no run ever reads."""
    source = Source(spark, tmp_path_factory.mktemp("idle"))
    source.land("'a', 'a', timestamp'2026-01-01 10:00', 1")
    return source


@pytest.fixture(scope="module")
def read_once(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Source:
    """Two commits that one run has read."""
    source = Source(spark, tmp_path_factory.mktemp("once"))
    source.land(
        "'a', 'a', timestamp'2026-01-01 10:00', 1", "'b', 'a', timestamp'2026-01-01 10:30', 2"
    )
    source.land("'c', 'a', timestamp'2026-01-01 11:00', 3")
    assert source.run().accepted == 3
    return source


@pytest.fixture
def once(read_once: Source) -> Iterator[Source]:
    """`read_once`; its source is put back afterwards, and nothing may have touched its ledger."""
    kept, before = read_once.root / "kept", read_history(read_once.pipeline)
    shutil.copytree(read_once.table, kept)
    yield read_once
    assert read_history(read_once.pipeline) == before, "a refused run wrote to the ledger"
    shutil.rmtree(read_once.table, ignore_errors=True)
    kept.rename(read_once.table)
    delta_log.forget_all(read_once.spark)


def refuses(
    source: Source, sentence: str, error: type[TidemarkError] = StateRefused, code: int = 4
) -> None:
    """The next run is refused with this sentence, in one line."""
    with pytest.raises(error, match=sentence) as refused:
        run(source.spark, source.pipeline, ARRIVAL)
    assert refused.value.exit_code == code
    assert "\n" not in str(refused.value)


def _overwrite(source: Source, select: str) -> None:
    rows = source.spark.createDataFrame(
        delta.read(source.spark, Location(source.table)).selectExpr(*select.split(", ")).collect()
    )
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(
        source.table
    )


def _recreate(source: Source) -> None:
    shutil.rmtree(source.table)
    source.land("'a', 'a', timestamp'2026-01-01 10:00', 1")
    for n in "bcd":
        source.land(f"'{n}', 'a', timestamp'2026-01-01 10:00', 1")


def _forget_a_version(source: Source) -> None:
    newest = max((Path(source.table) / "_delta_log").glob("*.json"))
    newest.unlink()
    (newest.parent / f".{newest.name}.crc").unlink(missing_ok=True)
    newest.with_suffix(".crc").unlink(missing_ok=True)
    delta_log.forget_all(source.spark)


def _grow_anew(source: Source) -> None:
    """The newest version is another one than the one that was read, written two hours later."""
    _forget_a_version(source)
    source.land("'z', 'a', timestamp'2026-01-01 11:00', 3")
    newest = max((Path(source.table) / "_delta_log").glob("*.json"))
    newest.write_text(
        re.sub(
            r'"timestamp":(\d+)',
            lambda found: f'"timestamp":{int(found[1]) + 7_200_000}',
            newest.read_text(),
        )
    )


def _renamed(source: Source) -> None:
    table = f"delta.`{source.table}`"
    source.spark.sql(f"alter table {table} set tblproperties ('delta.columnMapping.mode' = 'name')")
    source.spark.sql(f"alter table {table} add columns (note string)")
    source.spark.sql(f"alter table {table} rename column note to remark")
    source.spark.sql(f"insert into {table} values ('w', 'a', timestamp'2026-01-01 11:30', 1, 'x')")


def _sql(statement: str) -> Callable[[Source], None]:
    return lambda source: source.spark.sql(statement.format(f"delta.`{source.table}`"))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda s: _overwrite(s, "id, key, ts"),
            "SOURCE_CHANGED: .*: aggregates.total: the source has no column 'value'",
        ),
        (
            lambda s: _overwrite(s, "id, key, ts, boolean(value) value"),
            "SOURCE_CHANGED: .*: aggregates.total: 'value' is of type boolean",
        ),
        (
            lambda s: _overwrite(s, "id, key, ts, string(value) value"),
            "SOURCE_CHANGED: .*: 'value' was of type bigint when state was made",
        ),
        (_renamed, "SOURCE_CHANGED: .*columns of the source"),
        (
            _sql("delete from {} where id = 'c'"),
            "rows of the source were deleted after they had been read",
        ),
        (
            _sql("delete from {} where id = 'a'"),
            "rows of the source were (updated or )?deleted after they had been read",
        ),
        (
            _sql("update {} set value = 9 where id = 'a'"),
            "rows of the source were updated or deleted after they had been read",
        ),
        (
            _recreate,
            "SOURCE_RECREATED: .* dropped and created again since run 1; "
            "restore the old one, or `tidemark reset bad`",
        ),
        (
            _forget_a_version,
            "SOURCE_OLDER: .*the source is at version 0, but version 1 was read; "
            "restore it, or `tidemark reset",
        ),
        (
            _grow_anew,
            "SOURCE_OLDER: .*version 1 of the source was read at 20.*, but written at 20.*; "
            "restore it, or `tidemark reset",
        ),
    ],
    ids=[
        "dropped",
        "unusable",
        "retyped",
        "renamed",
        "deleted file",
        "deleted row",
        "updated row",
        "recreated",
        "older version",
        "grown anew",
    ],
)
def test_a_source_whose_past_changed_is_refused(
    once: Source, change: Callable[[Source], None], sentence: str
) -> None:
    change(once)
    refuses(once, sentence)


@pytest.mark.slow
def test_files_that_were_vacuumed_before_they_were_read_are_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, check = Source(spark, tmp_path), "spark.databricks.delta.retentionDurationCheck.enabled"
    source.land("'a', 'a', timestamp'2026-01-01 10:00', 1")
    source.run()
    for name in "xy":
        source.land(f"'{name}', 'a', timestamp'2026-01-01 11:10', 3")
    with setting_changed(spark, check, "false"):
        spark.sql(f"optimize delta.`{source.table}`")
        spark.sql(f"vacuum delta.`{source.table}` retain 0 hours")
    for _ in range(2):
        refuses(
            source,
            "SOURCE_VACUUMED: .*files of the source that are still needed have been vacuumed; "
            "`tidemark reset bad`",
        )


def test_a_source_that_is_gone_is_missing(once: Source) -> None:
    shutil.rmtree(once.table)
    refuses(once, "there is no Delta table at", SourceMissing, 2)


@pytest.mark.parametrize(
    "changed",
    [
        {"aggregates": {"n": "count()", "total": "max(value)"}},
        {"source": {"event_id": None}},
        {"source": {"on_bad_value": "null"}},
    ],
    ids=["aggregates", "event_id", "on_bad_value"],
)
def test_another_spec_over_the_same_state_is_refused(once: Source, changed: dict[str, Any]) -> None:
    refuses(
        Source(once.spark, once.root, **changed),
        "SPEC_CHANGED: .* differ from what made .*; restore them, or give .* a new name",
    )


def test_a_second_writer_is_busy_in_this_process_and_in_another(once: Source) -> None:
    (once.root / "bad.yaml").write_text(json.dumps(once.spec()))
    with lock.writer(once.spark, once.pipeline):
        refuses(once, "bad: another writer holds .*_lock; try again", Busy, 75)
        command = [sys.executable, "-m", "jobs", "run", str(once.root / "bad.yaml")]
        other = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (other.returncode, other.stdout, other.stderr.count("\n")) == (75, "", 1), other.stderr
    with lock.writer(once.spark, once.pipeline):
        pass


def test_after_every_refusal_the_next_run_goes_on(read_once: Source) -> None:
    read_once.land("'d', 'a', timestamp'2026-01-01 11:30', 4")
    report = read_once.run()
    assert (report.run, report.read, report.accepted) == (2, 1, 1)
    assert read_once.hours("n", "total") == [("a", 10, 2, 3), ("a", 11, 2, 7)]


def test_a_column_that_was_widened_is_refused_before_anything_is_written(read_once: Source) -> None:
    """The last test of `read_once`: a widened column can't be narrowed again."""
    table, before = f"delta.`{read_once.table}`", read_history(read_once.pipeline)
    read_once.spark.sql(
        f"alter table {table} set tblproperties ('delta.enableTypeWidening' = 'true')"
    )
    read_once.spark.sql(f"alter table {table} alter column value type decimal(20, 0)")
    read_once.land(
        "'w', 'a', timestamp'2026-01-01 11:30', 1",
        schema="id string, key string, ts timestamp, value decimal(20,0)",
    )
    refuses(read_once, "SOURCE_CHANGED: ")
    assert read_history(read_once.pipeline) == before
