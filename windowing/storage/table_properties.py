"""How Delta reads the properties of a table. No Spark."""

CHANGE_FEED = "delta.enableChangeDataFeed"
DELETION_VECTORS = "delta.enableDeletionVectors"
TYPE_WIDENING = "delta.enableTypeWidening"


def is_true(value: str | None) -> bool:
    """Whether a property that is true or false is true: in any case of letters; unset is false."""
    return value is not None and value.lower() == "true"
