"""How far a run of several batches has come."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class RunProgress:
    """How far a run of several batches has come: so many batches, which have read `rows`.

    The run reads `all_rows`, None where the log of the source does not tell. `share` is that of all
    bytes to read, from 0 to 1, and `windows` is how many rows of outputs have changed so far.
    """

    batches: int
    rows: int
    all_rows: int | None
    share: float
    windows: int


Watch = Callable[[RunProgress], None]
"""Called when a run of several batches begins or goes on, and after each of its batches."""
