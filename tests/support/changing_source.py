"""A pipeline under test whose source updates and deletes rows that were read before."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from tests import oracle
from tests.support.pipeline_under_test import ARRIVAL, SCHEMA, Lab
from windowing.grid.zone import micros
from windowing.location import Location
from windowing.storage import delta

FEED = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}


@dataclass
class Changing(Lab):
    """A lab whose source changes its past.

    It records its change feed, which the pipeline reads; in a lab that has none, the pipeline
    refuses such a source until it is told to follow. Ids expire after the `horizon`, if there is
    one.
    """

    feed: bool = True
    horizon: int | None = None

    def __post_init__(self) -> None:
        """Makes the source."""
        super().__post_init__()
        columns = delta.rows(self.spark, [], SCHEMA).schema
        delta.create(self.spark, Location(self.source), columns, FEED if self.feed else {})

    @property
    def source(self) -> str:
        """Where the source lies."""
        return str(self.root / "source")

    def spec(self) -> dict[str, Any]:
        """The lab's, with the feed and the horizon if there are."""
        spec = super().spec()
        if self.horizon is not None:
            spec["watermark"]["dedupe_horizon"] = f"{self.horizon} microseconds"
        if not self.feed:
            return spec
        return spec | {"source": spec["source"] | {"changes": "feed"}}

    def sql(self, statement: str) -> None:
        """Changes the source."""
        self.spark.sql(statement.format(f"delta.`{self.source}`"))

    def holds_what_the_source_does(self) -> None:
        """Outputs equal those of an oracle that reads the source as it is, at once.

        Its watermark never met what is gone.
        """
        rows = delta.read(self.spark, Location(self.source)).collect()
        self.holds_what_came([_event(row.asDict()) for row in rows])

    def holds_what_came(self, *runs: Iterable[oracle.Event]) -> None:
        """Outputs equal those of an oracle to which each of the `runs` brings these events."""
        self.truth = oracle.Oracle(
            self.delay, self.lateness, 10**15, self.horizon, self.windows, None
        )
        for events in runs:
            self.truth.run([*events], ARRIVAL)
        for window in self.windows:
            assert self.table(window.name) == self.expected(window), window


def _event(row: dict[str, Any]) -> oracle.Event:
    t = None if row["ts"] is None else micros(row["ts"].replace(tzinfo=UTC))
    return oracle.Event(row["key"], t, row["value"], row["id"], row["seq"])
