"""All state and every window made anew from the events accepted so far, each as it was admitted.

    source at a version, without what was refused -> panes, fragments, buffered events (overwritten whole) -> windows -> outputs
"""

from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.admission import Batch, timed
from jobs.closing import Closing
from jobs.contribution import written
from jobs.history import known, partly_late, refused_digests
from jobs.rebuild import affordable as rebuild_affordable
from jobs.rebuild import rebuild
from jobs.repair import Chunk, Everything, replace
from windowing import delta
from windowing.admit.again import INSIDE, LIVE, with_history
from windowing.admit.digest import with_row_digest
from windowing.columns import MISSED, TOUCHED
from windowing.columns import T as TIME
from windowing.merge import frame as merges
from windowing.merge.rule import bounds, complete
from windowing.panes import frame as partials
from windowing.panes import table as state
from windowing.source import table as source
from windowing.spec.kinds import Session
from windowing.windows import session


def accepted(batch: Batch, version: int) -> DataFrame:
    """Every row of the source that counts.

    -> source rows + [t, why, digest, inside, live, missed, judged_by]; `why` is null unless the spec would refuse the row now.
    """
    rows = source.read(batch.spark, batch.pipeline, version)
    digested = with_row_digest(rows, source.earlier_types(batch.spark, batch.pipeline))
    history = with_history(timed(batch, digested), refused_digests(batch), partly_late(batch))
    return known(batch, history.where(LIVE)).withColumn(INSIDE, F.lit(True))


def refill(closing: Closing, events: DataFrame, version: int) -> dict[str, int]:
    """Overwrites the state of `closing`'s pipeline and corrects its outputs; `events` are all that count in the source at `version`.

    Returns the counts of the outputs.
    """
    return rebuild(closing, _everything(events, version), events, _sessions)


def affordable(batch: Batch, events: DataFrame, version: int, came: Collection[str]) -> None:
    """StateRefused, with nothing written, if `refill` would bring a window that `came` more windows without events than it may have."""
    rebuild_affordable(batch, _everything(events, version), events, came)


def _everything(events: DataFrame, version: int) -> Everything:
    """From the first event to the last; where there is none, any range does."""
    ends = events.agg(F.min(TIME), F.max(TIME)).first()
    return Everything(0, 1, version) if ends is None or ends[0] is None else Everything(ends[0], ends[1] + 1, version)


def _sessions(batch: Batch, window: Session, whole: Chunk, events: DataFrame) -> dict[str, int]:
    """Overwrites the fragments of `window` and corrects its complete table."""
    schema = source.read(batch.spark, batch.pipeline, whole.version).schema
    algebras = partials.algebras(batch.pipeline, window.aggregates, schema)
    target, kept = complete(batch.pipeline, window), partials.parts(algebras.values())
    members = events.where(~F.coalesce(F.array_contains(MISSED, window.name), F.lit(False)))
    fresh = partials.fragments(members, batch.keys, window.gap_us, kept).localCheckpoint(eager=True)
    replace(batch, state.fragments_table(window), batch.stamp.on(fresh), "first_event", whole)
    found = session.windows(fresh.withColumn(TOUCHED, F.lit(1).cast("bigint")), batch.keys, window.gap_us, kept)
    new = merges.values(found, [*batch.keys, *bounds(window)], window.aggregates, algebras)
    return written(batch, window, target, merges.replacements(new, delta.read(batch.spark, target.path), target))
