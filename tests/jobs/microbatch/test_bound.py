"""Whether several batches surely give the result of one, and how far they are. No Spark."""

from dataclasses import replace

import pytest

from jobs.microbatch.bound import Bound, find_obstacle, measure_progress
from tests.windowing.spec.specs import changed
from windowing.ledger.counts import BATCH_BYTES
from windowing.ledger.rule import CLOSE, DONE, INTENT, OPEN, LedgerEntry, LedgerExcerpt
from windowing.source.backlog import Backlog
from windowing.spec.duration import HOUR, MINUTE
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import BatchBound, Pipeline
from windowing.storage.file_figures import FileFigures

W = 1_000_000 * HOUR
LATE_BEFORE = W - 1 * HOUR - 30 * MINUTE + 1
"""With an hour of lateness and a gap of half an hour, no later event is late for a session."""
TWO = BatchBound(rows=2)


def pipeline(lateness: str, *windows: str, changes: str = "refuse") -> Pipeline:
    kinds = changed()["windows"]
    return load_pipeline(
        changed(
            **{
                "watermark/allowed_lateness": lateness,
                "windows": {name: kinds[name] for name in windows},
                "source/changes": changes,
            }
        )
    )


def files(*lows: int | None) -> Backlog:
    return Backlog(tuple(FileFigures(3, low_us, low_us, 1_000_000) for low_us in lows))


@pytest.mark.parametrize(
    ("made", "watermark_us", "lows", "obstacle"),
    [
        (pipeline("forever", "hourly", "busy"), W, [0, None], None),
        (pipeline("1 hour", "hourly", "busy"), None, [0, None], None),
        (pipeline("1 hour", "hourly", "rolling"), W, [0, None], None),
        (pipeline("1 hour", "hourly", "busy"), W, [LATE_BEFORE, W], None),
        (
            pipeline("1 hour", "hourly", "busy"),
            W,
            [LATE_BEFORE - 1, W],
            "6 rows (2.0 MB) are new and some rows may be late; which ones are late for sessions "
            "(busy) depends on all rows of the run",
        ),
        (pipeline("1 hour", "busy"), W, [W, None], "which ones are late for sessions (busy)"),
        (pipeline("forever", "busy", changes="feed"), W, [0], None),
        (pipeline("1 hour", "hourly", changes="feed"), None, [0], None),
        (
            pipeline("1 hour", "hourly", changes="feed"),
            W,
            [W],
            "3 rows (1.0 MB) are new and rows may be late; which of them a change of the source "
            "brings back depends on the batch",
        ),
    ],
)
def test_several_batches_are_made_where_one_would_give_the_same(
    made: Pipeline, watermark_us: int | None, lows: list[int | None], obstacle: str | None
) -> None:
    found = find_obstacle(made, watermark_us, files(*lows), TWO)
    if obstacle is None:
        assert found is None
    else:
        assert found is not None and obstacle in found
        assert found.endswith("raise source.batch, or leave it out for this run")


def test_rows_that_the_log_does_not_tell_bound_nothing() -> None:
    unknown = Backlog((FileFigures(None, 0, 0, 10),))
    made = pipeline("forever", "hourly")
    assert find_obstacle(made, None, unknown, TWO) == (
        "the log of /data/bronze/flights does not say how many rows each file has; "
        "give bytes instead of rows"
    )
    assert find_obstacle(made, None, unknown, BatchBound(rows=2, bytes=5)) is None


def test_progress_is_that_of_the_run_that_is_open() -> None:
    counts = {"read": 4, BATCH_BYTES: 25, "hourly.inserted": 3, "hourly.deleted": 1, "other": 9}
    done = [LedgerEntry(DONE, run=2, batch=n, counts=counts) for n in (1, 2)]
    earlier = [LedgerEntry(DONE, run=1, batch=0, counts=counts), LedgerEntry(CLOSE, run=1)]
    steps = [LedgerEntry(OPEN, run=1), *earlier, LedgerEntry(OPEN, run=2), *done]
    entries = [*steps, LedgerEntry(INTENT, run=2, batch=3)]
    past = LedgerExcerpt(tuple(replace(e, seq=n) for n, e in enumerate(entries)))
    found = measure_progress(past, Bound(10, 9, 200, 40), ["hourly", "rolling"])
    assert (found.batches, found.rows, found.all_rows) == (2, 8, 40)
    assert (found.share, found.windows) == (0.25, 8)
    # The source may have grown since the run began.
    assert measure_progress(past, Bound(10, 9, 40, None), []).share == 1
    # Of a change feed the sizes of files are not known.
    feed = LedgerExcerpt(tuple(replace(e, counts={"read": 4}) for e in past.entries))
    assert measure_progress(feed, Bound(10, 9, 200, 40), []).share == 0.2
    assert measure_progress(feed, Bound(10, 9, 0, None), []).share == 0
    assert measure_progress(LedgerExcerpt(), Bound(10, 9, 5, 5), ["hourly"]).batches == 0
