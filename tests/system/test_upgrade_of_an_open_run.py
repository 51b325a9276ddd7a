"""A run that an earlier version has left open is finished with the rows that it had.

That version kept in the lake where Spark's stream stood. Nothing looks there any more.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.maintain import maintain
from tests.oracle import Event
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.open_lakes import FOLLOWED, PLACES, make_followed, restore_open, unpack
from tests.support.pipeline_under_test import ARRIVAL
from tests.support.rare_cases import quick_and_rare
from windowing.ledger.table import read_history

LAKES = Path(__file__).parents[1] / "data" / "open-lakes-form-2.tar.xz"


@pytest.mark.slow
@pytest.mark.parametrize("place", quick_and_rare(PLACES, ("batch.begun", "state.stored")))
def test_an_open_run_is_finished_with_the_rows_that_it_had(
    place: str, spark: SparkSession, tmp_path: Path
) -> None:
    life, left = restore_open(spark, LAKES, place, tmp_path)
    lab, before = life.lab, life.root / "_checkpoint"
    assert (before / "offsets/2").exists() and not (before / "commits/2").exists()
    end = read_history(lab.pipeline).offsets(2)
    assert (end is None) == (place == "batch.begun")
    more = lab.land(life.batch())
    lab.go()
    lab.truth.run([*left, *more], ARRIVAL)
    life.check()
    read = {e.batch: e.counts["read"] for e in read_history(lab.pipeline).done(3)}
    if end is None:
        # Nothing was written, so what has landed since belongs to it.
        assert read == {2: len(left) + len(more)}
    else:
        assert read == {2: len(left), 3: len(more)}
        assert read_history(lab.pipeline).offsets(2) == end
    maintain(spark, lab.pipeline)
    assert not before.exists()
    life.run()


@pytest.mark.parametrize("name", quick_and_rare(FOLLOWED, FOLLOWED[:1]))
def test_a_stream_goes_on_behind_rows_that_were_followed(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    lab = make_followed(spark, unpack(LAKES, name, tmp_path))
    lab.land([Event("b", BASE + 9 * 60 * MINUTE, 1, "new", 90)])
    report = lab.go()
    assert (report.accepted, report.batches) == (1, 1)
    lab.holds_what_the_source_does()
