"""What the commands of closed periods print: their words, and what they would do."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from jobs.evidence.accepted_events import AcceptedEvents
from jobs.restatements import AllRestatements, Contribution, Restatement, Restatements
from windowing.report.periods import ClosedPeriod, ReopenedPeriod
from windowing.report.rule import Changed
from windowing.revisions.evidence import Untold
from windowing.revisions.rule import Cause, Period, Step

AT, LATER = datetime(2013, 1, 1, 5, tzinfo=UTC), datetime(2013, 1, 1, 6, 0, 0, 5, UTC)
CLOSED = ClosedPeriod(AT, "invoiced", {"hourly": 3}, ("all",), published=True)
REOPENED = ReopenedPeriod(AT, {"hourly": Changed(1, 2, 3)})
UPDATED = Restatement({"place": "EWR"}, AT, LATER, "update", 7, {"n": 1}, {"n": 3}, {"n": 2})
BROUGHT = (
    Contribution(
        Step(Cause.BACKFILL, 2, AT, Period(AT, LATER)), AcceptedEvents(1, 60, (("e", 0),))
    ),
    Contribution(Step(Cause.RUN, 3, AT), Untold("why")),
)
RESTATED = Restatements(
    "hourly",
    3,
    (
        replace(UPDATED, brought_by=BROUGHT),
        replace(UPDATED, old=None, operation="insert"),
        replace(UPDATED, new=None),
    ),
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
