"""What the columns of files are called in the source table.

A name of letters, digits and underscores stays as it is. Elsewhere each run of other characters
becomes one underscore, but none at the ends, so that `Total Amount (EUR)` is `Total_Amount_EUR`.
So every column can be used in a spec without quotes. A name that would be empty, or begin with a
digit, begins with `column_`: the third one without a name is `column_3`. Names that would differ by
case alone, and names that are taken, get the next free number: `price_2`.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from windowing.columns import FILE, RESCUED
from windowing.spec.reserved import FEED_COLUMNS, HELPER, SOURCE_COLUMNS

_TAKEN = (FILE, RESCUED, *FEED_COLUMNS, *SOURCE_COLUMNS)
_UNFIT = re.compile(r"\W+")


def name_columns(names: Sequence[str], taken: Iterable[str] = ()) -> tuple[str, ...]:
    """The names of columns in the table, for their names in files, in the order of these.

    >>> name_columns(["id", "Total Amount (EUR)", "", "ID", "rescued"])
    ('id', 'Total_Amount_EUR', 'column_3', 'ID_2', 'rescued_2')
    """
    used = {name.lower() for name in (*_TAKEN, *taken)}
    found = []
    for place, name in enumerate(names, 1):
        free = _find_free(_clean_name(name, place), used, str.lower)
        found.append(free)
    return tuple(found)


def slug(text: str) -> str:
    """The text in small letters, digits and single underscores; empty where nothing is left.

    >>> slug("Total Amount (EUR)")
    'total_amount_eur'
    """
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _clean_name(name: str, place: int) -> str:
    cleaned = name.strip()
    if cleaned.startswith(HELPER):
        cleaned = cleaned.lstrip("_")
    if _UNFIT.search(cleaned):
        cleaned = _UNFIT.sub("_", cleaned).strip("_")
    if not cleaned.strip("_"):
        return f"column_{place}"
    return f"column_{cleaned}" if cleaned[0].isdigit() else cleaned


def _find_free(name: str, used: set[str], told_by: Callable[[str], str]) -> str:
    """The name, or with the first number with which it is not `used` yet; it is then."""
    free, number = name, 1
    while told_by(free) in used:
        number += 1
        free = f"{name}_{number}"
    used.add(told_by(free))
    return free


def tell_apart(header: Sequence[str]) -> tuple[str, ...]:
    """The names in a header of CSV, of which no two are equal and none is empty.

    >>> tell_apart(["price", "price", " "])
    ('price', 'price_2', 'column_3')
    """
    used: set[str] = set()
    found = []
    for place, given in enumerate(header, 1):
        found.append(_find_free(given.strip() or f"column_{place}", used, str))
    return tuple(found)
