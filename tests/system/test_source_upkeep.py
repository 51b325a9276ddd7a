"""A source whose files are compacted and vacuumed in the middle of a run, or of one that crashed.

With VACUUM's own retention nothing is lost. Where it keeps no file that the newest version does not
need, the run ends with the same tables, or is refused; it never lacks a row and says nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.reset import reset
from tests.oracle import Count, Event, Oracle, Session, Sliding
from tests.support.long_lived_pipeline import BASE, MINUTE, Crasher, ends_at
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab
from windowing.crash import armed
from windowing.errors import StateRefused
from windowing.location import Location
from windowing.storage import delta_log, upkeep

WINDOWS = (
    Sliding("rolling", 60 * MINUTE, 20 * MINUTE),
    Session("visits", 10 * MINUTE),
    Count("pairs", 2),
)
PLACES = (
    *("run.locked", "run.prepared", "batch.begun", "batch.intended", "batch.judged"),
    *("batch.refused", "batch.remembered", "state.stored", "output.corrected"),
    *("batch.processed", "batch.done", "run.drained", "run.emitted", "run.marked", "run.closed"),
)
"""Every place that such a run comes by."""
CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


@dataclass
class Tended:
    """A pipeline and its source, which somebody compacts and vacuums."""

    lab: Lab
    retain: str
    """How VACUUM is told to keep files; empty for its own retention of a week."""

    def land(self, n: int) -> list[Event]:
        """Two commits, each a file of its own, so that there is something to compact.

        One row of each is refused.
        """
        new = []
        for half in range(2):
            at = BASE + (n * 30 + half) * MINUTE
            events = [Event(key, at, n, f"{key}{n}{half}", half) for key in "ab"]
            new += self.lab.land_by_spark([*events, Event("a", None, 1, f"bad{n}{half}")])
        return new

    def compact(self) -> None:
        """OPTIMIZE and VACUUM."""
        table = self.lab.root / "source"
        spark, path = self.lab.spark, Location(str(table))
        before = delta_log.version(spark, path)
        files = len(list(table.glob("*.parquet")))
        upkeep.compact_files(spark, path)
        assert delta_log.version(spark, path) == before + 1
        spark.conf.set(CHECK, "false")
        spark.sql(f"vacuum delta.`{table}` {self.retain}")
        spark.conf.unset(CHECK)
        is_cut = len(list(table.glob("*.parquet"))) < files
        assert is_cut == bool(self.retain)

    def start_over(self) -> None:
        """What the refusal advises."""
        lab, truth = self.lab, self.lab.truth
        reset(lab.pipeline)
        delta_log.forget_all(lab.spark)
        lab.truth = Oracle(
            truth.delay, truth.lateness, truth.max_future, truth.horizon, lab.windows, None
        )

    def finish(self, new: list[Event], first: Callable[[], object]) -> bool:
        """Whether the `first` command or the run after it was refused, and all was read anew."""
        try:
            first()
            self.lab.go()
        except StateRefused as refused:
            assert refused.code == "SOURCE_VACUUMED", refused
            assert "`tidemark reset lab`" in str(refused)
            with pytest.raises(StateRefused, match="SOURCE_VACUUMED"):
                self.lab.go()
            self.start_over()
            self.lab.go()
            self.lab.truth.run(self.lab.landed, ARRIVAL)
            return True
        self.lab.truth.run(new, ARRIVAL)
        return False


def compact_at(place: str, tended: Tended) -> Callable[[str], None]:
    """Compacts and vacuums the source when a run comes to `place` for the first time."""
    seen = []

    def compact(name: str) -> None:
        if name == place and not seen:
            seen.append(name)
            tended.compact()

    return compact


@pytest.mark.long
@pytest.mark.parametrize("retain", ["", "retain 0 hours"], ids=["a week", "nothing"])
@pytest.mark.parametrize("crashed", [False, True], ids=["meanwhile", "after a crash"])
def test_a_source_that_is_compacted_while_it_is_read_loses_nothing(
    retain: str, *, crashed: bool, spark: SparkSession, tmp_path: Path
) -> None:
    own = spark.newSession()
    lab = Lab(own, tmp_path, WINDOWS, lateness=60 * MINUTE, delay=10 * MINUTE, shows=FEW)
    tended, refused = Tended(lab, retain), []
    for n, place in enumerate(PLACES):
        new = tended.land(n)
        if crashed:
            ends_at(Crasher(place), lab.go)
            was_refused = tended.finish(new, tended.compact)
        else:
            with armed(compact_at(place, tended)):
                was_refused = tended.finish(new, lab.go)
        if was_refused:
            refused.append(place)
        lab.check()
    print(f"refused at {refused}")
    assert not refused or retain
