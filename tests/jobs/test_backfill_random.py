"""Backfills between runs: whatever range, state and outputs become what the oracle says, and later runs build on them."""

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.jobs.test_run_random import BASE, HOUR, MINUTE, WINDOWS, _event, _split
from tests.lab import Lab


@pytest.mark.parametrize("seed", [12, 13])
def test_a_backfill_of_any_range_gives_the_oracles_tables(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    rng = Random(seed)
    lab = Lab(spark, tmp_path, WINDOWS, rng.choice([0, 10 * MINUTE]), 0, ids=seed % 2 == 1)
    events = [_event(rng, n) for n in range(40)]
    batches = _split(events, rng)
    for n, batch in enumerate(batches):
        lab.run(batch + [rng.choice(events) for _ in range(2)])
        if n % 2 == 1 or n == len(batches) - 1:
            start = BASE + rng.randrange(150) * MINUTE
            lab.backfill(start, start + rng.choice([7 * MINUTE, HOUR, 3 * HOUR]))
            lab.check()
