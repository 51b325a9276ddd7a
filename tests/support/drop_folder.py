"""A folder in which files land, and the pipeline whose source table they are taken into."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from jobs.ingest import Ingestion, ingest
from windowing.ingest.rule import FILES, QUARANTINE
from windowing.ingest.table import home_of
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.storage import control
from windowing.storage.files import has_commit

BEGAN_S = 1_700_000_000


@dataclass
class DropFolder:
    """Files are written in turn, each a second later than the one before."""

    root: Path
    settings: dict[str, Any] = field(default_factory=dict)
    written: int = 0

    @property
    def folder(self) -> Path:
        found = self.root / "drop"
        found.mkdir(parents=True, exist_ok=True)
        return found

    @property
    def pinned(self) -> Path:
        return self.root / "columns" / "trips.yaml"

    @property
    def spec(self) -> dict[str, Any]:
        files = {"folder": str(self.folder), "columns": str(self.pinned), **self.settings}
        return {
            "name": "trips",
            "lake": str(self.root / "lake"),
            "source": {
                "table": str(self.root / "bronze" / "trips"),
                "event_time": "at",
                "zone": "UTC",
                "key": ["place"],
                "files": files,
            },
            "aggregates": {"n": "count()"},
            "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
        }

    @property
    def pipeline(self) -> Pipeline:
        return load_pipeline(self.spec)

    def land(self, name: str, content: str | bytes, at_s: int | None = None) -> Path:
        """Writes a file as a whole."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        self.written += 1
        at = BEGAN_S + self.written if at_s is None else at_s
        os.utime(file, (at, at))
        return file

    def pin(self, **types: str) -> None:
        """Pins columns by name and type."""
        self.pinned.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"  {name}: {kind}\n" for name, kind in types.items()]
        self.pinned.write_text("columns:\n" + "".join(lines))

    def take(self, spark: SparkSession) -> Ingestion:
        return ingest(spark, self.pipeline)

    def rows(self, spark: SparkSession, *columns: str) -> list[tuple[Any, ...]]:
        """The rows of the source table, in order; none where there is no table."""
        table = self.pipeline.source.table
        if not has_commit(table):
            return []
        found = spark.read.format("delta").load(table.text)
        chosen = found.select(*columns) if columns else found
        return sorted((tuple(row) for row in chosen.collect()), key=repr)

    def quarantine(self, spark: SparkSession) -> list[tuple[str, str | None, str]]:
        """The records that are no rows: file, text and reason, in order."""
        place = home_of(self.pipeline.source.table) / QUARANTINE
        if not has_commit(place):
            return []
        found = spark.read.format("delta").load(place.text)
        kept = found.select("source_file", "record", "reason").collect()
        return sorted((tuple(row) for row in kept), key=repr)

    def record(self) -> list[dict[str, Any]]:
        """The record of files, in order."""
        found = control.read_rows(home_of(self.pipeline.source.table) / FILES)
        return sorted(
            (dict(row) for row in found), key=lambda row: (row["batch"], str(row["file"]))
        )
