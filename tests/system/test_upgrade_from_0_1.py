"""Tables of every release and stored form so far.

This one goes on with them as if it had made them.
"""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.diagnosis.diagnose import examine_tables
from jobs.read import read
from tests.support.long_lived_pipeline import BASE, MINUTE
from tests.support.release_lake import restored
from windowing.ledger.table import compact_ledger, read_excerpt, read_history

DATA = Path(__file__).parents[1] / "data"
LAKES = sorted(DATA.glob("lake-*.tar.xz"))


def _list_lakes() -> list[Any]:
    """The newest lake is for the quick suite, too."""
    newest = "lake-form-2.tar.xz"
    return [
        pytest.param(file, id=file.name, marks=() if file.name == newest else pytest.mark.deep)
        for file in LAKES
    ]


@pytest.mark.slow
@pytest.mark.parametrize("file", _list_lakes())
def test_the_lake_of_a_release_goes_on(file: Path, spark: SparkSession, tmp_path: Path) -> None:
    life = restored(spark, file, tmp_path)
    lab = life.lab
    whole, excerpt = read_history(lab.pipeline), read_excerpt(lab.pipeline)
    assert examine_tables(spark, lab.pipeline, excerpt) == ()
    compact_ledger(lab.pipeline, excerpt, most_files=1)
    assert read_history(lab.pipeline) == whole
    for name in ("next_seq", "watermark", "last_arrival", "quiet_since", "versions", "made_by"):
        assert getattr(excerpt, name) == getattr(whole, name)
    lab.check()
    assert {w.name: read(spark, lab.pipeline, w.name).count() for w in lab.windows} == {
        w.name: len(lab.table(w.name)) for w in lab.windows
    }
    life.run()
    lab.backfill(BASE + 60 * MINUTE, BASE + 180 * MINUTE)
    life.check()


def test_there_is_a_lake() -> None:
    assert LAKES
