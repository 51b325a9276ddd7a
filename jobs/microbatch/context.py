"""The end of a run, as what it touched and how far the watermark moved."""

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from jobs.admission import Batch
from windowing.grid.frame import instant
from windowing.panes.frame import Range


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
