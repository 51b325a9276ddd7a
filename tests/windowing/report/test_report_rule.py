"""Figures of a run, and a publication, as values and as JSON."""

import json
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowing.grid.days import DayRange
from windowing.grid.range import Range
from windowing.ledger.changed import ShownChange
from windowing.ledger.rule import COUNTS
from windowing.report.changed import Days
from windowing.report.rule import (
    Changed,
    Publication,
    Published,
    RunReport,
    add_corrections,
    run_report,
)
from windowing.source.rule import Followed

numbers = st.integers(0, 10**12)
changes = st.builds(Changed, numbers, numbers, numbers)


@settings(max_examples=100)
@given(
    st.dictionaries(st.sampled_from(["hourly", "daily"]), changes),
    st.dictionaries(st.sampled_from(COUNTS), numbers),
)
def test_a_report_says_what_the_ledger_counted(
    windows: dict[str, Changed], outcomes: dict[str, int]
) -> None:
    kinds = {
        f"{name}.{kind}": n for name, change in windows.items() for kind, n in vars(change).items()
    }
    found = run_report(
        3, 2, {**outcomes, **kinds, "partial.hourly": 7}, 1_000_000, ["hourly", "daily"]
    )
    assert (found.run, found.batches) == (3, 2)
    assert {name: getattr(found, name) for name in COUNTS} == {
        name: outcomes.get(name, 0) for name in COUNTS
    }
    assert dict(found.windows) == {"hourly": Changed(), "daily": Changed()} | windows
    assert json.loads(json.dumps(found.as_json()))["watermark"] == "1970-01-01T00:00:01+00:00"


def test_a_report_says_by_column_what_gave_null() -> None:
    counts = {"read": 9, "null(delay)": 3, "null(source.where)": 2, "null(fare)": 0}
    found = run_report(3, 1, {**counts, "null.inserted": 7, "partial.null": 4}, None, ["null"])
    assert found.gave_null == {"delay": 3, "source.where": 2}
    assert found.windows["null"] == Changed(inserted=7), "a window may be called null"
    assert json.loads(json.dumps(found.as_json()))["gave_null"] == found.gave_null
    assert add_corrections(found, [{"null(delay)": 5}]).gave_null == found.gave_null


def test_what_was_counted_again_is_part_of_the_run() -> None:
    run = run_report(3, 1, {"hourly.inserted": 2, "accepted": 4}, None, ["hourly", "daily"])
    found = add_corrections(
        run, [{"hourly.updated": 3, "read": 9}, {"hourly.inserted": 1, "daily.deleted": 5}]
    )
    assert (found.corrections, found.accepted, found.read) == (2, 4, 0)
    assert dict(found.windows) == {"hourly": Changed(3, 3, 0), "daily": Changed(0, 0, 5)}
    assert add_corrections(run, []) == run


def test_a_report_of_nothing_is_all_zeros() -> None:
    assert run_report(None, 0, {}, None, ["hourly"]).as_json() == {
        "run": None,
        "batches": 0,
        **dict.fromkeys(("read", "accepted", "late", "duplicate", "quarantined"), 0),
        "watermark": None,
        "windows": {"hourly": dict.fromkeys(("inserted", "updated", "deleted", "restated"), 0)},
        "corrections": 0,
        "evolved": [],
        "gave_null": {},
        "published": False,
        "row_by_row": 0,
        "followed": None,
        "versions_unread": 0,
        "alarms": [],
        "changed_days": {},
        "caught_up": {},
        "erased": 0,
    }
    assert RunReport(None) == run_report(None, 0, {}, None, [])


@settings(max_examples=100)
@given(changes, changes, changes)
def test_changes_add_up_in_any_order(a: Changed, b: Changed, c: Changed) -> None:
    assert a + Changed() == a
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)


def test_ranges_that_a_run_followed_end_before_their_last_number() -> None:
    followed = Followed(3, (Range(0, 999_999),), (Range(2_000_000, 2_000_000),))
    assert RunReport(4, followed=followed).as_json()["followed"] == {
        "rows": 3,
        "ranges": [["1970-01-01T00:00:00+00:00", "1970-01-01T00:00:01+00:00"]],
        "left_out": [["1970-01-01T00:00:02+00:00", "1970-01-01T00:00:02.000001+00:00"]],
    }


@pytest.mark.parametrize(
    ("days", "told"),
    [
        (None, None),
        ((), []),
        (
            ((date(2026, 3, 1), date(2026, 3, 1)), (date(2026, 3, 4), date(2026, 3, 6))),
            [
                {"first": "2026-03-01", "last": "2026-03-01"},
                {"first": "2026-03-04", "last": "2026-03-06"},
            ],
        ),
    ],
)
def test_a_publication_tells_by_output_what_each_one_changed(
    days: tuple[DayRange, ...] | None, told: object
) -> None:
    shown = Published(
        version=5, run=2, rows=9, previous=4, entry=7, at="2026-03-07T00:00:00", watermark=None
    )
    found = Publication(
        2,
        {"hourly": shown, "daily": shown},
        held={"weekly": ("rows >= 1",)},
        number=3,
        changed_days={"daily": Days()},
        changes={"hourly": (ShownChange(3, 1_000_000, days),)},
    ).as_json()
    assert found["outputs"] == {
        "hourly": {
            **shown,
            "changes": [{"publication": 3, "at": "1970-01-01T00:00:01+00:00", "days": told}],
        },
        "daily": {**shown, "changes": []},
    }
    assert found["changed_days"] == {"daily": {"days": [], "ranges": []}}
    assert found["held"] == {"weekly": ["rows >= 1"]}
