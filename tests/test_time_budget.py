"""A part of a long suite: which file comes first, what no longer begins, and what is said of it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import time_budget
from tests.support.time_budget import TimeBudget, turn_files

SUITE: list[Any] = [
    SimpleNamespace(path=Path(file), name=name)
    for file, names in {"a": "123", "b": "45", "c": "6"}.items()
    for name in names
]


def test_each_file_comes_first_for_some_word_and_all_stay_whole() -> None:
    orders = {"".join(test.name for test in turn_files(SUITE, f"word {n}")) for n in range(50)}
    assert orders == {"123456", "456123", "612345"}


def test_the_order_of_a_word_is_always_the_same() -> None:
    assert turn_files(SUITE, "word") == turn_files(SUITE, "word")
    assert turn_files([], "word") == []


def test_what_begins_too_late_is_skipped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time_budget, "monotonic", lambda: now)
    budget = TimeBudget(2)
    budget.chosen = 5
    now = 119.0
    assert not budget.is_spent
    assert budget.summary() == "5 of 5 tests began within 2 minutes; 0 did not"
    now = 120.0
    assert budget.is_spent
    with pytest.raises(pytest.skip.Exception, match="2 minutes were over before it began"):
        budget.skip()
    assert budget.summary() == "4 of 5 tests began within 2 minutes; 1 did not"


def test_without_a_limit_everything_begins() -> None:
    budget = TimeBudget(None)
    assert (budget.is_spent, budget.summary()) == (False, None)
