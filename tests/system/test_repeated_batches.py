"""A batch that is repeated after its run has failed writes what it would have written at once."""

from pathlib import Path

import pytest
from pyspark import SparkFiles
from pyspark.sql import SparkSession

from tests.oracle import Event, Session, Tumbling
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, ends_at
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab
from tests.support.rare_cases import quick_and_rare
from windowing.ledger.table import read_history


def events_of(key: str, *minutes: int) -> list[Event]:
    """Events of one key, so many minutes after the beginning."""
    return [Event(key, BASE + minute * MINUTE, 1, f"{key}{minute}", minute) for minute in minutes]


BEGUN = ("batch.intended", "state.stored", "batch.processed")
"""Places at which a batch is begun and not done."""


@pytest.mark.slow
@pytest.mark.parametrize("place", quick_and_rare(BEGUN, BEGUN[1:]))
def test_a_batch_that_was_begun_has_the_rows_it_had(
    place: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Nothing but the ledger says where it ends, however much the source has gained."""
    lab = Lab(spark, tmp_path, (Tumbling("hourly", 60 * MINUTE),), shows=FEW)
    lab.run(events_of("b", 5))
    landed = lab.land(events_of("a", 10, 70))
    ends_at(Crasher(place), lab.go)
    ends = read_history(lab.pipeline).offsets(1)
    more = lab.land(events_of("a", 20))
    lab.go()
    lab.truth.run([*landed, *more], ARRIVAL)
    lab.check()
    past = read_history(lab.pipeline)
    assert {entry.batch: entry.counts["read"] for entry in past.done(2)} == {1: 2, 2: 1}
    assert past.offsets(1) == ends


def test_a_run_leaves_nothing_beside_the_tables(spark: SparkSession, tmp_path: Path) -> None:
    """Its checkpoint is gone with it, also where it failed."""
    lab = Lab(spark, tmp_path, (Tumbling("hourly", 60 * MINUTE),), shows=FEW)
    landed = lab.land(events_of("a", 5))
    ends_at(Crasher("batch.judged"), lab.go)
    lab.run_over(landed)
    assert not [*Path(SparkFiles.getRootDirectory()).glob("checkpoint-*")]
    assert not lab.pipeline.table("_checkpoint").local.exists()


@pytest.mark.deep
def test_a_session_of_the_first_attempt_makes_no_event_late(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The chain of a is open, but the first two of its sessions are final once they are stored."""
    capped = Session("short", 10 * MINUTE, max_duration=20 * MINUTE)
    lab = Lab(spark, tmp_path, (capped,), lateness=0, shows=FEW)
    lab.run(events_of("b", 720))
    chain = lab.land(events_of("a", 660, 670, 680, 690, 700, 710, 715))
    ends_at(Crasher("batch.processed"), lab.go)
    report = lab.run_over(chain)
    assert (report.accepted, report.late) == (7, 0)
    lab.check()
    assert len(lab.table("short")) == 4


@pytest.mark.deep
def test_a_table_that_was_half_made_is_made_by_the_next_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A process that is killed while it creates a table leaves a log without a commit."""
    lab = Lab(spark, tmp_path, (Tumbling("hourly", 60 * MINUTE, emit="on_close"),), shows=FEW)
    landed = lab.land(events_of("a", 5, 65, 125))
    ends_at(Crasher("batch.judged"), lab.go)
    for name in ("_panes_1h", "_seen"):
        (lab.pipeline.table(name).local / "_delta_log").mkdir(parents=True)
    lab.run_over(landed)
    lab.check()
    assert len(lab.table("hourly")) == 2
    lab.run(events_of("a", 6, 65, 190))
    lab.check()
