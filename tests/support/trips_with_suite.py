"""A pipeline with a suite beside its spec, its commands, and the rows that it reads."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from jobs.cli.main import main
from windowing.location import Location
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta

SPEC = """
name: trips
lake: lake
source: {table: lake/bronze/trips, event_time: at, key: [place], event_id: id}
watermark: {delay: 0 seconds}
aggregates: {n: count(), total: sum(fare)}
windows:
  hourly: {kind: tumbling, size: 1 hour}
expectations: {suite: trips}
"""
SUITE = """
hourly:
  - type: expect_column_values_to_be_between
    kwargs: {column: n, min_value: 1, max_value: MOST}
"""


@dataclass(frozen=True)
class Trips:
    """A spec with a suite beside it, and the commands on it."""

    spark: SparkSession
    root: Path

    @property
    def spec(self) -> Path:
        return self.root / "trips.yaml"

    @property
    def pipeline(self) -> Pipeline:
        return load_pipeline(self.spec)

    def expect(self, most: int) -> None:
        """The suite: a window has at most so many rows."""
        folder = self.root / "expectations"
        folder.mkdir(exist_ok=True)
        (folder / "trips.yaml").write_text(SUITE.replace("MOST", str(most)))

    def land(self, *rows: tuple[str, str, datetime, int]) -> None:
        """Appends (id, place, at, fare) to the source."""
        frame = self.spark.createDataFrame(
            list(rows), "id string, place string, at timestamp, fare bigint"
        )
        delta.append(frame.coalesce(1), Location(str(self.root / "lake" / "bronze" / "trips")))

    def __call__(self, command: str, *words: str, code: int = 0) -> Result:
        """What `tidemark {command} SPEC {words}` printed; it ended with `code`."""
        line = [command, str(self.spec), *words]
        result = CliRunner().invoke(main, line, prog_name="tidemark")
        assert result.exit_code == code, result.output
        return result


def at(minute: int) -> datetime:
    """That many minutes after six."""
    return datetime(2013, 1, 1, 6, tzinfo=UTC) + timedelta(minutes=minute)


def make_trips(spark: SparkSession, root: Path) -> Trips:
    """A pipeline whose first run waits for it: one place has two rows in an hour."""
    trips = Trips(spark, root)
    trips.spec.write_text(SPEC)
    trips.expect(1)
    trips.land(("a", "EWR", at(1), 2), ("b", "EWR", at(2), 3), ("c", "JFK", at(3), 4))
    return trips
