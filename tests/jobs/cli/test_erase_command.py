"""What `tidemark erase` says that it does not reach."""

from typing import Any

from jobs.cli.erase import _describe_erased
from jobs.erase import Erased
from windowing.spec.load import load_pipeline


def describe(**more: Any) -> str:
    """What is said after an erasure from a pipeline whose source has more fields."""
    pipeline = load_pipeline(
        {
            "name": "trips",
            "lake": "/lake",
            "source": {"table": "/rides", "event_time": "ts", "key": ["city"], **more},
            "aggregates": {"n": "count()"},
            "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
        }
    )
    return " ".join(_describe_erased(pipeline, "key", Erased({"_late": 1})))


def test_files_that_landed_are_named() -> None:
    files = {"folder": "/drop", "format": "csv", "columns": "/columns/trips.yaml"}
    assert (
        "Not erased: files with it in /drop, and broken records of these in "
        "/rides/_ingest/quarantine; delete them by hand."
    ) in describe(files=files)
    assert "Not erased" not in describe()
