"""A pipeline whose outputs and ledger are written by hand, so it is published without a JVM."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from deltalake import Schema

from jobs.publish import publish
from tests.support.hourly_trips import SPEC
from tests.support.met_expectations import record_met
from tests.support.published_readers import Row, open_delta, to_rows
from windowing.grid.zone import micros, moment
from windowing.ledger.rule import CLOSE, OPEN, LedgerEntry
from windowing.ledger.table import create_ledger, read_history, record_entries
from windowing.location import Location
from windowing.merge.rule import published_name
from windowing.report.rule import Publication
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.storage import plain_table
from windowing.storage.arrow_merge import Clauses

INSTANT = pa.timestamp("us", "UTC")
HOUR = 3_600_000_000
COLUMNS = pa.schema(
    [
        ("place", pa.string()),
        ("window_start", INSTANT),
        ("window_end", INSTANT),
        ("n", pa.int64()),
        ("revision", pa.int64()),
        ("run", pa.int64()),
    ]
)
PROPERTIES = {
    "delta.dataSkippingStatsColumns": "window_start,window_end",
    "delta.enableChangeDataFeed": "true",
    "delta.checkpointInterval": "10",
}
IDENTITY = ("place", "window_start")
Window = tuple[str, int]
"""A place and an hour after 1970."""


@dataclass
class PublishedLake:
    """The output `hourly` of one pipeline; `rows` are n, revision and run by window.

    The spec lies in the directory `home`, and the tables where `lake` says.
    """

    home: Path
    lake: str = "lake"
    rows: dict[Window, tuple[int, int, int]] = field(default_factory=dict)
    runs: int = 0

    def __post_init__(self) -> None:
        self.spec.write_text(SPEC.replace("lake: lake", f"lake: {self.lake}"))
        schema = Schema.from_arrow(COLUMNS)
        plain_table.create(self.output, str(schema.to_json()), PROPERTIES)
        create_ledger(self.pipeline)

    @property
    def spec(self) -> Path:
        """The file of the spec."""
        return self.home / "trips.yaml"

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline."""
        return load_pipeline(self.spec)

    @property
    def output(self) -> Location:
        """The output, of which readers see what is published."""
        return self.pipeline.table("hourly")

    @property
    def table(self) -> Location:
        """The published table."""
        return self.pipeline.table(published_name("hourly"))

    def run(self, counts: Mapping[Window, int | None]) -> None:
        """A run after which windows have these counts; one without a count is gone."""
        self.runs += 1
        ops, values = [], []
        for window, n in counts.items():
            before = self.rows.get(window)
            ops.append("I" if before is None else "D" if n is None else "U")
            revision = 0 if before is None else before[1] + 1
            now = before or (0, 0, 0) if n is None else (n, revision, self.runs)
            values.append((*window, *now))
            self.rows.pop(window, None)
            if n is not None:
                self.rows[window] = now
        table = to_table(values).append_column("__op", pa.array(ops, pa.string()))
        opened = plain_table.find_plain(self.output)
        assert opened is not None
        plain_table.merge(opened, table, Clauses(IDENTITY, None))
        self.close(opened.version + 1)

    def close(self, version: int, *more: LedgerEntry) -> None:
        """The ledger says that a run has left the output at that version, which is right."""
        past = read_history(self.pipeline)
        at = self.runs * HOUR
        closed = LedgerEntry(
            CLOSE, run=self.runs, at=at, arrival=at, watermark_out=at, versions={"hourly": version}
        )
        record_entries(self.pipeline, past, [LedgerEntry(OPEN, run=self.runs), closed, *more])
        record_met(self.pipeline)

    def publish(self) -> Publication:
        """Publishes the newest version."""
        return publish(self.pipeline, "tests are no analysts")

    @property
    def newest(self) -> list[Row]:
        """The rows of the output as the model has them."""
        return to_rows(to_table([(*window, *row) for window, row in self.rows.items()]))

    def read(self) -> list[Row]:
        """The rows of the published table."""
        return to_rows(open_delta(self.table).to_pyarrow_table().cast(COLUMNS))


def to_table(rows: list[tuple[str, int, int, int, int]]) -> pa.Table:
    """Rows of (place, hour, n, revision, run) with the columns of an output."""
    names = [
        {
            "place": place,
            "window_start": moment(hour * HOUR),
            "window_end": moment((hour + 1) * HOUR),
            "n": n,
            "revision": revision,
            "run": run,
        }
        for place, hour, n, revision, run in rows
    ]
    return pa.Table.from_pylist(names, schema=COLUMNS)


def hour_of(row: Row) -> int:
    """The hour in which the window of a row begins."""
    start = row["window_start"]
    return int(start if isinstance(start, int) else micros(start)) // HOUR
