"""Windows that events are in, and those that are open: as the oracle lists them."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests import oracle
from tests.windowing.cases import DAY, HOUR, MINUTE, Case, aligned, cumulate, instants, sliding
from windowing.advise import open_windows
from windowing.advise.open_windows import list_open, pair_events
from windowing.grid.rule import Grid
from windowing.panes.rule import windows_of_pane

many = st.lists(instants, min_size=1, max_size=4, unique=True)


def pairs_of(case: Case, t: list[int], since: int) -> set[tuple[int, int, int]]:
    """Each event with the start and the end of each of its windows."""
    # The arrival tells which event it is.
    time = np.array(t, np.int64)
    found = pair_events(case.ours, time, time, since)
    listed = list(zip(found.arrived, found.start, found.end, strict=True))
    assert len(listed) == len({*listed})
    return {(int(at), int(start), int(end)) for at, start, end in listed}


@settings(max_examples=150, deadline=None)
@given(aligned(), many, st.sampled_from([0, 1]))
def test_events_are_paired_with_their_windows(case: Case, t: list[int], later: int) -> None:
    spans = {(each, *span) for each in t for span in oracle.spans(case.theirs, each)}
    assume(windows_of_pane(case.ours) <= open_windows.MOST_WINDOWS)
    since = max(start for _, start, _ in spans) if later else -(2**60)
    assert pairs_of(case, t, since) == {pair for pair in spans if pair[1] >= since}


@settings(max_examples=150, deadline=None)
@given(aligned(), instants, st.integers(0, 9 * DAY))
def test_open_windows_end_later_and_have_begun(case: Case, closed: int, more: int) -> None:
    theirs = oracle.between(case.theirs, closed, closed + more - 1) if more else []
    assume(len(theirs) < 900)
    found = [(span.start_us, span.end_us) for span in list_open(case.ours, closed, closed + more)]
    if windows_of_pane(case.ours) <= open_windows.MOST_WINDOWS:
        assert found == sorted(theirs, key=lambda span: (span[1], span[0]))


def test_of_very_many_windows_some_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    day = sliding(Grid(MINUTE), DAY)
    t = [5 * DAY + n * HOUR for n in range(20)]
    assert 19 * 20 < len(pairs_of(day, t, 0)) <= open_windows.MOST_WINDOWS * 20
    assert pairs_of(day, t, 0) <= {(e, *span) for e in t for span in oracle.spans(day.theirs, e)}
    monkeypatch.setattr(open_windows, "MOST_PAIRS", 100)
    assert 20 < len(pairs_of(day, t, 0)) <= 120
    hours = cumulate(Grid(DAY, inner_us=HOUR))
    assert {start for _, start, _ in pairs_of(hours, [DAY - 1, 5 * DAY, 6 * DAY], 0)} < {
        n * DAY for n in range(7)
    }
    assert len(list_open(sliding(Grid(MINUTE), DAY).ours, 0, 30 * DAY)) == open_windows.MOST_OPEN
