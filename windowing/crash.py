"""Named places between two effects, where a test may end a run.

Nothing happens there unless a test has armed one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

POINTS = {
    "run.locked": "the lock is held, nothing has been checked",
    "run.prepared": "ledger and outputs exist",
    "batch.begun": "the end of the batch is chosen, the ledger has no entry of it",
    "rewrites.found": "what commits that removed rows of the source have touched is known",
    "batch.intended": "the ledger has the intent",
    "batch.judged": "rows have their outcomes, nothing is written",
    "batch.refused": "refused rows are stored",
    "batch.remembered": "accepted ids are stored",
    "state.stored": "one state table has the batch",
    "output.corrected": "one output, or table of complete windows, is corrected",
    "batch.processed": "every output is corrected, the batch is not done",
    "batch.done": "the batch is done, and the stream not told so",
    "run.drained": "the stream has ended",
    "run.emitted": "outputs that wait for the watermark are corrected",
    "run.marked": "_watermarks has the run, which is not closed",
    "run.closed": "the run is closed",
    "ledger.compacted": "the files of one table, ledger or watermarks, are rewritten as few",
    "backfill.staged": "the rows of a chunk are read, nothing is written",
    "backfill.intended": "the ledger has the intent of a chunk",
    "state.swapped": "one table of state, or of refused rows, has the rows of the chunk",
    "backfill.rebuilt": "every output is corrected",
    "backfill.remembered": "the ids of the chunk are swapped",
    "backfill.resolved": "refused rows that are accepted now name the backfill",
    "backfill.done": "the chunk is done",
    "check.cloned": "a copy of every table lies inside the pipeline's directory",
    "evolve.intended": "the ledger has the intent of a change of the spec",
    "evolve.widened": "outputs have the columns of the new spec",
    "evolve.filled": "state and outputs are those of the new spec",
    "evolve.done": "the change is done",
    "erase.intended": "the ledger has the intent of an erasure",
    "erase.deleted": "one table has no row of the key in its newest version",
    "erase.vacuumed": "one table has no file of an older version",
    "erase.done": "the erasure is done",
    "erase.listed": "the ledger has a change of which keys stay out",
    "period.intended": "the ledger has the intent of a close or a reopening",
    "period.frozen": "no row of one output that ends within the period can change any more",
    "period.restated": "what frozen rows of one output need is stated beside it",
    "period.released": "one output has its restated rows, which are still stated beside it",
    "period.opened": "rows of one output can change again",
    "period.done": "the ledger says that the period is closed, or reopened",
    "maintain.intended": "the ledger has the intent of a maintenance",
    "maintain.compacted": "one table of partials has fewer rows",
    "maintain.expired": "expired rows of one table are deleted",
    "maintain.optimized": "the files of one table are compacted",
    "maintain.shared": "published tables have the compacted files of their outputs",
    "maintain.vacuumed": "one table has no file left that no kept version needs",
    "maintain.done": "the maintenance is done",
    "ingest.counted": "the records of a batch of files are split and counted",
    "ingest.read": "the files are still as they were listed, nothing is written",
    "ingest.recorded": "the record of files has those of a batch, whose rows are in no table",
    "ingest.quarantined": "the broken records of the batch are stored, its rows are not",
    "ingest.appended": "the source has the rows of the batch",
    "ingest.fenced": "the rows of an interrupted batch can't be committed any more",
    "ingest.withdrawn": "the broken records of that batch are deleted",
    "ingest.voided": "the record of files says that the batch is void",
    "reset.taken": "the directories of the pipeline are renamed, and not deleted yet",
    "validate.evaluated": "every expectation has its outcome, none is recorded",
    "validate.recorded": "_quality has the outcomes",
    "publish.noted": "the ledger names the versions, the pointer is the old one",
    "publish.shared": "one published table has its new files, which no commit names",
    "publish.shown": "one published table shows the publication",
    "file.drafted": "a file lies beside the one that it is going to replace",
    "publish.pointed": "readers see the new versions",
}
"""Every place: what has just happened there."""

Hook = Callable[[str], None]
_HOOKS: ContextVar[tuple[Hook, ...]] = ContextVar("hooks", default=())


def crashpoint(name: str) -> None:
    """Reports to armed tests that the process has reached `name`; without one, does nothing."""
    for hook in _HOOKS.get():
        hook(name)


@contextmanager
def armed(hook: Hook) -> Iterator[None]:
    """Calls `hook` with the name of every place that is reached inside the block.

    What the hook does or raises happens at that place. Threads that the block's own steps start are
    armed, too; others are not.
    """
    before = _HOOKS.set((*_HOOKS.get(), hook))
    try:
        yield
    finally:
        _HOOKS.reset(before)
