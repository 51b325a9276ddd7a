"""What a batch and the end of a run are computed with: session, pipeline, stamp and watermark."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from windowing.closed.rule import restated_name
from windowing.grid.frame import instant
from windowing.grid.range import Range
from windowing.grid.zone import micros
from windowing.ledger.erased import Erasures
from windowing.ledger.rule import LedgerExcerpt
from windowing.merge import table as outputs
from windowing.merge.rule import complete_table, output_table
from windowing.panes import table as state
from windowing.panes.rule import NO_BATCH
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline
from windowing.storage import own_tables


@dataclass(frozen=True)
class RunContext:
    """What one micro-batch is admitted by and stamped with; the same on every retry."""

    spark: SparkSession
    pipeline: Pipeline
    stamp: state.Stamp
    arrival_us: int
    state_may_be_expired: bool = False
    """Whether panes may have expired, so that windows that overlap them are rebuilt from source."""
    source_was_rewritten: bool = False
    """Whether the source was seen to change its past."""
    versions_before: Mapping[str, int] | None = None
    """By table, the versions before a batch or a chunk that is repeated; None for any other.

    It may have written to its tables already, and is judged by what was there before.
    """

    erased: Erasures = Erasures()
    """The keys and values whose rows are kept out of what is read from the source."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns."""
        return self.pipeline.source.key

    def read_clock(self) -> int:
        """When a step ends: the host clock in microseconds, but not before the step's arrival."""
        return max(self.arrival_us, micros(datetime.now(UTC)))

    def find_rows(self, table: str) -> DataFrame | None:
        """The newest version of a table of the pipeline; None where there is no such table yet."""
        return own_tables.find(self.spark, self.pipeline.table(table))

    def read_output(self, window: Window) -> DataFrame:
        """The rows of an output, which is there; of a closed one, as if it were not closed."""
        return outputs.read_output(
            self.spark, outputs.open_output(output_table(self.pipeline, window))
        )

    def read_complete(self, window: Window) -> DataFrame:
        """The rows of the table that has every window; it is there.

        Of a closed output they are those that it would have if it were not closed.
        """
        complete = complete_table(self.pipeline, window)
        return outputs.read_output(self.spark, outputs.open_output(complete))

    def read_complete_before(self, window: Window) -> DataFrame:
        """`read_complete` as it was before what is repeated; as it is now where nothing is.

        An interrupted attempt may have written the output, and not yet the restated rows of it. And
        its own sessions would make the events late that they were made of.
        """
        before = self.versions_before
        if before is None:
            return self.read_complete(window)
        complete = complete_table(self.pipeline, window)
        # A table that the ledger does not know yet was created by this run, and empty.
        version = before.get(complete.path.name, 0)
        restated = before.get(restated_name(complete.path.name))
        return outputs.read_version(self.spark, complete, version, restated)

    @property
    def source_may_change(self) -> bool:
        """Whether the source may contain other rows than were once read from it."""
        return self.source_was_rewritten or self.pipeline.source.changes == "feed"

    @property
    def rows_may_lack_outcomes(self) -> bool:
        """Whether the source may contain rows that were neither accepted nor refused.

        The source may have changed them, or an erasure kept them out that was lifted.
        """
        return self.source_may_change or self.erased.any_lifted


def context_after(spark: SparkSession, pipeline: Pipeline, past: LedgerExcerpt) -> RunContext:
    """The context of what works on state and outputs after the newest step, and reads no batch."""
    stamp = state.Stamp(past.last_run, NO_BATCH, None)
    return RunContext(spark, pipeline, stamp, past.last_arrival or 0)


@dataclass(frozen=True)
class Closing:
    """The end of a run, at which the watermark moves and windows close.

    `before_us` and `after_us` are W before and after the run; None is minus infinity. `within` is
    the range of event times that the run accepted; None where it accepted nothing.
    """

    batch: RunContext
    before_us: int | None
    after_us: int | None
    within: Range | None

    def since(self, end: Column) -> Column:
        """True for windows that had not ended by W before the run."""
        if self.before_us is None:
            return F.lit(True)
        return end > instant(self.before_us)

    def closed(self, end: Column) -> Column:
        """True for windows that are closed by W after the run."""
        if self.after_us is None:
            return F.lit(False)
        return end <= instant(self.after_us)
