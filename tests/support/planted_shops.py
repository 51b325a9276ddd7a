"""The history of three shops that `docs/lateness.md` shows, in a directory of its own.

`python -m tests.support.planted_shops DIRECTORY` writes a source table and `shops.yaml`.
"""

import json
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.support.planted_history import Planted, plant_spec, write_history
from windowing.grid.zone import micros, moment

START = micros(datetime(2026, 1, 1, tzinfo=UTC))
SECOND = 1_000_000
LONG, EVERY = 2 * 86_400 * SECOND, 1_200 * SECOND
MANY = 4_000


def draw_events(seed: int = 1) -> Iterator[tuple[int, int, str]]:
    """(arrival, event time, shop): a queue, an hour at most, and one to two hours for a few."""
    rng = random.Random(seed)
    lates = {
        "a": lambda: rng.expovariate(1 / 300),
        "b": lambda: rng.uniform(0, 3600),
        "c": lambda: 20 if rng.random() < 0.98 else rng.uniform(3600, 7200),
    }
    for shop, draw in lates.items():
        for _ in range(MANY):
            time = START + rng.randrange(LONG)
            arrival = time + int(draw() * SECOND)
            # It arrives with the next commit.
            yield (arrival // EVERY + 1) * EVERY, time, shop


def plant_shops(home: Path) -> None:
    """Writes table and spec."""
    batches: dict[int, list[dict[str, Any]]] = {}
    for n, (arrival, time, shop) in enumerate(draw_events()):
        if arrival <= START + LONG:
            row = {"id": str(n), "shop": shop, "at": moment(time)}
            batches.setdefault(arrival, []).append(row)
    write_history(home / "source", [Planted(at, batches[at]) for at in sorted(batches)])
    (home / "shops.yaml").write_text(json.dumps(plant_spec(home)))


if __name__ == "__main__":
    directory = Path(sys.argv[1]).absolute()
    directory.mkdir()
    plant_shops(directory)
