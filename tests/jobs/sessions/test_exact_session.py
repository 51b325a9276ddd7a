"""Results in a session with the settings of a notebook or a cluster; it keeps its settings."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.backfill import backfill
from jobs.read import read
from jobs.run import run
from jobs.sessions.exact_session import exact_session
from jobs.sessions.profiles import EXACT
from windowing.grid.zone import micros, moment
from windowing.spec.load import load_pipeline
from windowing.storage import delta, merges

ELSEWHERE = {
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.sources.partitionOverwriteMode": "DYNAMIC",
    "spark.databricks.delta.schema.autoMerge.enabled": "true",
    "spark.databricks.delta.stalenessLimit": "1h",
    "spark.databricks.delta.stats.collect": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.databricks.delta.vacuum.logging.enabled": "false",
}
"""Every setting that results depend on, with another value."""
HOUR_US = 3_600_000_000
ARRIVAL = moment(1_704_200_000_000_000)
MIDNIGHT = micros(moment(1_704_067_200_000_000))
"""2024-01-01T00:00:00Z."""


def spec(root: Path) -> dict[str, Any]:
    """A spec with local times of Berlin, and a computed column whose type depends on settings.

    Berlin is an hour ahead of UTC then.
    """
    return {
        "name": "p",
        "lake": f"{root}/lake",
        "source": {
            "table": f"{root}/source",
            "event_time": "at",
            "zone": "Europe/Berlin",
            "key": ["key"],
            "columns": {"share": "v / 3"},
        },
        "watermark": {"delay": "0 seconds", "allowed_lateness": "0 seconds"},
        "aggregates": {"n": "count()", "total": "sum(share)"},
        "windows": {
            "hourly": {"kind": "tumbling", "size": "1 hour"},
            "visits": {"kind": "session", "gap": "10 minutes"},
        },
    }


def land(spark: SparkSession, root: Path, kind: str, *texts: str) -> None:
    rows = delta.rows(
        spark,
        [{"key": "a", "text": text, "v": 1} for text in texts],
        "key string, text string, v decimal(10,2)",
    )
    events = rows.selectExpr("key", f"cast(text as {kind}) as at", "v")
    events.write.format("delta").mode("append").save(f"{root}/source")


def work(spark: SparkSession, own: SparkSession, root: Path, kind: str) -> list[tuple[Any, ...]]:
    """Two runs, the second with a late row, and a backfill that accepts it.

    Returns the rows of the output as the session `own` reads them.
    """
    root.mkdir()
    pipeline = load_pipeline(spec(root))
    land(spark, root, kind, "2024-01-01 01:30:00", "2024-01-01 04:30:00")
    reports = [run(own, pipeline, ARRIVAL)]
    land(spark, root, kind, "2024-01-01 01:40:00")
    reports += [
        run(own, pipeline, ARRIVAL),
        backfill(own, pipeline, moment(MIDNIGHT), moment(MIDNIGHT + HOUR_US)),
    ]
    assert [(r.accepted, r.late) for r in reports] == [(2, 0), (0, 1), (1, 0)]
    assert reports[-1].watermark == moment(MIDNIGHT + 3 * HOUR_US + HOUR_US // 2)
    found = read(own, pipeline, "hourly", published=False)
    rows = found.selectExpr(
        "key", "unix_micros(window_start)", "n", "cast(total as string)", "is_closed", "is_final"
    ).collect()
    return sorted(tuple(row) for row in rows)


EXPECTED = [
    ("a", MIDNIGHT, 2, "0.666666", True, True),
    ("a", MIDNIGHT + 3 * HOUR_US, 1, "0.333333", False, False),
]


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["string", "timestamp_ntz"])
def test_a_session_with_other_settings_gives_the_same_and_keeps_them(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    own = spark.newSession()
    for name, value in ELSEWHERE.items():
        own.conf.set(name, value)
    found = work(spark, own, tmp_path / "own", kind)
    assert [(key, start, n, float(total), *ends) for key, start, n, total, *ends in found] == [
        (key, start, n, pytest.approx(float(total)), *ends)
        for key, start, n, total, *ends in EXPECTED
    ]
    assert {name: own.conf.get(name) for name in ELSEWHERE} == ELSEWHERE


def test_a_session_that_has_the_settings_is_not_copied(spark: SparkSession) -> None:
    assert exact_session(spark) is spark
    own = spark.newSession()
    own.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    copy = exact_session(own)
    assert {name: copy.conf.get(name) for name in EXACT} == EXACT
    assert exact_session(copy) is copy


def test_a_session_in_which_nothing_is_set_is_copied(spark: SparkSession) -> None:
    own = spark.newSession()
    for name in EXACT:
        own.conf.unset(name)
    copy = exact_session(own)
    assert {name: copy.conf.get(name) for name in EXACT} == EXACT
    assert {name: own.conf.get(name, None) for name in EXACT} == dict.fromkeys(EXACT)


@pytest.mark.slow
def test_rows_are_marked_in_a_session_that_keeps_no_statistics(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta would end such a MERGE with an error of its own."""
    # Nothing is rewritten, however small it is.
    monkeypatch.setattr(merges, "_REWRITTEN_HERE_BYTES", 0)
    monkeypatch.setattr(merges, "_REWRITTEN_BYTES", 0)
    own = spark.newSession()
    own.conf.set("spark.databricks.delta.stats.collect", "false")
    pipeline = load_pipeline(spec(tmp_path))
    for times in (("2024-01-01 01:30:00", "2024-01-01 01:35:00"), ("2024-01-01 01:40:00",)):
        land(own, tmp_path, "string", *times)
        report = run(own, pipeline, moment(MIDNIGHT))
    assert report.windows["hourly"].updated == 1
    assert [row["n"] for row in delta.read(spark, pipeline.table("hourly")).collect()] == [3]


PROGRAM = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
from jobs.session import JARS
from jobs.sessions.profiles import TINY
from tests.jobs.sessions.test_exact_session import ELSEWHERE, work
jars = ":".join(map(str, JARS.glob("*.jar")))
builder = SparkSession.builder.master("local[2]").config("spark.driver.extraClassPath", jars)
for name, value in {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.shuffle.partitions": "2", "spark.databricks.delta.snapshotPartitions": "2",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", **TINY,
    **ELSEWHERE}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
print(json.dumps(work(spark, spark, Path(sys.argv[1]), "string")))
"""


@pytest.mark.deep
def test_a_process_on_another_clock_gives_the_same(jvm: None, tmp_path: Path) -> None:
    """The user's own program makes the session, and neither Python nor the JVM is in UTC."""
    project = Path(__file__).parents[3]
    clock = {**os.environ, "TZ": "America/New_York", "PYTHONPATH": str(project)}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "own")]
    done = subprocess.run(
        command, cwd=project, env=clock, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert [row[:3] for row in found] == [list(row[:3]) for row in EXPECTED]
    assert [row[4:] for row in found] == [list(row[4:]) for row in EXPECTED]
