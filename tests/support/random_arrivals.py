"""Random arrivals, each published for real, and by plain loops what each has changed.

    python -m tests.support.random_arrivals DIRECTORY SEED ARRIVALS

It prints a line of JSON for each arrival: what `publish --json` says then, whether a DAG run sees
it, and on which days windows were changed by publications since the last one that a DAG run saw. No
JVM is started.
"""

import json
import random
import sys
from datetime import date, timedelta
from pathlib import Path

from jobs.publish import roll_back
from tests.support.published_lake import PublishedLake, Window

_EPOCH = date(1970, 1, 1)
_ROWS = dict[Window, tuple[int, int, int]]


def main(home: Path, seed: int, arrivals: int) -> None:
    """Prints the arrivals."""
    drawn, lake = random.Random(seed), PublishedLake(home)
    shown: _ROWS = {}
    before: _ROWS = {}
    days: set[str] = set()
    for arrival in range(arrivals):
        lake.run(_draw_arrival(drawn, lake, arrival))
        published = lake.publish()
        days |= _tell_days(shown, lake.rows)
        before, shown = shown, dict(lake.rows)
        if before and before != shown and drawn.random() < 0.1:
            published = roll_back(lake.pipeline, None, "drawn").publication
            days |= _tell_days(shown, before)
            before, shown = shown, before
        # A publication by hand is one that no DAG run has seen yet.
        is_seen = drawn.random() < 0.8
        told = {"published": published.as_json(), "seen": is_seen, "days": sorted(days)}
        print(json.dumps(told))
        if is_seen:
            days = set()


def _draw_arrival(
    drawn: random.Random, lake: PublishedLake, arrival: int
) -> dict[Window, int | None]:
    """Counts of a few windows: most of them of the present day, some late, some gone."""
    counts: dict[Window, int | None] = {}
    for _ in range(drawn.choice((1, 2, 3, 8))):
        is_late = drawn.random() < 0.3
        day = drawn.randrange(arrival + 1) if is_late else arrival
        window = drawn.choice(("EWR", "JFK")), day * 24 + drawn.randrange(24)
        is_gone = window in lake.rows and drawn.random() < 0.2
        counts[window] = None if is_gone else drawn.randrange(100)
    return counts


def _tell_days(before: _ROWS, after: _ROWS) -> set[str]:
    """The days on which windows begin that differ."""
    windows = before.keys() | after.keys()
    differ = [window for window in windows if before.get(window) != after.get(window)]
    return {str(_EPOCH + timedelta(days=hour // 24)) for _, hour in differ}


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
