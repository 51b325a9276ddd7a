"""Deletes the event ids of erased rows, so that an id is free again for another row."""

from pyspark.sql import functions as F

from jobs.microbatch.context import RunContext
from jobs.recompute.accepted import read_digested
from windowing.admit.erased import only_erased, without_erased
from windowing.columns import DIGEST
from windowing.ledger.erased import Erasures
from windowing.panes.rule import SEEN
from windowing.rows import column_named
from windowing.storage import merges, own_tables
from windowing.storage.kept_open import has_commit
from windowing.storage.pinned_rows import pin_rows


def delete_ids(batch: RunContext, due: Erasures, version: int | None) -> int:
    """Deletes the ids accepted with the events that are `due`; returns how many.

    The source at `version`, or its newest one, shows whose they are, as far as it still has these
    events. An id is stored with the digest of its row. Where that is the row of another key or
    value, the id was accepted with that one and stays, and the erased event was a duplicate.
    """
    event_id, path = batch.pipeline.source.event_id, batch.pipeline.table(SEEN)
    if event_id is None or not has_commit(path):
        return 0
    digested = read_digested(batch, version)
    row_id = column_named(event_id).cast("string").alias("event_id")
    row_digest = F.col(DIGEST).alias("digest")
    ids = only_erased(digested, batch.keys, due).select(row_id).distinct()
    of_others = without_erased(digested, batch.keys, due).select(row_id, row_digest)
    seen = own_tables.read(batch.spark, path).join(ids, "event_id", "left_semi")
    accepted = seen.join(of_others, ["event_id", "digest"], "left_anti")
    accepted = pin_rows(accepted.select("event_id", "digest"))
    n = accepted.count()
    same = "t.event_id = s.event_id and t.digest <=> s.digest"
    merges.delete_rows(accepted.distinct(), path, same, n)
    return n
