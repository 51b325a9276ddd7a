"""How a pipeline stands, by its ledger and its newest validation. No Spark, no lock."""

from datetime import UTC, datetime

from expectations.table import read_judgement
from jobs.foreign_errors.control_errors import control_errors_explained
from jobs.locking.lock_file import find_writer
from windowing.ledger.table import read_history
from windowing.report.status import Status, describe_status
from windowing.report.text import left_open
from windowing.spec.pipeline import Pipeline


def status(pipeline: Pipeline, now: datetime | None = None) -> Status:
    """How the pipeline stands at `now` (aware), or now by the host clock where it is None.

    Before the first run nearly all of it is empty. Nothing is written, and no lock is taken. Raises
    StateRefused where the ledger is damaged, and UsageError where the lake can't be read.
    """
    at = now or datetime.now(UTC)
    with control_errors_explained(pipeline):
        past = read_history(pipeline)
        judged = read_judgement(pipeline, past)
    # Without an open step nothing depends on who holds the lock, and on S3 it is a request.
    writer = find_writer(pipeline) if left_open(past) else None
    return describe_status(pipeline, past, judged, None if writer is None else str(writer), at)
