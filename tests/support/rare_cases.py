"""Cases of one test of which some are deep."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def quick_and_rare(cases: Iterable[Any], rare: Collection[Any]) -> list[Any]:
    """The cases; rare ones are deep. Each is one value, or a tuple of all of them."""
    return [
        pytest.param(*(c if isinstance(c, tuple) else (c,)), marks=pytest.mark.deep)
        if c in rare
        else c
        for c in cases
    ]
