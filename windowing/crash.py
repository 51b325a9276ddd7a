"""Named places between two effects, where a test may end a run. Nothing happens there unless a test has armed one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

POINTS = {
    "run.locked": "the lock is held, nothing has been looked at",
    "run.prepared": "ledger and outputs exist",
    "batch.begun": "the stream has written its offsets, the ledger knows nothing of the batch",
    "batch.intended": "the ledger holds the intent",
    "batch.judged": "rows have their outcomes, nothing is written",
    "batch.refused": "refused rows are kept",
    "batch.remembered": "accepted ids are kept",
    "state.stored": "one table of state holds the batch",
    "output.corrected": "one output, or table of all windows, is corrected, by a batch, the end of a run or a backfill",
    "batch.processed": "every output is corrected, the batch is not done",
    "batch.done": "the batch is done, the stream has not committed it",
    "run.drained": "the stream has ended",
    "run.emitted": "outputs that wait for the watermark are corrected",
    "run.marked": "_watermarks holds the run, which is not closed",
    "run.closed": "the run is closed",
    "backfill.staged": "the rows of a chunk are read, nothing is written",
    "backfill.intended": "the ledger holds the intent of a chunk",
    "state.swapped": "one table of state, or of refused rows, has the rows of the chunk",
    "backfill.rebuilt": "every output is corrected",
    "backfill.remembered": "the ids of the chunk are swapped",
    "backfill.resolved": "refused rows that count now say so",
    "backfill.done": "the chunk is done",
    "check.cloned": "a copy of every table lies inside the pipeline's directory",
    "evolve.intended": "the ledger holds the intent of a change of the spec",
    "evolve.widened": "outputs have the columns of the new spec",
    "evolve.filled": "state and outputs are those of the new spec",
    "evolve.done": "the change is done",
    "erase.intended": "the ledger holds the intent of an erasure",
    "erase.deleted": "one table has no row of the key in its newest version",
    "erase.vacuumed": "one table has no file of an older version",
    "erase.done": "the erasure is done",
    "maintain.intended": "the ledger holds the intent of a maintenance",
    "maintain.compacted": "one table of partials has fewer rows",
    "maintain.expired": "one table has lost what retention no longer keeps",
    "maintain.optimized": "the files of one table are compacted",
    "maintain.vacuumed": "one table has lost files that no kept version needs",
    "maintain.done": "the maintenance is done",
    "recover.drafted": "the new checkpoint lies beside the old one",
    "recover.moved": "the old checkpoint is out of the way",
    "reset.taken": "everything of the pipeline is out of sight, and not deleted yet",
    "validate.evaluated": "every expectation has its outcome, none is recorded",
    "validate.recorded": "_quality holds the outcomes",
    "publish.noted": "the ledger names the versions, the pointer is the old one",
    "publish.drafted": "the new pointer lies beside the old one",
    "publish.pointed": "readers see the new versions",
}
"""Every place: what has just happened there."""

Hook = Callable[[str], None]
_HOOKS: ContextVar[tuple[Hook, ...]] = ContextVar("hooks", default=())


def crashpoint(name: str) -> None:
    """Tells an armed test that the process has come to `name`; without one, nothing."""
    for hook in _HOOKS.get():
        hook(name)


@contextmanager
def armed(hook: Hook) -> Iterator[None]:
    """Calls `hook` with the name of every place that is reached inside the block; what it raises, or does, happens there.

    Threads that the block's own steps start belong to it; others go their way unarmed.
    """
    before = _HOOKS.set((*_HOOKS.get(), hook))
    try:
        yield
    finally:
        _HOOKS.reset(before)
