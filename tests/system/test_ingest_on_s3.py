"""Files that land on S3, for a source table there: taken once, whatever an ingest leaves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.ingest import find_nothing_new, ingest
from tests.support.s3_server import S3Server
from tests.support.s3_session import session_on_s3
from windowing.crash import armed
from windowing.errors import StateRefused
from windowing.ingest.rule import QUARANTINE
from windowing.ingest.table import home_of
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.storage.store import store_of


class Stopped(Exception):
    """Ends an ingest at a place."""


@pytest.fixture(scope="module")
def s3_session(s3_server: S3Server) -> Iterator[SparkSession]:
    """A session in a JVM that has the variables of the server."""
    with session_on_s3(s3_server) as session:
        yield session


def pipeline_on(root: Location, pinned: Path) -> Pipeline:
    spec: dict[str, Any] = {
        "name": "trips",
        "lake": root.text,
        "source": {
            "table": (root / "bronze").text,
            "event_time": "arrival",
            "key": ["id"],
            "files": {"folder": (root / "drop").text, "columns": str(pinned)},
        },
        "aggregates": {"n": "count()"},
        "windows": {"all": {"kind": "global"}},
    }
    return load_pipeline(spec)


def values(spark: SparkSession, table: Location, column: str) -> list[Any]:
    found = spark.read.format("delta").load(table.hadoop).select(column)
    return sorted(row[0] for row in found.collect())


@pytest.mark.usefixtures("jvm")
def test_files_on_s3_are_taken_once(
    s3_session: SparkSession, s3_server: S3Server, tmp_path: Path
) -> None:
    root = Location(f"s3://{s3_server.make_bucket()}/a lake")
    pipeline = pipeline_on(root, tmp_path / "columns.yaml")
    drop, source = root / "drop", pipeline.source.table
    store_of(drop).write(drop / "day 1.csv", b"id,n\n1,2\n2,3\n")
    assert ingest(s3_session, pipeline).appended == 2
    store_of(drop).write(drop / "day 2.csv", b"id,n\n3,x\n4,5\n")

    def stop(name: str) -> None:
        if name == "ingest.quarantined":
            raise Stopped

    with armed(stop), pytest.raises(Stopped):
        ingest(s3_session, pipeline)
    done = ingest(s3_session, pipeline)
    assert (done.appended, done.quarantined) == (1, 1)
    assert values(s3_session, source, "id") == [1, 2, 4]
    assert values(s3_session, home_of(source) / QUARANTINE, "record") == ["3,x"]
    assert values(s3_session, source, "source_file") == ["day 1.csv", "day 1.csv", "day 2.csv"]
    assert find_nothing_new(pipeline) is not None
    store_of(drop).write(drop / "day 1.csv", b"id,n\n1,2\n2,3\n9,9\n")
    with pytest.raises(StateRefused, match="FILE_CHANGED"):
        ingest(s3_session, pipeline)
