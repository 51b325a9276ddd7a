"""Reads which outputs are closed, and the rows of these as if nothing were.

The table of restated rows lies beside the output. A period is closed and opened in
jobs/recompute/periods.py.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from windowing.closed.frame import ClosedRows, overlay, sum_digests
from windowing.closed.rule import CLOSED_UNTIL, LANES, read_until, restated_name, write_digest
from windowing.columns import START
from windowing.grid.placing import InChains
from windowing.location import Location
from windowing.storage import own_tables
from windowing.storage.own_tables import Snapshot
from windowing.storage.plain_table import Bounds


@dataclass(frozen=True)
class Closed:
    """A closed output: its rows, and the table of its restated rows."""

    rows: ClosedRows
    restated: Snapshot

    def reaches(self, low_us: int | None) -> bool:
        """Whether windows that begin at or after an instant can be frozen or restated.

        Frozen ones begin before the end of the period. A session that begins just then would
        continue a frozen one that ends there. None stands for no bound.
        """
        return low_us is None or low_us <= self.rows.until_us

    def has_restated(self, spark: SparkSession) -> bool:
        """Whether there may be a restated row."""
        return own_tables.size(spark, self.restated.path)[0] > 0


def locate_restated(path: Location) -> Location:
    """Where the table of restated rows of the output at `path` lies."""
    return path.parent / restated_name(path.name)


def find_closed(
    snapshot: Snapshot, identity: tuple[str, ...], shown: tuple[str, ...], chain: InChains | None
) -> Closed | None:
    """What is closed of an output; None where nothing is, and then no other table is opened."""
    until_us = read_until(own_tables.find_setting(snapshot, CLOSED_UNTIL))
    if until_us is None:
        return None
    restated = own_tables.open_snapshot(locate_restated(snapshot.path))
    return Closed(ClosedRows(until_us, identity, shown, chain), restated)


def read_overlaid(
    spark: SparkSession, snapshot: Snapshot, closed: Closed | None, within: Bounds
) -> DataFrame:
    """The rows of an output as if nothing were closed; those not `within` may be left out."""
    stored = own_tables.read_snapshot(spark, snapshot, within)
    if closed is None:
        return stored
    low_us, _ = within.get(START, (None, None))
    if not closed.reaches(low_us) or not closed.has_restated(spark):
        return stored
    restated = own_tables.read_snapshot(spark, closed.restated, own_tables.EVERY_ROW)
    return overlay(stored, restated, closed.rows.identity)


def digest_rows(rows: DataFrame, columns: tuple[str, ...]) -> tuple[int, str]:
    """How many rows there are, and a digest of them that depends on no order and on no file."""
    (found,) = sum_digests(rows, columns).collect()
    sums = tuple(int(found[f"lane_{lane}"]) for lane in range(LANES))
    return int(found["n"]), write_digest(sums)
