"""Which tasks Airflow tries again: what the exit code of a command decides."""

import logging
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
    """Retries exit code 75 until the lock is free, 2, 3 and 4 never, others up to a third one."""

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
        code = process.returncode if process else None
        if code == BUSY or code in FINAL:
            return decide_retry(code, failures=0)
        store: Any = context["task_state_store"]
        return decide_retry(code, _count_failure(store, try_number, max_tries))


def _count_failure(store: Any, try_number: int, max_tries: int) -> int:
    """How many tries have ended unexpectedly, this one included.

    Where Airflow keeps no state of a task, all of its tries count.
    """
    # Airflow keeps the state of a task that is cleared, and raises `max_tries` then.
    key = f"failures_{max_tries}"
    try:
        failures = int(store.get(key, 0)) + 1
        store.set(key, failures)
    # Without a decision Airflow would try the task again and again.
    except Exception:
        logging.getLogger(__name__).exception("no count of the tries that have failed")
        return try_number
    return failures


def decide_retry(exit_code: int | None, failures: int) -> RetryDecision:
    """Whether a command's task is retried after so many tries that ended unexpectedly.

    The exit code is None if the command didn't end by itself.
    """
    if exit_code == BUSY:
        return RetryDecision.retry(RETRY_DELAY, "another writer holds the pipeline")
    if exit_code in FINAL:
        return RetryDecision.fail(FINAL[exit_code])
    if failures < UNEXPECTED_TRIES:
        return RetryDecision.retry(RETRY_DELAY, f"exit code {exit_code}")
    return RetryDecision.fail(f"exit code {exit_code}, as failure number {failures}")
