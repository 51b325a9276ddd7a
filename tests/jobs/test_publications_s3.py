"""Publications on S3: what readers find there, and what a publication asks of the server."""

from pathlib import Path

import pytest

from jobs.publish import roll_back
from tests.support.faulty_proxy import CHANGES, Fault, FaultyProxy, Planned
from tests.support.published_lake import PublishedLake
from tests.support.published_readers import open_delta, read_by_each, read_feed
from windowing.ledger.rule import PUBLISH
from windowing.ledger.table import read_history
from windowing.location import Location
from windowing.storage.kept_open import logs_copied

OF_QUALITY = 6
"""Four commits and two files of `_quality`, by which a publication is judged, each read once."""
MOST = {"GET": 17 + OF_QUALITY, "LIST": 2, "PUT": 9, "COPY": 1}
"""What the publication of one correction of one output asks for; a lease may be renewed twice."""


@pytest.fixture
def lake(s3_home: Location, tmp_path: Path) -> PublishedLake:
    """A pipeline on S3 whose first run is published."""
    made = PublishedLake(tmp_path, f"{s3_home.text}/a lake")
    made.run({("EWR", 1): 1, ("JFK", 1): 5})
    made.publish()
    return made


def check(lake: PublishedLake) -> None:
    """All readers find what was published."""
    found = read_by_each(lake.table, "place", "EWR")
    wrong = [name for name, rows in found.items() if rows != lake.newest]
    assert not wrong, found


def test_all_readers_find_what_was_published(lake: PublishedLake) -> None:
    check(lake)
    lake.run({("EWR", 1): 2})
    lake.run({("EWR", 1): 3, ("EWR", 2): 7})
    lake.publish()
    check(lake)
    feed = [(row["_change_type"], row["n"]) for row in read_feed(lake.table, 0)]
    assert sorted(feed) == [("insert", 7), ("update_postimage", 3), ("update_preimage", 1)]
    first = [e.seq for e in read_history(lake.pipeline).entries if e.step == PUBLISH][0]
    roll_back(lake.pipeline, first, "wrong fares")
    assert [row["n"] for row in lake.read()] == [1, 5]


def test_a_publication_asks_for_little(lake: PublishedLake, s3_proxy: FaultyProxy) -> None:
    lake.run({("EWR", 1): 2})
    s3_proxy.plan()
    with logs_copied():
        lake.publish()
    kinds = [each.kind for each in s3_proxy.asked]
    counted = {kind: kinds.count(kind) for kind in sorted({*kinds})}
    asked = [f"{each.kind} {each.key}" for each in s3_proxy.asked]
    assert counted.get("PUT", 0) > 0, "the proxy counts"
    assert all(n <= MOST.get(kind, 0) for kind, n in counted.items()), "\n".join(asked)
    check(lake)


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.UNANSWERED])
def test_a_request_that_fails_is_made_up_for(
    lake: PublishedLake, s3_proxy: FaultyProxy, fault: Fault
) -> None:
    lake.run({("EWR", 1): 2})
    lake.publish()
    for n in range(8):
        lake.run({("EWR", 1): 3 + n})
        s3_proxy.plan(Planned(fault, CHANGES, skipped=n))
        lake.publish()
        s3_proxy.plan()
        check(lake)


def test_many_files_are_brought_at_once(s3_home: Location, tmp_path: Path) -> None:
    made = PublishedLake(tmp_path, f"{s3_home.text}/a lake")
    for n in range(12):
        made.run({("EWR", n): n})
    made.publish()
    check(made)
    assert len(open_delta(made.table).file_uris()) == 12
