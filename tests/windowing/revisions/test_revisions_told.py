"""From which version on the log of an output tells how its rows have changed. No JVM."""

from pathlib import Path

import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from tests.support.published_lake import PublishedLake
from windowing.closed.rule import CLOSED_UNTIL
from windowing.location import Location
from windowing.merge.rule import output_table
from windowing.revisions.table import _find_told
from windowing.storage.control import TableError, errors_explained, open_version

KEPT_UNTIL = 5
"""Up to which version the last maintenance has kept what has changed."""


@pytest.fixture
def lake(tmp_path: Path) -> PublishedLake:
    """Versions 1 to 8 of an output, of whose log 0 to 2 are gone: a checkpoint at 3 replaces it."""
    made = PublishedLake(tmp_path)
    for n in range(8):
        made.run({("EWR", 1): n})
        if n == 2:
            open_delta(made.output).create_checkpoint()
    drop_log(made, range(3))
    return made


def open_delta(table: Location) -> DeltaTable:
    return DeltaTable(table.text)


def drop_log(lake: PublishedLake, versions: range) -> None:
    """The commits of these versions are gone, and the checkpoints that belong to them."""
    for version in versions:
        for file in (lake.output.local / "_delta_log").glob(f"{version:020}.*"):
            file.unlink()


def find_first(lake: PublishedLake) -> int:
    """The first version whose changes the log tells, of those that were not kept."""
    target = output_table(lake.pipeline, lake.pipeline.window("hourly"))
    newest = open_delta(lake.output).version()
    return _find_told(target, newest, KEPT_UNTIL).first


def test_what_was_not_kept_is_told(lake: PublishedLake) -> None:
    assert find_first(lake) == 6


def test_a_property_that_is_set_takes_nothing_away(lake: PublishedLake) -> None:
    """As a close sets one, in a commit that repeats the columns."""
    for until in ("1", "2"):
        settings = {CLOSED_UNTIL: until}
        open_delta(lake.output).alter.set_table_properties(settings, raise_if_not_exists=False)
        assert find_first(lake) == 6
    lake.run({("EWR", 1): 9})
    assert find_first(lake) == 6


def test_columns_that_came_are_where_it_begins(lake: PublishedLake) -> None:
    more = Field("total", PrimitiveType("long"))
    open_delta(lake.output).alter.add_columns(more)
    assert find_first(lake) == 9
    settings = {CLOSED_UNTIL: "1"}
    open_delta(lake.output).alter.set_table_properties(settings, raise_if_not_exists=False)
    assert find_first(lake) == 9


def test_columns_that_are_not_known_are_others(lake: PublishedLake) -> None:
    settings = {CLOSED_UNTIL: "1"}
    open_delta(lake.output).alter.set_table_properties(settings, raise_if_not_exists=False)
    open_delta(lake.output).create_checkpoint()
    drop_log(lake, range(3, 6))
    with pytest.raises(TableError), errors_explained(lake.output):
        open_version(lake.output, 6)
    assert find_first(lake) == 9
