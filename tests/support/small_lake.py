"""A pipeline in a lake of its own whose rooms are called directly, without a stream or a ledger.

Times are minutes after 1970, so that a window is two small numbers.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.diagnosis.tables import list_schemas, tables_of_window
from jobs.microbatch.admission import Admitted, admit_rows
from jobs.microbatch.context import Closing, RunContext
from tests.support.stored_rows import read_stored
from windowing.grid.range import Range
from windowing.merge.table import create_table
from windowing.panes.rule import NO_BATCH, Family, pane_families
from windowing.panes.table import Stamp
from windowing.spec.duration import MINUTE
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta, delta_log, own_tables

SCHEMA = "id string, key string, ts timestamp, value bigint, attr double, mark boolean"
AGGREGATES = {"n": "count()", "total": "sum(value)"}
ARRIVAL = 1000
"""The minute of every arrival, after which an event is in the future."""
Row = tuple[Any, ...]


def at(minute: float | None) -> datetime | None:
    """The instant so many minutes after 1970."""
    if minute is None:
        return None
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)


def just_after(minute: float) -> float:
    """One microsecond after the minute, which is where windows of events end."""
    return round(minute + 1 / MINUTE, 9)


def just_before(minute: float) -> float:
    """One microsecond before the minute."""
    return round(minute - 1 / MINUTE, 9)


def us(minute: float | None) -> int | None:
    """The same in microseconds."""
    return None if minute is None else round(minute * MINUTE)


def span(low: float, high: float) -> Range:
    """Event times between two minutes, both inside."""
    return Range(round(low * MINUTE), round(high * MINUTE))


def rows_of(frame: DataFrame, *names: str) -> list[Row]:
    """The named columns of all rows in order, with minutes after 1970 in place of times."""
    chosen = frame.select(*names)
    times = [f.name for f in chosen.schema.fields if isinstance(f.dataType, T.TimestampType)]
    plain = chosen.withColumns({name: F.unix_micros(name) for name in times})
    found = []
    for row in plain.collect():
        values = row.asDict()
        found.append(tuple(_minute(v) if n in times else v for n, v in values.items()))
    return sorted(found, key=lambda row: [(value is not None, value) for value in row])


def _minute(micros: int | None) -> float | None:
    return None if micros is None else round(micros / MINUTE, 9)


@dataclass(frozen=True)
class SmallLake:
    """A lake whose source has no rows; rows are given to the rooms."""

    spark: SparkSession
    pipeline: Pipeline

    def frame(self, *events: Row) -> DataFrame:
        """Rows of the source: (id, key, minute, value, attr, mark), the last ones optional."""
        names = ("id", "key", "ts", "value", "attr", "mark")
        values = []
        for event in events:
            row = dict(zip(names, (*event, *[None] * (len(names) - len(event))), strict=True))
            values.append(row | {"ts": at(row["ts"])})
        return delta.rows(self.spark, values, SCHEMA)

    def batch(self, number: int = 0, watermark: float | None = None, **more: Any) -> RunContext:
        """The batch of this number, in a run of its own that is judged by `watermark`."""
        stamp = Stamp(number + 1, number, us(watermark))
        return RunContext(self.spark, self.pipeline, stamp, ARRIVAL * MINUTE, **more)

    def admit(self, batch: RunContext, *events: Row) -> Admitted:
        """The events as the batch admits them."""
        return admit_rows(batch, self.frame(*events))

    def closing(
        self,
        run: int,
        before: float | None,
        after: float | None,
        within: tuple[float, float] | None = None,
    ) -> Closing:
        """The end of a run that moves the watermark and accepted events `within` these times."""
        stamp = Stamp(run, NO_BATCH, us(before))
        batch = RunContext(self.spark, self.pipeline, stamp, ARRIVAL * MINUTE)
        return Closing(batch, us(before), us(after), None if within is None else span(*within))

    def fill(self, table: str, *rows: Row) -> None:
        """Appends rows to a table, all of its columns in order, with minutes in place of times."""
        schema = self.read(table).schema
        times = [isinstance(f.dataType, T.TimestampType) for f in schema.fields]
        values = [
            {
                name: at(value) if is_time else value
                for name, value, is_time in zip(schema.names, row, times, strict=True)
            }
            for row in rows
        ]
        ddl = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in schema.fields)
        delta.append(delta.rows(self.spark, values, ddl), self.pipeline.table(table))

    def family(self) -> Family:
        """The only family of panes."""
        (found,) = pane_families(self.pipeline)
        return found

    def read(self, table: str) -> DataFrame:
        """A table of the pipeline."""
        return read_stored(self.spark, self.pipeline.table(table))

    def rows(self, table: str, *names: str) -> list[Row]:
        """The named columns of a table, or all of them, as `rows_of` gives them."""
        found = self.read(table)
        return rows_of(found, *(names or found.columns))

    def exists(self, table: str) -> bool:
        """Whether the table was created."""
        return delta.exists(self.spark, self.pipeline.table(table))

    def version(self, table: str) -> int:
        """The newest version of a table; it stays where nothing is written."""
        return delta_log.version(self.spark, self.pipeline.table(table))


def small_lake(
    spark: SparkSession,
    root: Path,
    windows: Mapping[str, object],
    *,
    lateness: str = "forever",
    aggregates: Mapping[str, str] | None = None,
    source: Mapping[str, Any] | None = None,
    watermark: Mapping[str, Any] | None = None,
    retention: Mapping[str, str] | None = None,
    created: Collection[str] | None = None,
) -> SmallLake:
    """A pipeline with these windows; the outputs of those `created`, or of all, are empty tables.

    `source`, `watermark` and `retention` are added to the spec.
    """
    spec = {
        "name": "small",
        "lake": str(root / "lake"),
        "source": {
            "table": str(root / "source"),
            "event_time": "ts",
            "key": ["key"],
            **(source or {}),
        },
        "watermark": {"delay": "0 seconds", "allowed_lateness": lateness, **(watermark or {})},
        "aggregates": dict(aggregates or AGGREGATES),
        "windows": dict(windows),
        "retention": dict(retention or {}),
    }
    pipeline = load_pipeline(spec)
    own_tables.create(spark, pipeline.source.table, delta.parse_columns(SCHEMA), {})
    windows_with_tables = [w for w in pipeline.windows if created is None or w.name in created]
    paths = {target.path for w in windows_with_tables for target in tables_of_window(pipeline, w)}
    for target, schema in list_schemas(spark, pipeline) if paths else ():
        if target.path in paths:
            create_table(spark, target, schema)
    return SmallLake(spark, pipeline)
