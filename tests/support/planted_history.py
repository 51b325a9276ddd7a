"""Delta tables whose commits arrived at planted times, written without Spark."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

EVENTS = pa.schema([("id", pa.string()), ("shop", pa.string()), ("at", pa.timestamp("us", "UTC"))])


@dataclass(frozen=True)
class Planted:
    """Rows that arrive together at an instant, in microseconds since 1970."""

    arrival: int
    rows: Sequence[Mapping[str, Any]]


def write_history(table: Path, batches: Sequence[Planted], schema: pa.Schema = EVENTS) -> None:
    """Appends each batch as one commit, which says that it was made at the batch's arrival."""
    opened: DeltaTable | None = None
    for batch in batches:
        rows = pa.Table.from_pylist([dict(row) for row in batch.rows], schema=schema)
        # A table that is open reads its log once.
        write_deltalake(opened or table, rows, mode="append")
        opened = opened or DeltaTable(table)
        move_commit(table, opened.version(), batch.arrival)


def newest(table: Path) -> int:
    """The newest version of a table."""
    return max(int(file.stem) for file in (table / "_delta_log").glob("*.json"))


def move_commit(table: Path, version: int, arrival: int) -> None:
    """Lets a commit say that it was made at another time, which is a whole millisecond."""
    file = table / "_delta_log" / f"{version:020}.json"
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] = arrival // 1000
    file.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def plant_spec(home: Path, **changes: Any) -> dict[str, Any]:
    """A spec of hours over the table `source` in a directory; `changes` replace its sections."""
    return {
        "name": "shops",
        "lake": str(home / "lake"),
        "source": {"table": str(home / "source"), "event_time": "at", "key": ["shop"]},
        "watermark": {"delay": "10 minutes", "allowed_lateness": "1 hour"},
        "aggregates": {"n": "count()"},
        "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
    } | changes
