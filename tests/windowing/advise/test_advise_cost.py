"""What settings cost, as plain loops over a history find it."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests import oracle
from tests.oracle import Event
from tests.windowing.advise.test_advise_replay import (
    START,
    Batch,
    histories,
    made,
    number_events,
)
from tests.windowing.cases import HOUR, MINUTE, Case, aligned, tumbling
from windowing.advise.cost import find_closings, find_cost, find_open_rows
from windowing.advise.history import build_history, find_margins, judge
from windowing.advise.rule import Settings
from windowing.grid.rule import Grid

MAX_FUTURE = HOUR
waits = st.sampled_from([0, MINUTE, 90 * MINUTE, 26 * HOUR])


@settings(max_examples=200, deadline=None)
@given(aligned("w"), histories(with_ids=False), waits, waits)
def test_costs_are_what_loops_find(
    case: Case, batches: list[Batch], delay: int, lateness: int
) -> None:
    asked = made([case.ours], None)
    history = build_history(asked, *number_events(batches), 0)
    judged = judge(asked, history)
    assume(len(judged.age))
    chosen = Settings(delay, lateness)
    cost = find_cost(
        chosen,
        find_margins(judged),
        find_closings(history, judged, asked.watermark),
        find_open_rows(history, judged, asked.watermark),
    )
    # By batch the highest event time that had arrived with it, at most its arrival.
    highest: list[int | None] = []
    changed, rows, ends, correcting = set(), set(), set(), 0
    for n, batch in enumerate(batches):
        before = highest[-1] if highest else None
        events = [e for e in batch.events if e.t <= batch.arrival + MAX_FUTURE]
        for e in events if before is not None else []:
            spans = [end for _, end in oracle.spans(case.theirs, e.t)]
            rows.add((e.key, max(spans)))
            ends.add(min(spans))
            if delay <= before - min(spans) < chosen.reach_us:
                changed.add((n, e.key, min(spans)))
                correcting += 1
        reached = [min(e.t, batch.arrival) for e in events]
        highest.append(max([*reached, *highest[-1:]], default=None, key=lambda us: us or -(10**18)))
    assert (cost.corrections, cost.correcting) == (len(changed), correcting)
    assert cost.open_rows == sum(highest[-1] - end < chosen.reach_us for _, end in rows)
    closed = []
    for end in ends:
        passed = [n for n, us in enumerate(highest) if us is not None and us >= end + delay]
        # What had ended before the first batch did not wait.
        if passed and (highest[0] is None or end > highest[0]):
            closed.append(batches[passed[0]].arrival - end)
    closed.sort()
    half, most = -(-len(closed) // 2), -(-len(closed) * 99 // 100)
    expected = (closed[half - 1], closed[most - 1]) if closed else (None, None)
    assert (cost.wait_us, cost.long_wait_us) == expected


def test_each_batch_corrects_a_row_once() -> None:
    twice = [Event("x", START, 1.0), Event("x", START + MINUTE, 1.0)]
    both = [Event("x", START, 1.0), Event("y", START, 1.0)]
    batches = [
        Batch(START + 5 * HOUR, [Event("x", START + 5 * HOUR, 1.0)]),
        Batch(START + 6 * HOUR, twice),
        Batch(START + 7 * HOUR, both),
    ]
    asked = made([tumbling(Grid(HOUR)).ours], None)
    margins = find_margins(judge(asked, build_history(asked, *number_events(batches), 0)))
    chosen = Settings(0, 9 * HOUR)
    assert (margins.count_corrections(chosen), margins.count_correcting(chosen)) == (3, 4)
