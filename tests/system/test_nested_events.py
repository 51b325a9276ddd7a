"""The same events flat and in structs, arrays and maps: every table has the same rows."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import Row, SparkSession

from jobs.backfill import backfill
from jobs.cli.main import main
from jobs.erase import erase
from jobs.explain import explain
from jobs.run import follow_rewrites, run
from jobs.validate import validate
from windowing.errors import SpecError, StateRefused
from windowing.ledger.erased import Erasing
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.storage import delta

ARRIVAL = datetime(2026, 1, 2, tzinfo=UTC)
FLAT = "ts timestamp, id string, seq int, country string, amount double, kind string, done boolean"
NESTED = (
    "struct(struct(ts, id) as head, seq, struct(country) as user, done) as event",
    "array(struct(amount)) as items",
    "map('kind', kind) as attributes",
)
WINDOWS: dict[str, Any] = {
    "hourly": {"kind": "tumbling", "size": "1 hour"},
    "busy": {"kind": "session", "gap": "20 minutes"},
    "three": {"kind": "count", "count": 3},
}
ROWS = (
    ("2026-01-01 10:00", "a", 1, "DE", 1.5, "buy", False),
    ("2026-01-01 10:05", "b", 2, "DE", 2.5, "see", False),
    ("2026-01-01 10:05", "c", 1, "DE", None, "buy", True),
    ("2026-01-01 11:30", "d", 1, "FR", 4.0, None, False),
    (None, "e", 1, "FR", 5.0, "buy", False),
    ("2026-01-01 12:00", "f", 1, None, 6.0, "buy", False),
    ("2026-01-01 14:00", "g", 1, "DE", float("nan"), "see", True),
)
LATER = (
    ("2026-01-01 10:10", "h", 1, "DE", 8.0, "buy", False),
    ("2026-01-01 15:00", "a", 2, "DE", 9.0, "buy", False),
    ("2026-01-01 16:00", "i", 1, "FR", 10.0, "buy", True),
)


def write(spark: SparkSession, root: Path, rows: Sequence[tuple[Any, ...]]) -> None:
    """Appends the rows to both sources."""
    text = spark.createDataFrame(list(rows), FLAT.replace("timestamp", "string"))
    flat = text.withColumn("ts", text.ts.try_cast("timestamp"))
    delta.append(flat.coalesce(1), Location(str(root / "flat")), widen=True)
    nested = flat.selectExpr(*NESTED)
    delta.append(nested.coalesce(1), Location(str(root / "nested")), widen=True)


def spec(root: Path, shape: str, **more: Any) -> dict[str, Any]:
    """The same pipeline over the source of one shape."""
    nested = shape == "nested"

    def column(name: str, path: str) -> str:
        return path if nested else name

    amount, kind = column("amount", "items[0].amount"), column("kind", "attributes['kind']")
    done = column("done", "event.done")
    return {
        "name": shape,
        "lake": str(root / "lake"),
        "source": {
            "table": str(root / shape),
            "event_time": column("ts", "event.head.ts"),
            "key": [column("country", "event.user.country")],
            "event_id": column("id", "event.head.id"),
            "order_by": [column("seq", "event.seq")],
            "columns": {"paid": f"{amount} + 1"},
            "where": f"{column('seq', 'event.seq')} > 0",
        },
        "watermark": {"allowed_lateness": "20 minutes"},
        "aggregates": {
            "n": "count()",
            "total": f"sum({amount})",
            "last_kind": f"last({kind})",
            "most": f"max_by({kind}, {amount})",
            "bought": {"call": "sum(paid)", "where": f"{kind} = 'buy' and not {done}"},
            **more.pop("aggregates", {}),
        },
        "windows": {**WINDOWS, "trip": {"kind": "punctuation", "marker": done}},
        **more,
    }


def table(spark: SparkSession, root: Path, shape: str, name: str) -> list[Row]:
    """The rows of one output, without what tells runs apart."""
    rows = delta.read(spark, Location(str(root / "lake" / shape / name)))
    kept = [column for column in rows.columns if column not in ("revision", "run")]
    return sorted(rows.select(*sorted(kept)).collect(), key=str)


def refused(spark: SparkSession, root: Path, shape: str, name: str) -> list[tuple[Any, ...]]:
    """Id and reason of the rows of one table of refused rows."""
    path = Location(str(root / "lake" / shape / name))
    if not delta.exists(spark, path):
        return []
    return sorted(tuple(row) for row in delta.read(spark, path).select("id", "reason").collect())


def assert_equal(spark: SparkSession, root: Path, *windows: str) -> None:
    """Every output and every refused row is the same for both shapes."""
    for name in windows or (*WINDOWS, "trip"):
        assert table(spark, root, "nested", name) == table(spark, root, "flat", name), name
    for name in ("_late", "_duplicates", "_quarantine"):
        assert refused(spark, root, "nested", name) == refused(spark, root, "flat", name), name


@pytest.mark.deep
def test_nested_events_give_the_tables_of_flat_ones(spark: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path, ROWS)
    flat, nested = (load_pipeline(spec(tmp_path, shape)) for shape in ("flat", "nested"))
    counts = [(r.read, r.accepted, r.quarantined) for p in (flat, nested) for r in [run(spark, p)]]
    assert counts == [(7, 4, 3)] * 2
    assert refused(spark, tmp_path, "nested", "_quarantine") == [
        ("e", "ts is null"),
        ("f", "country is null"),
        ("g", "amount is not a finite number"),
    ]
    write(spark, tmp_path, LATER)
    reports = [run(spark, pipeline) for pipeline in (flat, nested)]
    assert reports[0].gave_null == reports[1].gave_null == {}
    assert [(r.accepted, r.late, r.duplicate) for r in reports] == [(1, 1, 1)] * 2
    assert_equal(spark, tmp_path)


@pytest.mark.deep
def test_an_aggregate_of_another_part_joins_a_live_pipeline(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(spark, tmp_path, ROWS)
    for shape in ("flat", "nested"):
        run(spark, load_pipeline(spec(tmp_path, shape)))
    write(spark, tmp_path, LATER)
    more = {
        "flat": {"open": {"call": "count()", "where": "not done"}, "last_seq": "last(seq)"},
        "nested": {
            "open": {"call": "count()", "where": "not event.done"},
            "last_seq": "last(event.seq)",
        },
    }
    day = datetime(2026, 1, 1, tzinfo=UTC)
    for shape, aggregates in more.items():
        pipeline = load_pipeline(spec(tmp_path, shape, aggregates=aggregates))
        assert run(spark, pipeline).late == 1
        assert backfill(spark, pipeline, day, day.replace(day=2)).accepted == 1
        assert validate(spark, pipeline).passed
    assert_equal(spark, tmp_path)
    assert "open" in table(spark, tmp_path, "nested", "hourly")[0]
    without = load_pipeline(spec(tmp_path, "nested"))
    assert run(spark, without).read == 0
    moved = spec(tmp_path, "nested", aggregates={"most": "max_by(event.user.country, event.seq)"})
    with pytest.raises(StateRefused, match="SPEC_CHANGED"):
        run(spark, load_pipeline(moved))


@pytest.mark.deep
def test_keys_and_values_in_structs_are_erased(spark: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path, ROWS + LATER)
    for shape in ("flat", "nested"):
        pipeline = load_pipeline(spec(tmp_path, shape))
        run(spark, pipeline)
        erase(spark, pipeline, Erasing({"id": "b"}, "id"))
        erase(spark, pipeline, Erasing({"country": "FR"}))
    assert_equal(spark, tmp_path)
    assert {row["country"] for row in table(spark, tmp_path, "nested", "hourly")} == {"DE"}


@pytest.mark.deep
def test_commands_name_the_columns_that_parts_became(spark: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path, ROWS)
    pipeline = load_pipeline(spec(tmp_path, "nested"))
    run(spark, pipeline)
    write(spark, tmp_path, LATER)
    news = explain(spark, pipeline).news
    assert (news.rows, news.event_times) == (len(LATER), None)
    file = tmp_path / "nested.yaml"
    file.write_text(json.dumps(spec(tmp_path, "nested")))
    for words in (["run"], ["show", "hourly"], ["late"], ["explain"], ["validate"]):
        command, *rest = words
        done = CliRunner().invoke(main, [command, str(file), *rest], prog_name="tidemark")
        assert done.exit_code == 0, done.output
        if command in ("show", "late"):
            assert "country" in done.stdout
            assert "DE" in done.stdout


@pytest.mark.deep
def test_a_source_that_changes_its_nested_rows_is_followed(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(spark, tmp_path, ROWS)
    for shape in ("flat", "nested"):
        run(spark, load_pipeline(spec(tmp_path, shape)))
    for shape, column in (("flat", "id"), ("nested", "event.head.id")):
        spark.sql(f"delete from delta.`{tmp_path / shape}` where {column} = 'b'")
        followed = follow_rewrites(spark, load_pipeline(spec(tmp_path, shape)))
        assert followed.followed is not None
    assert_equal(spark, tmp_path)
    assert sum(row["n"] for row in table(spark, tmp_path, "nested", "hourly")) == 3


@pytest.mark.deep
@pytest.mark.parametrize("dropped", [False, True], ids=["never there", "dropped"])
def test_a_null_time_in_a_struct_is_found_although_files_prove_nothing(
    spark: SparkSession, tmp_path: Path, *, dropped: bool
) -> None:
    """Without ids and lateness a batch is judged by its files, where they show every column."""
    path = str(tmp_path / "source")
    rows = "select 'k' as key, struct(timestamp'2026-01-01 10:00' as ts) as event"
    if dropped:
        # The files keep a column that has the name of the event time, and no null.
        spark.sql(f"create table delta.`{path}` using delta as {rows}, timestamp'2026-01-01' as ts")
        # Files that are written before a table maps its columns have these under their names.
        properties = "'delta.columnMapping.mode' = 'name'"
        spark.sql(f"alter table delta.`{path}` set tblproperties ({properties})")
        spark.sql(f"alter table delta.`{path}` drop column ts")
    else:
        spark.sql(f"create table delta.`{path}` using delta as {rows}")
    nulls = "struct(cast(null as timestamp) as ts)", "cast(null as struct<ts: timestamp>)"
    rows = ", ".join(f"('k', {event})" for event in nulls)
    spark.sql(f"insert into delta.`{path}` values {rows}")
    pipeline = load_pipeline(
        {
            "name": "p",
            "lake": str(tmp_path / "lake"),
            "source": {"table": path, "event_time": "event.ts", "key": ["key"]},
            "aggregates": {"n": "count()"},
            "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
        }
    )
    report = run(spark, pipeline)
    assert (report.read, report.accepted, report.quarantined) == (3, 1, 2)


@pytest.mark.deep
def test_a_struct_that_gets_a_field_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path, ROWS)
    for shape in ("flat", "nested"):
        run(spark, load_pipeline(spec(tmp_path, shape)))
    write(spark, tmp_path, LATER)
    target = f"delta.`{tmp_path / 'nested'}`"
    spark.sql(f"alter table {target} add column event.user.city string")
    for shape in ("flat", "nested"):
        run(spark, load_pipeline(spec(tmp_path, shape)))
    day = datetime(2026, 1, 1, tzinfo=UTC)
    for shape in ("flat", "nested"):
        backfill(spark, load_pipeline(spec(tmp_path, shape)), day, day.replace(day=2))
    assert_equal(spark, tmp_path)


REFUSED = [
    ({"event_time": "a.t"}, "source.event_time", "'a' has no field 't', did you mean 'ts'"),
    ({"event_time": "b.ts"}, "source.event_time", "'b' is no column of the source"),
    ({"event_time": "a.deep"}, "source.event_time", "can't be used by itself"),
    ({"event_time": "a.n"}, "source.event_time", "'n' is of type bigint; allowed are"),
    ({"key": ["text.k"]}, "source.key[0]", "read JSON text by get_json_object(text, '$.k')"),
    (
        {"key": ["a.key"]},
        "source.key[0]",
        "'a.key' would be called 'key', which is a column of the source already; give it another "
        'name in source.columns, as in columns: {a_key: "a.key"}, and use that',
    ),
    ({"event_id": "c.id"}, "source.event_id", "'c' is no column of the source"),
]


def test_parts_that_are_not_there_are_refused_by_one_sentence(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "source")
    spark.sql(
        f"create table delta.`{path}` using delta as select 'flat' as `a.ts`, 'k' as key,"
        " '{}' as text, struct(timestamp'2026-01-01' as ts, 1L as n, 'k' as key,"
        " struct(1 as b) as deep) as a"
    )
    common = {"table": path, "event_time": "a.ts", "key": ["key"]}
    for wrong, field, sentence in REFUSED:
        pipeline = load_pipeline(
            {
                "name": "p",
                "lake": str(tmp_path / "lake"),
                "source": common | wrong,
                "aggregates": {"n": "count()"},
                "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
            }
        )
        with pytest.raises(SpecError) as refused_by:
            run(spark, pipeline)
        assert (refused_by.value.field, sentence in refused_by.value.message) == (field, True), str(
            refused_by.value
        )
