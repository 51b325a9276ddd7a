"""Cases of one test of which some are deep, or take long."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def quick_and_rare(
    cases: Iterable[Any], rare: Collection[Any], mark: pytest.MarkDecorator = pytest.mark.deep
) -> list[Any]:
    """The cases; rare ones have the mark. Each is one value, or a tuple of all of them."""
    return [
        pytest.param(*(c if isinstance(c, tuple) else (c,)), marks=mark) if c in rare else c
        for c in cases
    ]
