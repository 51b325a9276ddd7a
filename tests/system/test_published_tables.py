"""Published tables have the rows that were published, for every reader, and tell what differs.

A pipeline lives on: expectations that were not met, publications, corrections, a rollback,
maintenance and erasure. Each time all readers find in its published tables what `read` finds.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from jobs.erase import erase
from jobs.maintain import maintain
from jobs.publish import publish, roll_back
from jobs.read import read
from tests.oracle import Count, Event, Session, Sliding, Tumbling, Window
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.met_expectations import record_met
from tests.support.pipeline_under_test import AGGREGATES, Lab, become_older
from tests.support.published_readers import (
    Row,
    open_delta,
    read_by_each,
    read_feed,
    tell_difference,
    to_rows,
)
from tests.support.s3_server import S3Server
from tests.support.s3_session import session_on_s3
from windowing.errors import ExpectationsFailed
from windowing.ledger.erased import Erasing
from windowing.location import Location
from windowing.merge.rule import identity, published_name
from windowing.storage import delta

WINDOWS: tuple[Window, ...] = (
    Tumbling("hourly", 60 * MINUTE),
    Sliding("rolling", 60 * MINUTE, 20 * MINUTE, emit="changes"),
    Session("visits", 10 * MINUTE, emit="on_close"),
    Count("pairs", 2),
)
FEW = (WINDOWS[0], WINDOWS[2])
"""One of which rows are corrected, and one of which they are written when they are closed."""
SOME_OR_ALL = pytest.mark.parametrize(
    "windows",
    [pytest.param(FEW, id="few"), pytest.param(WINDOWS, id="all", marks=pytest.mark.deep)],
)


@dataclass
class Published:
    """The published tables of a pipeline, and what they showed when they were looked at last."""

    lab: Lab
    shown: dict[str, list[Row]] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    runs: int = 0

    def run(self, *minutes: int, key: str = "a") -> None:
        """A run that reads an event at each of these minutes."""
        self.runs += 1
        times = [BASE + minute * MINUTE for minute in minutes]
        events = [Event(key, at, n, f"{key}{self.runs}-{n}") for n, at in enumerate(times)]
        self.lab.run(events)

    def publish(self) -> None:
        """Publishes the newest versions."""
        record_met(self.lab.pipeline)
        publish(self.lab.pipeline, "tests are no analysts")

    def table(self, window: str) -> Location:
        """The published table of a window."""
        return self.lab.pipeline.table(published_name(window))

    def look(self) -> dict[str, list[Row]]:
        """What every reader finds in the table of each window."""
        found = {}
        for window in self.lab.windows:
            rows = read(self.lab.spark, self.lab.pipeline, window.name)
            expected = to_rows(rows.drop("is_closed", "is_final").toArrow())
            by_each = read_by_each(self.table(window.name), "key", "a")
            by_each["Spark"] = to_rows(
                delta.read(self.lab.spark, self.table(window.name)).toArrow()
            )
            wrong = [name for name, each in by_each.items() if each != expected]
            assert not wrong, (window.name, wrong, expected, by_each[wrong[0]])
            found[window.name] = expected
        return found

    def check(self) -> None:
        """Rows are those of `read`, and the feed tells the difference since the last look."""
        found = self.look()
        for window, rows in found.items():
            keys = identity(self.lab.pipeline.window(window), ("key",))
            feed = read_feed(self.table(window), self.versions.get(window, -1))
            due = tell_difference(self.shown.get(window, []), rows, keys)
            assert canonical(feed) == canonical(due), window
        self.keep(found)

    def check_unchanged(self) -> None:
        """Rows and versions are those of the last look."""
        assert self.look() == self.shown
        assert {name: self.version(name) for name in self.versions} == self.versions

    def version(self, window: str) -> int:
        """The newest version of the table of a window."""
        return open_delta(self.table(window)).version()

    def keep(self, found: dict[str, list[Row]]) -> None:
        """Remembers what there is, for the next look."""
        self.shown = found
        self.versions = {name: self.version(name) for name in found}


def canonical(rows: list[Row]) -> list[str]:
    """Rows of a feed whatever the order of rows and columns."""
    return sorted(repr(sorted(row.items(), key=lambda each: each[0])) for row in rows)


def make(
    spark: SparkSession, home: Path | Location, windows: tuple[Window, ...] = WINDOWS
) -> Published:
    """A pipeline whose first run is published."""
    lab = Lab(spark, home, windows, delay=10 * MINUTE, shows=tuple(AGGREGATES))
    published = Published(lab)
    published.run(0, 5, 70, 75, 200)
    published.publish()
    published.check()
    return published


def live(published: Published) -> None:
    """Whatever changes what readers see, and what must not."""
    lab = published.lab
    published.run(6, 71, 230)
    published.check_unchanged()
    with pytest.raises(ExpectationsFailed):
        publish(lab.pipeline)
    published.check_unchanged()
    published.publish()
    published.check()
    # Two corrections of the same windows are one difference.
    published.run(7, 72, 240)
    published.run(8, 300, key="b")
    before = published.shown
    published.publish()
    published.check()
    assert published.shown != before
    roll_back(lab.pipeline, None, "the prices were wrong")
    published.check()
    assert published.shown == before
    published.publish()
    published.check()
    maintain(lab.spark, lab.pipeline)
    assert published.look() == published.shown
    published.keep(published.shown)
    published.run(9, 400)
    published.publish()
    published.check()
    erase(lab.spark, lab.pipeline, Erasing({"key": "b"}))
    found = published.look()
    assert all(row["key"] != "b" for rows in found.values() for row in rows)
    assert all(rows for rows in found.values())
    published.keep(found)
    published.run(10, 410)
    published.publish()
    published.check()


@pytest.mark.slow
@SOME_OR_ALL
def test_all_readers_find_what_was_published(
    spark: SparkSession, tmp_path: Path, windows: tuple[Window, ...]
) -> None:
    published = make(spark, tmp_path, windows)
    live(published)
    lake = published.lab.pipeline.root.local
    found = (lake / "published").rglob("*.parquet")
    # A checkpoint of a log has no rows.
    files = [file for file in found if "_delta_log" not in file.parts]
    kept = [
        name for name in files if "b" in pq.read_table(name, columns=["key"])["key"].to_pylist()
    ]
    assert files
    assert not kept, "an erased key is in no file, also of the change feed"
    assert not list(lake.rglob("published/*/*deletion_vector*"))


@pytest.fixture
def s3_session(s3_server: S3Server) -> Iterator[SparkSession]:
    """A session in a JVM that has the variables of the server."""
    with session_on_s3(s3_server) as session:
        yield session


@SOME_OR_ALL
@pytest.mark.usefixtures("jvm")
def test_all_readers_find_what_was_published_on_s3(
    s3_server: S3Server, s3_session: SparkSession, windows: tuple[Window, ...]
) -> None:
    live(make(s3_session, Location(f"s3://{s3_server.make_bucket()}/a lake"), windows))


@pytest.mark.deep
def test_a_lake_of_before_gets_published_tables_by_its_next_publication(
    spark: SparkSession, tmp_path: Path
) -> None:
    published = make(spark, tmp_path)
    lake = published.lab.pipeline.root.local
    for file in sorted((lake / "published").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    publish(published.lab.pipeline)
    assert published.look() == published.shown
    become_older(lake.rglob("*.parquet"), by=timedelta(days=60))
    maintain(spark, published.lab.pipeline)
    assert published.look() == published.shown
