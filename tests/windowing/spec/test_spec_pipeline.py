"""What a pipeline says of its windows and tables by their names."""

import pytest

from tests.windowing.cases import COUNT, HOUR, MINUTE, pipeline
from windowing.grid.rule import Grid
from windowing.location import Location
from windowing.spec.kinds import CappedSession, Count, Session, Tumbling

HOURLY = Tumbling("hourly", Grid(HOUR), COUNT)
VISITS = Session("visits", 5 * MINUTE, COUNT)
PAIRS = Count("pairs", 2, 2, COUNT)


def test_a_window_is_found_by_its_name() -> None:
    shop = pipeline(HOURLY, VISITS)
    assert shop.window("visits") == VISITS
    with pytest.raises(KeyError, match="'daily' is not a window of p; it has hourly, visits"):
        shop.window("daily")


def test_a_table_is_found_by_its_name_and_named_by_its_place() -> None:
    shop = pipeline(HOURLY)
    assert shop.table("_late") == Location("/lake/p/_late")
    assert shop.table("_late").name == "_late"


def test_windows_are_told_apart_by_how_they_are_made() -> None:
    short = CappedSession("short", 5 * MINUTE, HOUR, COUNT)
    shop = pipeline(HOURLY, VISITS, PAIRS, short)
    assert shop.aligned == (HOURLY,)
    assert shop.sessions == (VISITS,)
    assert shop.chained == (VISITS, short)
    assert shop.ordered == (PAIRS, short)
    assert shop.aggregates == COUNT
