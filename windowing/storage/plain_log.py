"""Which tables are plain, by what their logs say.

A plain table is one whose files contain just its rows and columns, and that asks nothing of a
writer but statistics and a change feed.
"""

import re
from collections.abc import Mapping
from datetime import timedelta

from deltalake import DeltaTable

from windowing.storage.table_properties import (
    CHANGE_FEED,
    CHECKPOINT_INTERVAL,
    DELETION_VECTORS,
    FILES_KEPT,
    LOCAL_TIMES,
    LOG_KEPT,
    WITH_STATISTICS,
    is_true,
)

_FEATURES = {"appendOnly", "changeDataFeed", "invariants", "timestampNtz"}
"""Table features that Delta lists for tables to which it writes as to one without features."""
PROPERTIES = {
    CHECKPOINT_INTERVAL,
    WITH_STATISTICS,
    FILES_KEPT,
    CHANGE_FEED,
    DELETION_VECTORS,
    LOCAL_TIMES,
    LOG_KEPT,
}
"""Properties that delta-rs follows, or that don't matter to a writer."""
_OWN = "tidemark."
"""How Tidemark's own properties begin, which no writer follows."""
_TIMES_KEPT = (FILES_KEPT, LOG_KEPT)
_MORE_THAN_A_TYPE = re.compile(r'"nullable":false|"metadata":\{(?!\}|"comment":"[^"]*"\})')
_ANY_TIME = "interval 30 days"
_FILES_KEPT_BY_DEFAULT = "interval 1 week"
_SIMPLE_TIME = re.compile(r"interval (\d+) (hour|day|week)s?")
"""How a time is written that delta-rs reads as Spark does. It takes others for its own default."""


def is_plain(table: DeltaTable) -> bool:
    """Whether files of the table contain just its rows, and ask no more of a writer than these."""
    protocol = table.protocol()
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    metadata = table.metadata()
    settings = metadata.configuration
    return (
        features <= _FEATURES
        and all(name in PROPERTIES or name.startswith(_OWN) for name in settings)
        and not is_true(settings.get(DELETION_VECTORS))
        and all(_SIMPLE_TIME.fullmatch(settings.get(name, _ANY_TIME)) for name in _TIMES_KEPT)
        and not metadata.partition_columns
        and is_simple_schema(str(table.schema().to_json()))
    )


def find_file_retention(settings: Mapping[str, str]) -> timedelta | None:
    """How long a table keeps files that its newest version doesn't need, by its properties.

    None where they say it in another way than most do.
    """
    found = _SIMPLE_TIME.fullmatch(settings.get(FILES_KEPT, _FILES_KEPT_BY_DEFAULT))
    return None if found is None else timedelta(**{f"{found[2]}s": int(found[1])})


def is_simple_schema(schema_json: str) -> bool:
    """Whether columns, as a log has them, are no more than names and types.

    Those that are generated, collated, of a type that was widened, or never null are more.
    """
    return not _MORE_THAN_A_TYPE.search(schema_json)
