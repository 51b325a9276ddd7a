"""Cases of one test of which some are deep."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def quick_and_rare(cases: Iterable[Any], rare: Collection[Any]) -> list[Any]:
    """The cases; those that are rare are deep."""
    return [pytest.param(c, marks=pytest.mark.deep) if c in rare else c for c in cases]
