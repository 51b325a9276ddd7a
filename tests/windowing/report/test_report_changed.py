"""Days that changed, as people and JSON have them: many days are told as ranges alone."""

from datetime import date, timedelta

from windowing.ledger.changed import ChangedDays
from windowing.ledger.counts import name_starts
from windowing.report.changed import MOST_DAYS, Days, describe_changed, describe_steps, tell_days
from windowing.spec.load import load_pipeline

DAY_US = 86_400_000_000
(HOURLY,) = load_pipeline(
    {
        "name": "trips",
        "lake": "/lake",
        "source": {"table": "trips", "event_time": "at", "key": ["place"]},
        "aggregates": {"n": "count()"},
        "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
    }
).windows
FIRST = date(1970, 1, 1)


def describe(changed: ChangedDays) -> Days:
    return describe_changed(changed, [HOURLY])["hourly"]


def test_as_many_days_are_listed_as_are_allowed() -> None:
    last = FIRST + timedelta(days=MOST_DAYS - 1)
    found = describe({"hourly": ((FIRST, last),)})
    assert found.days is not None
    assert (len(found.days), found.days[-1]) == (MOST_DAYS, last)


def test_more_days_are_ranges_alone() -> None:
    for spans in (
        ((FIRST, FIRST + timedelta(days=MOST_DAYS)),),
        ((FIRST, FIRST), (date(1971, 1, 1), date(1973, 12, 31))),
    ):
        found = describe({"hourly": spans})
        written = found.as_json()
        assert (found.days, written["days"]) == (None, None)
        ranges = written["ranges"]
        assert isinstance(ranges, list)
        assert len(ranges) == len(spans)
        assert f"to {spans[-1][1]}" in tell_days({"hourly": found})


def test_a_run_over_all_of_the_calendar_is_one_range() -> None:
    starts = (-719_162 * DAY_US, 2_932_896 * DAY_US)
    counts = {"hourly.inserted": 2, **name_starts("hourly", starts)}
    found = describe_steps([counts], [HOURLY])
    assert found["hourly"].spans == ((date.min, date.max),)
    assert len(str(found["hourly"].as_json())) < 200
    assert tell_days(found) == "changed days: 0001-01-01 to 9999-12-31"
