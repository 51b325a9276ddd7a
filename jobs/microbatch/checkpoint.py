"""The checkpoint of a run's stream, which every run makes from the ledger and deletes at its end.

ledger: where its last batches ended -> files as Spark writes them, on this machine -> the stream
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager

from jobs.foreign_errors.control_errors import Refusal, refuse_table
from windowing.ledger.rule import LedgerExcerpt
from windowing.ledger.table import LEDGER
from windowing.source.rule import ends_with_rewrite
from windowing.spec.pipeline import Pipeline
from windowing.storage import stream_checkpoint
from windowing.storage.stream_checkpoint import Checkpoint, made_checkpoint, name_offsets
from windowing.storage.stream_offsets import is_inside_version, move_to_end


def checkpoint_behind(
    pipeline: Pipeline, past: LedgerExcerpt
) -> AbstractContextManager[Checkpoint]:
    """A checkpoint with which a stream goes on where the ledger ends.

    A batch that was begun is repeated with the rows that it had. Nobody else has the directory, and
    nothing needs it afterwards. Raises StateRefused where the ledger doesn't say where it ends.
    """
    return made_checkpoint(compose_files(pipeline, past))


def checkpoint_to_end_of(
    pipeline: Pipeline, past: LedgerExcerpt, version: int
) -> AbstractContextManager[Checkpoint]:
    """A checkpoint whose next batch reads the rest of all versions up to this one.

    Where a batch was begun, it is that one.
    """
    return made_checkpoint(compose_to_end_of(pipeline, past, version))


def ends_inside_version(past: LedgerExcerpt) -> bool:
    """Whether the last batch that was begun has read, or is to read, a part of a version."""
    last = past.last_batch if past.open_batch is None else past.open_batch
    offsets = past.offsets(last)
    return offsets is not None and is_inside_version(offsets)


def compose_files(pipeline: Pipeline, past: LedgerExcerpt) -> Mapping[str, str]:
    """Every file of the checkpoint whose last batch is that of the ledger: path -> text.

    There is none before the first batch.
    """
    last, begun = past.last_batch, past.open_batch
    newest = last if begun is None else begun
    if newest < 0:
        return {}
    ends = {newest: _find_end(pipeline, past, newest)}
    if newest > 0:
        # Spark has Delta look at a batch again that was committed last. Delta would refuse one that
        # has passed over commits that removed rows, but reads nothing of one that ends where it
        # begins.
        looks_away = begun is None and ends_with_rewrite(past)
        before = newest if looks_away else newest - 1
        ends[newest - 1] = _find_end(pipeline, past, before)
    committed = None
    if last >= 0:
        committed = last
    return stream_checkpoint.compose_files(ends, committed)


def compose_to_end_of(pipeline: Pipeline, past: LedgerExcerpt, version: int) -> Mapping[str, str]:
    """The same for a stream that reads the rest of all versions up to this one."""
    files = compose_files(pipeline, past)
    if past.open_batch is not None:
        return files
    end = move_to_end(_find_end(pipeline, past, past.last_batch), version)
    return {**files, name_offsets(past.last_batch + 1): end}


def _find_end(pipeline: Pipeline, past: LedgerExcerpt, batch: int) -> str:
    """Where the source stood at the end of a batch."""
    found = past.offsets(batch)
    if found is None:
        # Without it the stream would begin anew, and the rows it reads would be taken for those of
        # batches that are done.
        wrong = f"does not say where batch {batch} of the source ends"
        raise refuse_table(pipeline, str(pipeline.table(LEDGER)), Refusal(wrong, "restore it"))
    return found
