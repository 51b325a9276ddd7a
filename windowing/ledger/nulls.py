"""Counts in the ledger of rows for which an expression was NULL although its input had a value."""

from collections.abc import Mapping

WHERE = "source.where"
"""Names `where` among the columns that gave NULL; none of these has a point in its name."""


def name_null_count(column: str) -> str:
    """The name of the count of rows where `column` is NULL although its input has a value.

    The name of no window allows a count of its own with this name.

    >>> name_null_count("delay")
    'null(delay)'
    """
    return f"null({column})"


def read_null_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """By column how many rows it is NULL for although its input has a value, where there are any.

    >>> read_null_counts({"read": 9, "null(delay)": 3, "null(source.where)": 0})
    {'delay': 3}
    """
    found = {}
    for name, n in sorted(counts.items()):
        if name.startswith("null(") and n:
            column = name.removeprefix("null(").removesuffix(")")
            found[column] = n
    return found
