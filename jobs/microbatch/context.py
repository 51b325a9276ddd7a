"""What a run is judged by and stamped with: its session, pipeline, stamp and arrival; and the end of a run, at which windows close."""

from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from windowing.grid.frame import instant
from windowing.panes import table as state
from windowing.panes.frame import Range
from windowing.spec.pipeline import Pipeline


@dataclass(frozen=True)
class Batch:
    """What one micro-batch is judged by and stamped with; the same on every replay."""

    spark: SparkSession
    pipeline: Pipeline
    stamp: state.Stamp
    arrival_us: int
    worn: bool = False
    """Whether panes of the past may be gone, so that what overlaps them comes from the source."""
    fed: bool = False
    """Whether the source was seen to change its past."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns."""
        return self.pipeline.source.key

    @property
    def changing(self) -> bool:
        """Whether the source may hold other rows than were read from it once."""
        return self.fed or self.pipeline.source.changes == "feed"


@dataclass(frozen=True)
class Closing:
    """The end of a run: W before and after it (None: minus infinity), and the range of event times it accepted (None: nothing)."""

    batch: Batch
    before_us: int | None
    after_us: int | None
    within: Range | None

    def since(self, end: Column) -> Column:
        """True for windows that had not ended by W before the run."""
        return F.lit(True) if self.before_us is None else end > instant(self.before_us)

    def closed(self, end: Column) -> Column:
        """True for windows whose end W has passed."""
        return F.lit(False) if self.after_us is None else end <= instant(self.after_us)
