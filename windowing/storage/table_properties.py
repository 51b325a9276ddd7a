"""The properties of a Delta table, and how Delta reads them. No Spark."""

CHANGE_FEED = "delta.enableChangeDataFeed"
CHECKPOINT_INTERVAL = "delta.checkpointInterval"
"""After how many commits a checkpoint of the log is written."""
COLUMN_MAPPING = "delta.columnMapping.mode"
DELETION_VECTORS = "delta.enableDeletionVectors"
FILES_KEPT, LOG_KEPT = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"
LOCAL_TIMES = "delta.feature.timestampNtz"
STORED_NAME = "delta.columnMapping.physicalName"
"""Of a field: the name of its column in files."""
TYPE_WIDENING = "delta.enableTypeWidening"
WITH_STATISTICS = "delta.dataSkippingStatsColumns"
"""The columns whose statistics the log has."""
LONG_KEPT_FILES = {FILES_KEPT: "interval 30 days"}
"""How long files stay that no newest version needs, of tables whose versions are read later."""


def is_true(value: str | None) -> bool:
    """Whether a property that is true or false is true: in any case of letters; unset is false."""
    return value is not None and value.lower() == "true"
