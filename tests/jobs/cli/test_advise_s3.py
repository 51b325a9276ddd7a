"""`tidemark advise` on a source in a bucket: log and files are read there, without a JVM."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from tests.jobs.cli.test_advise import advise
from tests.support.planted_history import EVENTS, plant_spec
from windowing.location import Location
from windowing.storage.s3_settings import read_s3_settings


def test_a_source_in_a_bucket_tells_how_late_its_events_are(
    s3_home: Location, tmp_path: Path
) -> None:
    source = f"{s3_home}/source"
    options = read_s3_settings(os.environ).for_rust()
    # Long enough ago that no event lies ahead of the commit that brings it.
    start = datetime.now(UTC) - timedelta(hours=1)
    for n in range(3):
        times = [start + timedelta(seconds=n), start - timedelta(minutes=10 * n)]
        rows = [{"id": str(at), "shop": "a", "at": at} for at in times]
        table = pa.Table.from_pylist(rows, schema=EVENTS)
        write_deltalake(source, table, mode="append", storage_options=options)
    DeltaTable(source, storage_options=options).optimize.compact()
    asked = plant_spec(tmp_path)["source"] | {"table": source}
    said = advise(tmp_path, "--json", source=asked, lake=f"{s3_home}/lake")
    assert said.exit_code == 0, said.output
    found = json.loads(said.stdout)
    assert (found["history"]["events"], found["history"]["judged"]) == (6, 4)
    # The last one lies twenty minutes before the event of a second before.
    assert found["lateness"]["quantiles"][-1]["behind_seconds"] == 1201
