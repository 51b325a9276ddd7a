"""Tables that a catalog manages: how a log, Delta and delta-rs tell of one. No Spark.

Commits of such a table are known to its catalog first, so its log may lack the newest ones, and
whoever writes or deletes files by its path destroys it.
"""

import re

FEATURES = frozenset({"catalogManaged", "catalogOwned", "catalogOwned-preview"})
"""The table feature of such a table, and how it was called before Delta 4.0.1."""
_TOLD = re.compile(
    r"DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"
    r"|Couldn't locate commit coordinator for"
    r"|when loading a catalog-managed table"
    r"|Feature 'catalog(Managed|Owned)\b"
    r"|unsupported by Delta Lake \S+ [^\n]*\bcatalog(Managed|Owned)\b"
)
"""What Delta says of such a table by path and by name, what delta-rs says, and Delta of old ones.

delta-rs has no conditions.
"""


def tells_of_catalog(message: str) -> bool:
    """Whether Delta or delta-rs says with an error that a catalog manages the table."""
    return _TOLD.search(message) is not None
