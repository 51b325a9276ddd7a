"""What `publish` shows readers was judged as it is shown. Ledger and outcomes are made by hand."""

from pathlib import Path
from shutil import copytree

import pytest

from expectations.outcome import CRITICAL, Outcome
from expectations.table import record_outcomes
from jobs.diagnosis.pointer import read_pointer
from jobs.publish import publish, roll_back
from tests.support.long_lived_pipeline import Crasher, ends_at
from tests.support.published_lake import PublishedLake
from windowing.errors import ExpectationsFailed, UsageError
from windowing.ledger.rule import DONE, LedgerEntry
from windowing.ledger.table import read_history, record_entries

DAILY = "  daily: {kind: tumbling, size: 1 day}\n"


@pytest.fixture
def lake(tmp_path: Path) -> PublishedLake:
    """One run that was judged and published."""
    made = PublishedLake(tmp_path)
    made.run({("EWR", 1): 1})
    judge(made, hourly=True)
    publish(made.pipeline)
    return made


def judge(lake: PublishedLake, accepted: str | None = None, **passes: bool) -> None:
    """Records a validation of the newest step, by output whether it passes."""
    newest = read_history(lake.pipeline).newest
    assert newest is not None
    outcomes = [
        Outcome(window, "own", "is_right", CRITICAL, success, "", "", "rule", accepted)
        for window, success in passes.items()
    ]
    record_outcomes(lake.pipeline, newest, outcomes, None)


def shown(lake: PublishedLake) -> dict[str, int]:
    """The versions that readers see."""
    published = read_history(lake.pipeline).published
    assert published is not None
    return dict(published.versions)


def add_daily(lake: PublishedLake) -> None:
    """A second window, whose output is as `hourly`."""
    lake.spec.write_text(lake.spec.read_text() + DAILY)
    copytree(lake.output.local, lake.pipeline.table("daily").local)


def remove_daily(lake: PublishedLake) -> None:
    lake.spec.write_text(lake.spec.read_text().replace(DAILY, ""))


def close_both(lake: PublishedLake) -> None:
    """A run that has left both outputs at a version which readers have not seen."""
    lake.runs += 1
    past = read_history(lake.pipeline)
    at = max(entry.at or 0 for entry in past.entries) + 1
    versions = {"hourly": 1, "daily": 1}
    closed = LedgerEntry("close", run=lake.runs, at=at, watermark_out=1, versions=versions)
    record_entries(lake.pipeline, past, [closed])


def test_a_window_that_was_taken_out_is_not_published_by_what_judged_the_others(
    lake: PublishedLake,
) -> None:
    add_daily(lake)
    close_both(lake)
    judge(lake, hourly=True, daily=False)
    with pytest.raises(ExpectationsFailed, match="daily: is_right"):
        publish(lake.pipeline)
    remove_daily(lake)
    judge(lake, hourly=True)
    publish(lake.pipeline)
    assert shown(lake) == {"hourly": 1}
    lake.spec.write_text(lake.spec.read_text() + DAILY)
    with pytest.raises(ExpectationsFailed, match="daily of run 2 was not there to be validated"):
        publish(lake.pipeline)
    judge(lake, hourly=True, daily=True)
    publish(lake.pipeline)
    assert shown(lake) == {"hourly": 1, "daily": 1}


def test_a_window_that_was_taken_out_stays_as_readers_see_it(lake: PublishedLake) -> None:
    add_daily(lake)
    close_both(lake)
    judge(lake, hourly=True, daily=True)
    publish(lake.pipeline)
    remove_daily(lake)
    assert not publish(lake.pipeline).is_new
    assert shown(lake) == {"hourly": 1, "daily": 1}


def test_an_output_that_is_not_filled_yet_is_none_that_passes(lake: PublishedLake) -> None:
    lake.spec.write_text("publish: each\n" + lake.spec.read_text().lstrip())
    lake.run({("EWR", 1): 2})
    judge(lake, hourly=False)
    lake.spec.write_text(lake.spec.read_text() + DAILY)
    with pytest.raises(ExpectationsFailed, match="breaks 1 critical"):
        publish(lake.pipeline)


def test_a_publication_that_was_interrupted_is_shown_though_the_next_run_fails(
    lake: PublishedLake,
) -> None:
    lake.run({("EWR", 1): 2})
    judge(lake, hourly=True)
    ends_at(Crasher("publish.noted"), lambda: publish(lake.pipeline))
    wanted = lake.newest
    lake.run({("EWR", 1): -3})
    judge(lake, hourly=False)
    with pytest.raises(ExpectationsFailed, match="run 3 breaks"):
        publish(lake.pipeline)
    assert lake.read() == wanted
    published = read_history(lake.pipeline).published
    assert published is not None
    assert read_pointer(lake.pipeline).step == published.seq


def test_what_was_accepted_is_judged_anew_behind_a_rollback(lake: PublishedLake) -> None:
    lake.run({("EWR", 1): 2})
    judge(lake, hourly=False)
    publish(lake.pipeline, "an odd day")
    lake.run({("EWR", 2): 2})
    judge(lake, accepted="an odd day", hourly=False)
    publish(lake.pipeline)
    first = read_history(lake.pipeline).publications[0]
    roll_back(lake.pipeline, first.seq, "it was not odd")
    with pytest.raises(ExpectationsFailed, match="accepted by a publication that was rolled back"):
        publish(lake.pipeline)
    assert shown(lake) == first.versions
    judge(lake, accepted="readers saw it before", hourly=False)
    assert publish(lake.pipeline).is_new


def test_a_reason_accepts_only_failures_that_were_seen(lake: PublishedLake) -> None:
    lake.run({("EWR", 1): 2})
    judge(lake, hourly=False)
    close_both(lake)
    with pytest.raises(ExpectationsFailed, match="run 3 has not been validated; `tidemark valida"):
        publish(lake.pipeline, "an odd day")
    assert shown(lake) == {"hourly": 1}
    add_daily(lake)
    judge(lake, hourly=False)
    with pytest.raises(ExpectationsFailed, match="daily of run 3 was not there to be validated"):
        publish(lake.pipeline, "an odd day")
    judge(lake, hourly=False, daily=False)
    assert publish(lake.pipeline, "an odd day").run == 3
    assert publish(lake.pipeline, "odder still").is_new, "readers see it already"


def test_an_empty_reason_accepts_nothing(lake: PublishedLake) -> None:
    lake.run({("EWR", 1): 2})
    judge(lake, hourly=False)
    with pytest.raises(UsageError, match="accept needs a reason"):
        publish(lake.pipeline, " ")
    assert shown(lake) == {"hourly": 1}


def test_a_reason_does_not_publish_what_the_source_has_changed_since(lake: PublishedLake) -> None:
    past = read_history(lake.pipeline)
    note = '{"ranges": [[0, 9]], "left_out": [], "rows": 1}'
    read = LedgerEntry(DONE, run=2, batch=1, at=past.entries[-1].at, note=note)
    record_entries(lake.pipeline, past, [read])
    lake.run({("EWR", 1): 2})
    with pytest.raises(UsageError, match="stopped before reprocessing rows that changed"):
        publish(lake.pipeline, "an odd day")
