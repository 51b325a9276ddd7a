"""Records the copies that a chunk does not accept, so that each of its rows has one outcome.

A run has recorded the copies that it refused. A row that the source has changed since, or that an
erasure kept out, was refused by no run.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from jobs.microbatch.context import RunContext
from jobs.recompute.refused import refused_digests
from windowing.admit.again import INSIDE
from windowing.admit.frame import refuse_copies
from windowing.admit.table import refused_rows
from windowing.columns import DIGEST, TIME, WHY
from windowing.storage import delta, own_tables
from windowing.storage.pinned_rows import pin_rows

_NTH, _ACCEPTED, _REFUSED = "__nth", "__accepted", "__refused"


def record_copies(batch: RunContext, rows: DataFrame, events: DataFrame) -> None:
    """Stores the rows of the chunk as duplicates that are neither accepted nor refused.

    `rows` are the valid source rows near the chunk, and `events` are those of them that are
    accepted. What the chunk accepts is no longer refused. When it is done again nothing is added.
    """
    pipeline = batch.pipeline
    if pipeline.source.event_id is None or not batch.rows_may_lack_outcomes:
        return
    inside = rows.where(INSIDE)
    copies = _select_without_outcome(inside, events.where(INSIDE), refused_digests(batch))
    columns = [name for name in rows.columns if name not in (DIGEST, TIME, WHY, INSIDE)]
    refused = refused_rows(refuse_copies(copies, pipeline), columns, batch.stamp)
    # Only late rows tell what they missed.
    stored = pin_rows(refused.drop("missed"))
    if stored.isEmpty():
        return
    path = pipeline.table("_duplicates")
    own_tables.create(batch.spark, path, stored.schema, delta.properties(stored.schema))
    delta.append(stored, path, widen=True)


def _select_without_outcome(rows: DataFrame, accepted: DataFrame, refused: DataFrame) -> DataFrame:
    """Of equal rows as many as were neither accepted nor refused.

    rows[..., __digest] x accepted[__digest] x refused[__digest] -> the columns of rows
    """
    nth_of_equal = F.row_number().over(Window.partitionBy(DIGEST).orderBy(TIME))
    counted = rows.withColumn(_NTH, nth_of_equal)
    for name, outcomes in ((_ACCEPTED, accepted), (_REFUSED, refused)):
        counts = outcomes.groupBy(DIGEST).agg(F.count("*").alias(name))
        counted = counted.join(counts, DIGEST, "left")
    with_outcome = F.coalesce(_ACCEPTED, F.lit(0)) + F.coalesce(_REFUSED, F.lit(0))
    return counted.where(F.col(_NTH) > with_outcome).select(*rows.columns)
