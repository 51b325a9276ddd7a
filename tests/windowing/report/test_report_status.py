"""How a pipeline stands, from entries of a ledger and a time; every figure derived by hand."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.windowing.spec.specs import changed
from windowing.grid.zone import micros
from windowing.ledger.history import LedgerHistory
from windowing.ledger.period import Period, Reopening
from windowing.ledger.rule import (
    CLOSE,
    DONE,
    ERASE_DONE,
    ERASE_INTENT,
    INTENT,
    OPEN,
    PERIOD_CLOSED,
    PERIOD_REOPENED,
    PUBLISH,
    RUN_OF,
    LedgerEntry,
)
from windowing.report.status import Judgement, Status, describe_status
from windowing.spec.load import load_pipeline

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
PIPELINE = load_pipeline(changed(freshness="30 minutes"))
"""Its windows are hourly, rolling and busy, and its watermark has a delay of 10 minutes."""
NAMES = ("hourly", "rolling", "busy")


def at(minutes: int) -> int:
    """So many minutes after noon, in microseconds."""
    return micros(NOON + timedelta(minutes=minutes))


def ledger(*entries: LedgerEntry) -> LedgerHistory:
    """The entries as a ledger, numbered."""
    return LedgerHistory(tuple(replace(e, seq=seq) for seq, e in enumerate(entries)))


def ran(run: int, minutes: int, **counts: int) -> tuple[LedgerEntry, ...]:
    """A run of one batch whose W is so many minutes after noon; it ended then, too."""
    version = dict.fromkeys(NAMES, run)
    close: dict[str, Any] = {"watermark_out": at(minutes), "at": at(minutes), "versions": version}
    return (
        LedgerEntry(OPEN, run=run),
        LedgerEntry(INTENT, run=run, batch=run),
        LedgerEntry(DONE, run=run, batch=run, counts=counts),
        LedgerEntry(CLOSE, run=run, counts=counts, **close),
    )


def published(run: int, minutes: int, **held: int) -> LedgerEntry:
    """A publication of a run, with the run of each output that was held back."""
    counts = {f"{RUN_OF}{name}": shown for name, shown in held.items()}
    versions = dict.fromkeys(NAMES, run) | held
    return LedgerEntry(PUBLISH, run=run, at=at(minutes), versions=versions, counts=counts)


def stands(
    past: LedgerHistory, minutes: int, judged: Judgement | None = None, writer: str | None = None
) -> Status:
    """The status so many minutes after noon."""
    return describe_status(PIPELINE, past, judged, writer, NOON + timedelta(minutes=minutes))


def test_before_the_first_run_a_pipeline_with_freshness_is_stale() -> None:
    found = stands(LedgerHistory(), 0)
    assert (found.run, found.watermark, found.lag_seconds, found.ran) == (None, None, None, None)
    assert found.reasons == ("stale: there is no watermark yet; freshness is 30 minutes",)
    assert (found.state, found.needs_attention) == ("stale", True)
    quiet = replace(found, freshness_us=None)
    assert (quiet.state, quiet.needs_attention, quiet.reasons) == ("no run", False, ())


def test_what_is_closed_is_said_with_its_reason() -> None:
    until = datetime(2026, 3, 1, tzinfo=UTC)
    note = Period(micros(until), "invoiced").as_note()
    past = ledger(*ran(1, -10), LedgerEntry(PERIOD_CLOSED, run=1, note=note))
    found = stands(past, 0)
    assert (found.closed_until, found.closed_reason) == (until, "invoiced")
    assert (found.state, found.reasons) == ("fresh", ()), "it is nothing to look at"
    opened = LedgerEntry(PERIOD_REOPENED, run=1, note=Reopening("wrong").as_note())
    again = stands(ledger(*past.entries, opened), 0)
    assert (again.closed_until, again.closed_reason) == (None, None)


def test_counts_are_those_of_the_last_run_and_totals_those_of_all() -> None:
    past = ledger(*ran(1, -60, read=5, accepted=4, late=1), *ran(2, -10, read=7, accepted=7))
    found = stands(past, 0)
    assert (found.run, found.lag_seconds, found.ran) == (2, 600, "10 min ago")
    last = {"read": 7, "accepted": 7, "late": 0, "duplicate": 0, "quarantined": 0, "erased": 0}
    assert found.counts == last
    assert found.totals == {**last, "read": 12, "accepted": 11, "late": 1}
    assert (found.state, found.reasons, found.needs_attention) == ("fresh", (), False)


@pytest.mark.parametrize(("minutes", "stale"), [(30, False), (31, True), (-5, False)])
def test_freshness_is_the_most_that_the_watermark_may_lie_behind(
    minutes: int, *, stale: bool
) -> None:
    found = stands(ledger(*ran(1, 0, read=1)), minutes)
    assert (found.is_stale, found.lag_seconds) == (stale, minutes * 60)


def test_what_readers_see_decides_not_what_the_last_run_left() -> None:
    past = ledger(*ran(1, -60, read=1), published(1, -59), *ran(2, -5, read=1))
    found = stands(past, 0)
    assert (found.lag_seconds, found.shown_lag_seconds, found.is_stale) == (300, 3600, True)
    assert (found.published_run, found.published_at) == (1, NOON - timedelta(minutes=59))
    reason = "stale: the watermark of what readers see is 1 h behind; freshness is 30 minutes"
    assert found.reasons == (reason,)


def test_an_output_that_is_held_back_is_as_old_as_its_run() -> None:
    past = ledger(*ran(1, -60), published(1, -59), *ran(2, -5), published(2, -4, busy=1))
    found = stands(past, 0)
    assert (found.published_run, found.held, found.shown_lag_seconds) == (2, ("busy",), 3600)
    assert "held: readers see an older version of busy" in found.reasons


def test_an_output_that_a_rollback_has_left_at_a_newer_run_is_not_held() -> None:
    past = ledger(*ran(1, -60), published(1, -59), *ran(2, -5), published(1, -4, busy=2))
    found = stands(past, 0)
    assert (found.published_run, found.held, found.shown_lag_seconds) == (1, (), 3600)
    assert not any(reason.startswith("held") for reason in found.reasons)


def test_a_window_that_no_run_has_filled_is_new_and_not_held() -> None:
    of_two = replace(PIPELINE, windows=PIPELINE.windows[:2])
    past = ledger(*ran(1, -60), published(1, -59))
    for entry in past.entries:
        entry.versions.pop("busy", None)  # type: ignore[attr-defined]
    assert describe_status(of_two, past, None, None, NOON).added == ()
    found = stands(past, 0)
    assert (found.held, found.added, found.unseen) == ((), ("busy",), ())
    assert found.reasons[1:] == ("busy is new in the spec, and the next run fills it",)
    assert not replace(found, freshness_us=None).needs_attention
    before = stands(LedgerHistory(), 0)
    assert (before.added, before.unseen) == ((), ()), "there is no run yet"


def test_an_output_that_was_never_published_is_unseen_and_not_old() -> None:
    past = ledger(*ran(1, -60), published(1, -59))
    past.entries[-1].versions.pop("busy")  # type: ignore[attr-defined]
    found = stands(past, 0)
    assert (found.held, found.added, found.unseen) == ((), (), ("busy",))
    assert found.reasons[1:] == ("unseen: readers see nothing of busy yet",)


def test_an_open_step_needs_attention_unless_somebody_works_on_it() -> None:
    past = ledger(*ran(1, -5), *ran(2, 0)[:3])
    left = stands(past, 0)
    assert (left.state, left.needs_attention) == ("open", True)
    assert left.reasons == ("open: run 2: the next run finishes it",)
    worked = stands(past, 0, writer="`tidemark run`")
    assert (worked.state, worked.needs_attention, worked.reasons) == ("running", False, ())


def test_a_validation_that_failed_needs_attention_until_it_is_accepted() -> None:
    failed = Judgement(1, 3, at(-4), passed=False)
    past = ledger(*ran(1, -5))
    found = stands(past, 0, failed)
    assert (found.state, found.needs_attention, found.passed) == ("failed", True, False)
    assert found.reasons == ("failed: run 1 does not meet its expectations",)
    accepted = stands(ledger(*past.entries, published(1, -3)), 0, failed)
    assert (accepted.state, accepted.needs_attention, accepted.passed) == ("fresh", False, True)
    left = replace(published(1, -1), versions=dict.fromkeys(NAMES, 2))
    erasure = (
        LedgerEntry(ERASE_INTENT, run=1, at=at(-2)),
        left,
        LedgerEntry(ERASE_DONE, run=1, at=at(0), versions=left.versions),
    )
    erased = stands(ledger(*past.entries, published(1, -3), *erasure), 0, failed)
    assert (erased.state, erased.needs_attention, erased.passed) == ("fresh", False, True)


def test_alarms_of_the_last_run_are_reasons_to_look_but_not_for_a_script() -> None:
    past = ledger(*ran(1, -9, read=9, quarantined=9), *ran(2, -5, read=4, quarantined=3))
    found = stands(past, 0)
    assert found.reasons == ("alarm: 3 of 4 rows were quarantined",)
    assert not found.needs_attention


def test_every_value_is_plain_in_json() -> None:
    past = ledger(*ran(1, -5, read=3), published(1, -4))
    found = stands(past, 0, Judgement(1, 3, at(-4), passed=True)).as_json()
    assert found["freshness_seconds"] == 1800
    assert (found["ran_at"], found["validated_at"]) == (
        "2026-03-02T11:55:00+00:00",
        "2026-03-02T11:56:00+00:00",
    )
