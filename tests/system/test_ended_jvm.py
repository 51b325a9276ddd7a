"""What a command says whose JVM has ended."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

INSTANT = pa.timestamp("us", "UTC")


@pytest.mark.deep
@pytest.mark.usefixtures("jvm")
def test_a_jvm_without_memory_says_so(tmp_path: Path) -> None:
    texts = pa.array([str(n) + "x" * 8_000_000 for n in range(40)])
    times = pa.array(range(40), pa.int64()).cast(INSTANT)
    keys = pa.array(["a"] * 40)
    write_deltalake(str(tmp_path / "source"), pa.table({"k": keys, "ts": times, "doc": texts}))
    spec = {
        "name": "docs",
        "lake": str(tmp_path / "lake"),
        "source": {"table": str(tmp_path / "source"), "event_time": "ts", "key": ["k"]},
        "aggregates": {"all": "collect(doc)"},
        "windows": {"daily": {"kind": "tumbling", "size": "1 day"}},
    }
    (tmp_path / "docs.yaml").write_text(json.dumps(spec))
    found = subprocess.run(
        [sys.executable, "-m", "jobs", "run", str(tmp_path / "docs.yaml")],
        env=os.environ | {"PYSPARK_SUBMIT_ARGS": "--driver-memory 512m pyspark-shell"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr == (
        "tidemark: Spark's JVM ended, because it ran out of memory (Java heap space); give it a "
        'larger heap, as in PYSPARK_SUBMIT_ARGS="--driver-memory 8g pyspark-shell"\n'
    )
