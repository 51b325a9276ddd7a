"""When the windows of events end, for many instants at once: as the oracle says for each."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import oracle
from tests.windowing.cases import COUNT, DAY, HOUR, MINUTE, Case, aligned, instants, pipeline
from windowing.advise.ends import NEVER_US, find_ends
from windowing.spec.kinds import (
    CappedSession,
    Count,
    Delta,
    Global,
    Punctuation,
    RecordSliding,
    Session,
    Window,
)

many = st.lists(instants, min_size=1, max_size=4)


@settings(max_examples=400)
@given(aligned(), many)
def test_ends_on_grids_are_the_oracles(case: Case, t: list[int]) -> None:
    found = find_ends(pipeline(case.ours), np.array(t, np.int64))
    ends = [oracle.ends(case.theirs, each) for each in t]
    assert found.first.tolist() == [min(each) for each in ends]
    assert found.last.tolist() == [max(each) for each in ends]


OTHERS: list[tuple[Window, oracle.Window]] = [
    (Count("c", 3, 3, COUNT), oracle.Count("c", 3)),
    (Delta("d", "a", "5", None, COUNT), oracle.Delta("d", 5)),
    (Punctuation("p", "m", COUNT), oracle.Punctuation("p")),
    (RecordSliding("r", 7_000, 3_000, COUNT), oracle.RecordSliding("r", 7_000, 3_000)),
]


@pytest.mark.parametrize(("ours", "theirs"), OTHERS, ids=lambda window: type(window).__name__)
@given(t=many)
def test_ends_of_other_kinds_are_the_oracles(
    ours: Window, theirs: oracle.Window, t: list[int]
) -> None:
    found = find_ends(pipeline(ours), np.array(t, np.int64))
    ends = [oracle.ends(theirs, each) for each in t]
    assert found.first.tolist() == [min(each) for each in ends]
    assert found.last.tolist() == [max(each) for each in ends]


def test_of_several_windows_the_first_end_and_the_last_one_count() -> None:
    windows = [
        Session("s", 20 * MINUTE, COUNT),
        CappedSession("t", HOUR, 2 * HOUR, COUNT),
        Count("c", 3, 3, COUNT),
    ]
    t = np.array([-5, DAY], np.int64)
    found = find_ends(pipeline(*windows), t)
    assert found.first.tolist() == [-4, DAY + 1]
    assert found.last.tolist() == [HOUR - 5, DAY + HOUR]
    endless = find_ends(pipeline(*windows, Global("g", COUNT)), t)
    assert endless.first.tolist() == found.first.tolist()
    assert endless.last.tolist() == [NEVER_US] * 2
    assert find_ends(pipeline(*windows), np.array([], np.int64)).first.tolist() == []
