"""Among the ledger's counts: rows an expression was NULL for although its input had a value."""

from collections.abc import Mapping

WHERE = "source.where"
"""Stands for `where` among the columns that gave NULL; none of them has a point in its name."""


def name_null_count(column: str) -> str:
    """What the counts call the rows where `column` is NULL although its input has a value.

    No window is called so that its own counts could have the name.

    >>> name_null_count("delay")
    'null(delay)'
    """
    return f"null({column})"


def read_null_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """By column how many rows it is NULL for although its input has a value, where there are any.

    >>> read_null_counts({"read": 9, "null(delay)": 3, "null(source.where)": 0})
    {'delay': 3}
    """
    return {
        name.removeprefix("null(")[:-1]: n
        for name, n in sorted(counts.items())
        if name.startswith("null(") and n
    }
