"""What may be published while a close is interrupted, and what a close asks of readers. No JVM."""

from pathlib import Path

import pytest

from jobs.close import check_published
from jobs.publish import publish, roll_back
from tests.support.published_lake import HOUR, IDENTITY, PublishedLake, to_table
from windowing.errors import ExpectationsFailed, UsageError
from windowing.ledger.period import Period, Reopening
from windowing.ledger.rule import (
    CLOSE,
    ERASE_DONE,
    ERASE_INTENT,
    OPEN,
    PERIOD_CLOSED,
    PERIOD_INTENT,
    PERIOD_REOPENED,
    LedgerEntry,
)
from windowing.ledger.table import read_history, record_entries
from windowing.storage import plain_table
from windowing.storage.arrow_merge import Clauses

UNTIL = 2 * HOUR
CLOSING = Period(UNTIL, "invoiced").as_note()
OPENING = Reopening("a bill was wrong").as_note()


@pytest.fixture
def lake(tmp_path: Path) -> PublishedLake:
    """Two publications, of which the second one has corrected a row."""
    made = PublishedLake(tmp_path)
    made.run({("EWR", 1): 1, ("JFK", 1): 5})
    made.publish()
    made.run({("EWR", 1): 2})
    made.publish()
    return made


def record(lake: PublishedLake, step: str, note: str | None = None) -> None:
    """The ledger says that this was done behind the newest run."""
    past = read_history(lake.pipeline)
    version = {} if step in (PERIOD_INTENT, ERASE_INTENT) else dict(past.versions)
    entry = LedgerEntry(step, run=past.last_run, at=1, versions=version, note=note)
    record_entries(lake.pipeline, past, [entry])


def write(lake: PublishedLake, operation: str, n: int) -> int:
    """The version in which the row of EWR was written without a run."""
    rows = to_table([("EWR", 1, n, 1, lake.runs)])
    opened = plain_table.find_plain(lake.output)
    assert opened is not None
    marked = rows.append_column("__op", [[operation]])
    plain_table.merge(opened, marked, Clauses(IDENTITY, None))
    return opened.version + 1


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([(PERIOD_INTENT, CLOSING)], "a close was begun"),
        ([(PERIOD_INTENT, CLOSING), (PERIOD_CLOSED, CLOSING)], "a period was closed"),
    ],
    ids=["begun", "done"],
)
def test_what_a_close_freezes_is_not_rolled_back(
    lake: PublishedLake, steps: list[tuple[str, str]], why: str
) -> None:
    for step, note in steps:
        record(lake, step, note)
    with pytest.raises(UsageError, match=why) as refused:
        roll_back(lake.pipeline, None, "wrong fares")
    assert str(refused.value).endswith(
        f"release its rows, then roll back: `tidemark reopen {lake.spec} --reason REASON`"
    )
    record(lake, PERIOD_INTENT, OPENING)
    record(lake, PERIOD_REOPENED, OPENING)
    assert roll_back(lake.pipeline, None, "wrong fares").is_new


def test_a_reopening_that_was_begun_undoes_nothing(lake: PublishedLake) -> None:
    record(lake, PERIOD_INTENT, OPENING)
    assert roll_back(lake.pipeline, None, "wrong fares").is_new


def test_what_can_not_be_released_is_told_first(lake: PublishedLake) -> None:
    record(lake, PERIOD_INTENT, CLOSING)
    record(lake, PERIOD_CLOSED, CLOSING)
    record(lake, ERASE_INTENT)
    record(lake, ERASE_DONE)
    with pytest.raises(UsageError, match="because rows were erased"):
        roll_back(lake.pipeline, None, "wrong fares")


def test_an_earlier_run_is_not_published_over_a_close_that_was_begun(tmp_path: Path) -> None:
    lake = PublishedLake(tmp_path)
    lake.run({("EWR", 1): 1})
    lake.runs += 1
    closed = LedgerEntry(
        CLOSE, run=2, at=1, arrival=1, watermark_out=UNTIL, versions={"hourly": write(lake, "U", 2)}
    )
    record_entries(lake.pipeline, read_history(lake.pipeline), [LedgerEntry(OPEN, run=2), closed])
    record(lake, PERIOD_INTENT, CLOSING)
    with pytest.raises(ExpectationsFailed, match="run 2 has not been validated"):
        publish(lake.pipeline)


def test_rows_that_maintenance_has_expired_keep_nothing_from_being_closed(
    lake: PublishedLake,
) -> None:
    write(lake, "D", 2)
    check_published(lake.pipeline, read_history(lake.pipeline), UNTIL)


def test_rows_that_readers_do_not_see_keep_a_period_open(lake: PublishedLake) -> None:
    lake.run({("EWR", 1): 3})
    with pytest.raises(UsageError, match="readers do not see the newest rows of hourly"):
        check_published(lake.pipeline, read_history(lake.pipeline), UNTIL)
    lake.publish()
    check_published(lake.pipeline, read_history(lake.pipeline), UNTIL)
