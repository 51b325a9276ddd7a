"""How messages of Spark, and of what it calls, name their errors."""

import re

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
REFUSED_KEYS = re.compile(
    "ExpiredToken|InvalidToken|TokenRefreshRequired|InvalidAccessKeyId|SignatureDoesNotMatch"
    "|AccessDeniedException: s3a:|Service: S3, Status Code: 403"
)
"""How S3, or Spark's client of it, says that the credentials do not allow something."""


def find_condition(message: str) -> str | None:
    """The condition that a message begins with. What follows it may quote values of rows.

    >>> find_condition("[CAST_INVALID_INPUT] The value 'x' can't be cast")
    'CAST_INVALID_INPUT'
    >>> find_condition("unknown format: [A4711]")
    """
    found = _CONDITION.match(message)
    return found[1] if found else None
