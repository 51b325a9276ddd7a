"""How far a run of several batches is, in words."""

import pytest

from jobs.cli.progress import Pace, describe_progress, watch_batches
from windowing.report.progress import RunProgress


@pytest.mark.parametrize(
    ("progress", "left_s", "text"),
    [
        (RunProgress(0, 0, 3_000_000, 0, 0), None, "0 of 3,000,000 rows read in 0 batches (0%)"),
        (
            RunProgress(1, 200_000, 3_000_000, 0.066, 1),
            44.4,
            "200,000 of 3,000,000 rows read in 1 batch (7%), 1 row of outputs changed, "
            "about 44 seconds left",
        ),
        (
            RunProgress(6, 1_200_000, None, 0.4, 3_311),
            5_400,
            "1,200,000 rows read in 6 batches (40%), 3,311 rows of outputs changed, "
            "about 1 hour 30 minutes left",
        ),
        (
            RunProgress(15, 3, 3, 1.0, 9),
            0.0,
            "3 of 3 rows read in 15 batches (100%), 9 rows of outputs changed",
        ),
        (
            RunProgress(1, 3, 6, 0.5, 0),
            0.2,
            "3 of 6 rows read in 1 batch (50%), 0 rows of outputs changed, about 1 second left",
        ),
    ],
)
def test_progress_says_how_many_of_how_many_and_the_time_left(
    progress: RunProgress, left_s: float | None, text: str
) -> None:
    assert describe_progress(progress, left_s) == text


def test_the_time_left_follows_from_what_this_process_has_read() -> None:
    pace = Pace()
    # Half of it was read before the process that did was killed.
    assert pace.estimate_left(0.5, 100.0) is None
    assert pace.estimate_left(0.5, 103.0) is None
    assert pace.estimate_left(0.75, 110.0) == 10
    assert pace.estimate_left(1.0, 120.0) == 0


def test_without_a_terminal_each_batch_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with watch_batches("orders") as watch:
        watch(RunProgress(1, 3, 6, 0.5, 2))
    assert capsys.readouterr() == (
        "",
        "orders: 3 of 6 rows read in 1 batch (50%), 2 rows of outputs changed\n",
    )
