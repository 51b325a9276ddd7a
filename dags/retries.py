"""Which tasks Airflow tries again: what the exit code of a command decides."""

from datetime import timedelta
from typing import Any

from airflow.sdk import Context, RetryDecision, RetryPolicy

BUSY = 75
RETRIES = 120
UNEXPECTED_TRIES = 3
RETRY_DELAY = timedelta(seconds=30)
LOST_DELAY = timedelta(seconds=5)
"""The pause before a task whose process Airflow has lost, so that no exit code says what to do."""
FINAL = {
    2: "the spec, its arguments or the source table are wrong; the last lines of the log say which",
    3: (
        "expectations failed, so nothing was published; "
        "`tidemark publish SPEC --accept REASON` publishes all the same. "
        "Of a backfill that checks: it would change something"
    ),
    4: "source, spec and state are not consistent; the last lines of the log name the difference",
}
"""Exit codes that a retry can't change, and what to do about each."""


class ByExitCode(RetryPolicy):
    """Retries exit code 75 until the lock is free, 2, 3 and 4 never, others up to three tries."""

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,
        max_tries: int,
        context: Context | None = None,
    ) -> RetryDecision:
        """The decision for the command that `context`'s task has just run."""
        if not context:
            return decide_retry(None, try_number)
        # A task that runs a command keeps its process, so the exit code is read from there.
        ran: Any = context["task"]
        process = ran.subprocess_hook.sub_process
        return decide_retry(process.returncode if process else None, try_number)


def decide_retry(exit_code: int | None, try_number: int) -> RetryDecision:
    """Whether a command's task is retried after its try `try_number`, counted from 1.

    The exit code is None if the command didn't end by itself.
    """
    if exit_code == BUSY:
        return RetryDecision.retry(RETRY_DELAY, "another writer holds the pipeline")
    if exit_code in FINAL:
        return RetryDecision.fail(FINAL[exit_code])
    if try_number < UNEXPECTED_TRIES:
        return RetryDecision.retry(RETRY_DELAY, f"exit code {exit_code}")
    return RetryDecision.fail(f"exit code {exit_code} on try {try_number}")
