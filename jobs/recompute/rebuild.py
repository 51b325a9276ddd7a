"""Rebuilds the state and the windows of one chunk of a backfill.

The state of the range is swapped, and the windows that overlap it are recomputed. Every write
replaces a range or is a MERGE of what differs. So each is idempotent, and a chunk that was killed
is simply done again.
"""

from pyspark.sql import DataFrame

from jobs.microbatch.context import Closing
from jobs.microbatch.outputs import rederive_output
from jobs.recompute.rebuild_events import rebuild_events
from jobs.recompute.rebuild_panes import rebuild_panes
from jobs.recompute.rebuild_sessions import rebuild_all_sessions, rebuild_sessions
from jobs.recompute.time_range import TimeRange
from windowing.ledger.counts import add_counts
from windowing.merge.rule import in_output
from windowing.panes.rule import pane_families


def rebuild_range(closing: Closing, chunk: TimeRange, events: DataFrame) -> dict[str, int]:
    """Swaps the state of the chunk and corrects every output.

    `events` are the accepted events. Returns the counts of the outputs.
    """
    batch = closing.batch
    counts: dict[str, int] = {}
    for family in pane_families(batch.pipeline):
        counts |= rebuild_panes(closing, family, chunk, events)
    sessions = rebuild_all_sessions if chunk.is_everything else rebuild_sessions
    for session_window in batch.pipeline.sessions:
        counts |= sessions(batch, session_window, chunk, events)
    if batch.pipeline.ordered:
        counts |= rebuild_events(batch, chunk, events)
    for window in batch.pipeline.windows:
        if not in_output(window):
            counts = add_counts([counts, rederive_output(closing, window)])
    return counts
