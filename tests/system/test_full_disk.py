"""A disk that is full from some place on fails the run and nothing else.

The next run finishes it.
"""

import os
import resource

import pytest
from pyspark.sql import SparkSession

from jobs.cli.errors import explain_error
from tests.support.killed_process import jvm_of
from tests.support.long_lived_pipeline import MINUTE, WINDOWS, Life
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab
from windowing.crash import armed

_FULL = {
    "jvm": r"(?i)file too large|Py4J|STREAM_FAILED|WRITE",
    "python": r"File too large: '.*/lake/lab/_",
}


@pytest.fixture(scope="module")
def life(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """A pipeline after one run."""
    new = Life(
        Lab(
            spark,
            tmp_path_factory.mktemp("disk"),
            WINDOWS[:2],
            lateness=240 * MINUTE,
            delay=10 * MINUTE,
            shows=FEW,
        )
    )
    new.run()
    return new


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "who"),
    [
        pytest.param("batch.intended", "jvm", marks=pytest.mark.deep),
        ("state.stored", "jvm"),
        ("batch.judged", "python"),
        pytest.param("state.stored", "python", marks=pytest.mark.deep),
    ],
)
def test_a_disk_that_is_full_from_some_place_on_fails_the_run_and_nothing_else(
    place: str, who: str, life: Life
) -> None:
    """Both processes write: the JVM its stream, and this one few rows."""
    process = jvm_of(life.lab.spark) if who == "jvm" else os.getpid()
    events = life.lab.land(life.batch())
    filled = []

    def fill(name: str) -> None:
        if name == place and not filled:
            filled.append(resource.prlimit(process, resource.RLIMIT_FSIZE))
            resource.prlimit(process, resource.RLIMIT_FSIZE, (64, filled[0][1]))

    try:
        with armed(fill), pytest.raises(Exception, match=_FULL[who]) as raised:
            life.lab.go()
    finally:
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(process, resource.RLIMIT_FSIZE, unlimited)
    assert filled
    sentence = "File too large; raise the limit of file sizes, then run again, which finishes"
    assert sentence in explain_error(raised.value).message
    life.lab.go()
    life.lab.truth.run(events, ARRIVAL)
    life.check()
