"""Closes a period of the outputs, so that rows which end in it never change, and reopens it.

lock -> interrupted steps finished -> intent -> outputs -> done
"""

from datetime import datetime

from pyspark.sql import SparkSession

from jobs.locking import lock
from jobs.publication.changed import find_first_changed_end
from jobs.publication.editions import list_editions
from jobs.recompute.periods import begin_period, frozen_windows
from jobs.recompute.resume import finish_all
from jobs.sessions.exact_session import in_exact_session
from windowing.errors import UsageError
from windowing.grid.zone import micros, moment
from windowing.ledger.history import LedgerHistory
from windowing.ledger.period import Period, Reopening, read_step
from windowing.ledger.rule import LedgerExcerpt
from windowing.ledger.table import read_history
from windowing.report.periods import ClosedPeriod, ReopenedPeriod
from windowing.report.rule import read_changed
from windowing.report.text import instant_us
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import join_names
from windowing.storage.kept_open import newest_version


@in_exact_session
def close_period(
    spark: SparkSession, pipeline: Pipeline, until: datetime, reason: str
) -> ClosedPeriod:
    """Freezes every row of the outputs whose window ends at or before `until` (aware).

    What would change one of these rows is stated beside it from now on, and `reopen_period` applies
    it. An interrupted step is finished first. A later `until` than that of a closed period moves it
    forward. Raises UsageError where no window can be frozen, before anything was computed, while an
    erase is interrupted, where the watermark has not reached `until`, where readers see another row
    that would be frozen, where a later period is closed, or without a reason; all else as `run`
    does.
    """
    until_us = micros(until)
    _check_reason(reason, "close")
    with lock.writer(spark, pipeline):
        before = read_history(pipeline)
        past = finish_all(spark, pipeline)
        check_close(pipeline, past, until_us)
        closed = past.period
        changed = closed is None or closed.until_us != until_us
        if changed:
            check_published(pipeline, past, until_us)
            past = begin_period(spark, pipeline, past, Period(until_us, reason))
        period = past.period or Period(until_us, reason)
        names = {window.name for window in frozen_windows(pipeline)}
        others = tuple(w.name for w in pipeline.windows if w.name not in names)
        frozen = {name: each.rows for name, each in period.frozen.items()}
        published = None if past.published is None else past.is_published
        changed = changed or was_begun(before, until_us)
        return ClosedPeriod(until, period.reason, frozen, others, published, changed)


def check_close(pipeline: Pipeline, past: LedgerExcerpt, until_us: int) -> None:
    """Raises UsageError where `past` can't be closed until then."""
    name = pipeline.name
    if not frozen_windows(pipeline):
        names = join_names(window.name for window in pipeline.windows)
        raise UsageError(
            f"{name}: there is nothing to close, because rows of {names} are never frozen; "
            "that is so for global, count, delta and punctuation windows, and with emit: changes"
        )
    if past.newest is None or past.watermark is None:
        raise UsageError(
            f"{name}: nothing was computed yet, so there is nothing to close; `tidemark run` first"
        )
    if past.open_erasure is not None:
        raise UsageError(
            f"{name}: an erase was interrupted, and a close would freeze what it still has to "
            "delete; rerun `tidemark erase` with the same key or value, then close"
        )
    if until_us > past.watermark:
        raise UsageError(
            f"{name}: the watermark is {instant_us(past.watermark)}, so windows until "
            f"{instant_us(until_us)} are not complete; close until the watermark at most"
        )
    closed = past.period
    if closed is not None and closed.until_us > until_us:
        raise UsageError(
            f"{name} is closed until {instant_us(closed.until_us)} already, and a "
            "close only moves forward; `tidemark reopen` it first"
        )


def check_published(pipeline: Pipeline, past: LedgerHistory, until_us: int) -> None:
    """Raises UsageError where readers see another row that ends until then than the newest one.

    Rows are frozen as they were published. A pipeline that was never published has readers of its
    outputs alone.
    """
    if past.published is None:
        return
    shown = past.published.versions
    left = {} if past.newest is None else past.newest.versions
    # Behind the newest step maintenance alone comes, and rows that it has expired are not frozen.
    windows = [
        window
        for window in frozen_windows(pipeline)
        if window.name not in shown or shown[window.name] != left.get(window.name)
    ]
    newest = {each.name: newest_version(pipeline.table(each.name)) for each in windows}
    editions = list_editions(pipeline, newest)
    differing = []
    for window in windows:
        seen = shown.get(window.name)
        first_us = find_first_changed_end(pipeline, window, seen, editions[window.name])
        if first_us is not None and first_us <= until_us:
            differing.append(window.name)
    if differing:
        names = join_names(differing)
        raise UsageError(
            f"{pipeline.name}: readers do not see the newest rows of {names} that end until "
            f"{instant_us(until_us)}, and a close would freeze these; `tidemark validate` and "
            "`tidemark publish` first, then close"
        )


def was_begun(before: LedgerExcerpt, until_us: int | None) -> bool:
    """Whether a close until then was interrupted, or with None a reopening."""
    begun = before.open_period
    if begun is None or begun.note is None:
        return False
    step = read_step(begun.note)
    return until_us == (step.until_us if isinstance(step, Period) else None)


@in_exact_session
def reopen_period(spark: SparkSession, pipeline: Pipeline, reason: str) -> ReopenedPeriod:
    """Releases every frozen row: outputs become what they would be if nothing had been closed.

    An interrupted step is finished first; where that is a reopening, nothing more is done, and what
    it has changed is not counted. Nothing is changed where nothing is closed. Raises UsageError
    without a reason, and else as `run` does.
    """
    _check_reason(reason, "reopen")
    with lock.writer(spark, pipeline):
        before = read_history(pipeline)
        past = finish_all(spark, pipeline)
        if past.period is None:
            finished = before.period if was_begun(before, None) else None
            return ReopenedPeriod(None if finished is None else moment(finished.until_us), {})
        until = moment(past.period.until_us)
        past = begin_period(spark, pipeline, past, Reopening(reason))
        counts = past.entries[-1].counts
        windows = {w.name: read_changed(counts, w.name) for w in frozen_windows(pipeline)}
        return ReopenedPeriod(until, windows)


def _check_reason(reason: str, command: str) -> None:
    if not reason.strip():
        raise UsageError(f"the reason is empty; say why you {command} the period")
