"""The condition by which a message of Spark names its error."""

import re

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")


def find_condition(message: str) -> str | None:
    """The condition that a message begins with. What follows it may quote values of rows.

    >>> find_condition("[CAST_INVALID_INPUT] The value 'x' can't be cast")
    'CAST_INVALID_INPUT'
    >>> find_condition("unknown format: [A4711]")
    """
    found = _CONDITION.match(message)
    return found[1] if found else None
