"""What the history of a source says about the watermark. No lock, and nothing is written.

log and rows of the source -> its events, commit by commit -> how late they are, what settings would
have caught and cost -> a proposal
"""

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import SparkSession

from jobs.sessions.exact_session import exact_session
from windowing.advise.advice import Advice, Wanted
from windowing.advise.analysis import advise_watermark
from windowing.advise.reading import Asked, NeedsSpark
from windowing.advise.table import read_events, read_events_by_spark
from windowing.doctor.rule import name_command
from windowing.ledger.table import LEDGER
from windowing.spec.pipeline import Pipeline
from windowing.storage.control import errors_explained
from windowing.storage.kept_open import has_commit


def advise(
    pipeline: Pipeline, asked: Asked, wanted: Wanted, open_session: Callable[[], SparkSession]
) -> Advice:
    """How late the events of the source arrive, and which watermark settings follow from that.

    `asked` are the events to read, and `wanted` is what a proposal is to achieve. A session is
    opened only for a source whose rows need Spark: with computed columns, `where`, event times as
    text, or a name in Spark's catalog. Where nothing can be told, such as for a source of one
    commit, `unknown` of the advice says what is needed. Raises SourceMissing, SpecError, and
    UsageError where events happen when they arrive or `asked` names no column.
    """
    try:
        reading = read_events(pipeline, asked)
    except NeedsSpark:
        reading = read_events_by_spark(exact_session(open_session()), pipeline, asked)
    return _note_state(pipeline, advise_watermark(pipeline, reading, wanted))


def _note_state(pipeline: Pipeline, advice: Advice) -> Advice:
    """The advice with a note where there is state, which the proposed watermark can't go on from.

    Where nothing can be told, nothing is proposed.
    """
    present, proposed = advice.present, advice.proposed
    if present is None or proposed is None or present.settings == proposed.settings:
        return advice
    ledger = pipeline.table(LEDGER)
    with errors_explained(ledger):
        has_state = has_commit(ledger)
    if not has_state:
        return advice
    note = (
        "the pipeline has run, and its watermark can't change any more: give the proposal to a "
        f"pipeline with a new name, or {name_command(pipeline, 'reset')} first"
    )
    return replace(advice, notes=(*advice.notes, note))
