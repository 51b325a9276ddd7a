"""What the file of a commit says."""

import json
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from windowing.grid.zone import micros
from windowing.source import table as source
from windowing.source.commits import read_commit
from windowing.spec.load import load_pipeline


def test_a_line_ends_where_the_log_ends_it_and_not_where_a_text_does() -> None:
    """delta-rs writes every character but those of ASCII as it is."""
    values = {"name": "a\u0085b\u2028c\u2029d"}
    stats = json.dumps({"numRecords": 3, "minValues": values}, ensure_ascii=False)
    add = {"add": {"path": "a.parquet", "dataChange": True, "stats": stats}}
    info = {"commitInfo": {"operation": "WRITE"}}
    lines = [json.dumps(action, ensure_ascii=False) + "\n" for action in (info, add)]
    assert "\u0085" in lines[1]
    commit = read_commit(5, "".join(lines), "at")
    assert (commit.operation, commit.files, commit.rows) == ("WRITE", 1, 3)


def test_texts_have_no_first_and_last_time(spark: SparkSession, tmp_path: Path) -> None:
    """The least text is no earlier time than the greatest one, because of their zones."""
    texts = ["2025-12-31T23:00:00-12:00", "2026-01-01T00:00:00+14:00"]
    times = pa.array([f"{texts[0][:19]}Z"], pa.string()).cast(pa.timestamp("us", "UTC"))
    for name, at in (("texts", pa.array(texts)), ("times", pa.concat_arrays([times, times]))):
        path = tmp_path / name
        write_deltalake(path, pa.table({"at": at, "place": ["a", "b"]}))
        pipeline = load_pipeline(
            {
                "name": "trips",
                "lake": str(tmp_path / "lake"),
                "source": {"table": str(path), "event_time": "at", "key": ["place"]},
                "aggregates": {"n": "count()"},
                "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
            }
        )
        (commit,) = source.commits(spark, pipeline, 0, 0)
        assert commit is not None and commit.rows == 2
        known_us = None if name == "texts" else micros(times[0].as_py())
        assert (commit.low_us, commit.high_us) == (known_us, known_us)
