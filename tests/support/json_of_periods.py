"""What the commands of closed periods print: their words, and what they would do."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from jobs.restatements import AllRestatements, Restatement, Restatements
from windowing.report.periods import ClosedPeriod, ReopenedPeriod
from windowing.report.rule import Changed

AT, LATER = datetime(2013, 1, 1, 5, tzinfo=UTC), datetime(2013, 1, 1, 6, 0, 0, 5, UTC)
CLOSED = ClosedPeriod(AT, "invoiced", {"hourly": 3}, ("all",), published=True)
REOPENED = ReopenedPeriod(AT, {"hourly": Changed(1, 2, 3)})
UPDATED = Restatement({"place": "EWR"}, AT, LATER, "update", 7, {"n": 1}, {"n": 3}, {"n": 2})
RESTATED = Restatements(
    "hourly",
    3,
    (UPDATED, replace(UPDATED, old=None, operation="insert"), replace(UPDATED, new=None)),
)
CLOSE = "close SPEC --until 2013-01-01 --reason invoiced"
REOPEN, RESTATE = "reopen SPEC --reason wrong", "jobs.restatements.restatements"
PERIODS: Mapping[str, tuple[tuple[str, Mapping[str, Any]], ...]] = {
    "close": ((CLOSE, {"jobs.close.close_period": CLOSED}),),
    "reopen": (
        (REOPEN, {"jobs.close.reopen_period": REOPENED}),
        (REOPEN, {"jobs.close.reopen_period": ReopenedPeriod(None, {})}),
    ),
    "restatements": (
        ("restatements SPEC", {RESTATE: AllRestatements(AT, "invoiced", (RESTATED,))}),
        ("restatements SPEC hourly", {RESTATE: AllRestatements(None, None, ())}),
    ),
}
"""By each heading of the page its commands, and by the name of a function what it returns."""
