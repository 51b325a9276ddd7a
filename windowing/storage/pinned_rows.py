"""Rows that are computed once, and are the same for whoever reads them afterwards.

On a cluster they outlive the executor that has computed them.
"""

from pyspark.sql import DataFrame
from pyspark.storagelevel import StorageLevel

from windowing.storage.master import is_local

_TWICE = StorageLevel(
    useDisk=True, useMemory=True, useOffHeap=False, deserialized=False, replication=2
)
"""Each part lies on two executors, in memory or where that is full on the disk."""


def pin_rows(rows: DataFrame) -> DataFrame:
    """The rows as they are now, computed here and never again.

    What they are computed from may change afterwards. On a cluster each part is copied to a second
    executor before anybody reads it, so that the loss of one executor loses no row. Where Spark has
    a directory for checkpoints, parts are files there, which no loss of executors reaches. They are
    not computed again, because what they are computed from may be replaced by then, and sums of
    doubles and sketches would differ.
    """
    context = rows.sparkSession.sparkContext
    if is_local(context.master or ""):
        return rows.localCheckpoint(eager=True)
    if context.getCheckpointDir() is not None:
        return rows.checkpoint(eager=True)
    return rows.localCheckpoint(eager=True, storageLevel=_TWICE)
