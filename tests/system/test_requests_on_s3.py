"""What commands ask of an S3 server, at most: so many requests of each kind.

The bounds are a little above what the commands needed when they were set. Who makes one cheaper
lowers its bound. `python -m tests.support.counted_requests` prints what they need.
"""

from collections import Counter
from pathlib import Path

import pytest

from tests.support.counted_requests import KINDS, Counted, Shop, make_shop, play
from tests.support.faulty_proxy import FaultyProxy
from tests.support.s3_server import S3Server
from windowing.location import Location
from windowing.storage import control

BOUNDS = {
    "first run of 2,000 rows": {"GET": 15, "HEAD": 10, "LIST": 26, "PUT": 38, "DELETE": 1},
    "nothing new": {"GET": 5, "LIST": 2},
    "validate": {"GET": 28, "HEAD": 19, "LIST": 15, "PUT": 14},
    "publish": {"GET": 19, "LIST": 3, "PUT": 10, "COPY": 2},
    "nothing new, published": {"GET": 7, "LIST": 2},
    "1,000 rows, 200 of them late": {"GET": 50, "HEAD": 21, "LIST": 21, "PUT": 30},
    "one row": {"GET": 50, "HEAD": 20, "LIST": 18, "PUT": 27},
    "show": {"GET": 36, "HEAD": 16, "LIST": 9},
}
"""The most requests of each command by kind; none of the kinds that are left out."""
LEASE, MOST_OF_LEASE = "lake/shop/_lock", 4
"""So many requests for the lease count: a busy machine takes longer, and renews it more often."""


@pytest.mark.usefixtures("jvm")
def test_no_command_asks_more_than_its_bound(
    s3_server: S3Server, s3_home: Location, s3_proxy: FaultyProxy, tmp_path: Path
) -> None:
    shop = make_shop(s3_server, s3_proxy, tmp_path)
    counted = {each.name: each for each in play(shop)}
    assert counted.keys() == BOUNDS.keys()
    assert any(each.kind == "PUT" for each in counted["one row"].asked), "the proxy counts"
    over = [text for name, each in counted.items() for text in find_excess(each, BOUNDS[name])]
    assert not over, "\n".join(over)
    assert count_events(shop, "hourly") == count_events(shop, "busy") == 3_001


def find_excess(counted: Counted, bounds: dict[str, int]) -> list[str]:
    """What a command asked for too often, and by which requests."""
    found = []
    for kind in KINDS:
        keys = Counter(each.key for each in counted.asked if each.kind == kind)
        keys[LEASE] = min(keys[LEASE], MOST_OF_LEASE)
        if keys.total() > bounds.get(kind, 0):
            found.append(f"{counted.name}: {keys.total()} {kind}, {bounds.get(kind, 0)} allowed")
            found += [f"    {times} {key}" for key, times in keys.most_common()]
    return found


def count_events(shop: Shop, window: str) -> int:
    """How many events the windows of an output count."""
    table = Location(shop.source.replace("bronze/orders", f"lake/shop/{window}"))
    return sum(row["n"] for row in control.read_rows(table))
