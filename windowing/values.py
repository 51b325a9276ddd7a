"""Whether values of rows are the same. No Spark."""

from math import isnan
from typing import Any


def is_same(old: Any, new: Any) -> bool:
    """Whether two values of a column are the same; no number (NaN) is the same as no number.

    >>> is_same(float("nan"), float("nan")), is_same([1, float("nan")], [1, float("nan")])
    (True, True)
    >>> is_same(1, 2), is_same(None, 0), is_same([1], [1, 2])
    (False, False, False)
    """
    match old, new:
        case float(), float():
            return old == new or (isnan(old) and isnan(new))
        case (list(), list()) | (tuple(), tuple()):
            return len(old) == len(new) and all(map(is_same, old, new))
        case dict(), dict():
            return old.keys() == new.keys() and all(is_same(old[name], new[name]) for name in old)
    return bool(old == new)
