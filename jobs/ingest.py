"""Takes the files that have landed into the source table of a pipeline, each record once.

lock -> interrupted batch fenced off -> for each batch: record of files -> quarantine -> source
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from jobs.landing.batch import MOST_NAMES, take_batch
from jobs.landing.look import Look, check_columns, files_of, keeper_of, look, refuse_changed
from jobs.locking import lock
from jobs.locking.lock_file import held_here
from jobs.sessions.exact_session import in_exact_session
from windowing.crash import crashpoint
from windowing.errors import UsageError
from windowing.grid.zone import micros
from windowing.ingest import table
from windowing.ingest.rule import Standing, cut_batches
from windowing.ingest.table import TakenFile
from windowing.spec.pipeline import Pipeline


@dataclass(frozen=True)
class Ingestion:
    """What an ingest has taken. Every record that was read became a row, or was quarantined.

    `others` are files of the folder that are not of its format. `columns` is the file that pins
    columns where it was written now, and `added` are columns that were added to it. `not_pinned`
    are at most 1,000 names of values that are in `rescued` because they are not pinned, those of
    fields with points between.
    """

    files: tuple[TakenFile, ...] = ()
    others: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    columns: str | None = None
    not_pinned: tuple[str, ...] = ()

    @property
    def appended(self) -> int:
        """How many rows the source table has more."""
        return sum(file.rows for file in self.files)

    @property
    def quarantined(self) -> int:
        """How many records are no rows."""
        return sum(file.quarantined for file in self.files)

    @property
    def read(self) -> int:
        """How many records the files have."""
        return self.appended + self.quarantined

    def as_json(self) -> dict[str, object]:
        """The result as plain JSON values."""
        return {
            "files": len(self.files),
            "read": self.read,
            "appended": self.appended,
            "quarantined": self.quarantined,
            "others": list(self.others),
            "added": list(self.added),
            "columns": self.columns,
            "not_pinned": list(self.not_pinned),
        }


def find_nothing_new(pipeline: Pipeline) -> Ingestion | None:
    """The result where there is nothing to take, which is known without a JVM; None elsewhere.

    Raises as `ingest` does.
    """
    found = look(pipeline)
    if found.standing is Standing.WHOLE:
        refuse_changed(pipeline, found.landing)
    check_columns(files_of(pipeline))
    return Ingestion(others=found.landing.others) if found.is_idle else None


def keep_taken(pipeline: Pipeline) -> tuple[str, ...]:
    """Records files that have changed since they were taken as they are now, and names them.

    Nothing of them is taken again. Raises as `ingest` does, and UsageError where an interrupted
    ingest is to be finished first.
    """
    at_us = micros(datetime.now(UTC))
    with held_here(keeper_of(pipeline)):
        found = look(pipeline)
        changed = found.landing.changed
        if not changed:
            return ()
        if found.standing is not Standing.WHOLE:
            raise UsageError(
                f"{pipeline.name}: an ingest was interrupted; run `tidemark ingest "
                f"{pipeline.file or pipeline.name}` once before changed files are recorded"
            )
        kept = [TakenFile(file, 0, 0) for file in changed]
        table.record_files(pipeline.source.table, found.record, found.record.batch, kept, at_us)
        return tuple(file.name for file in changed)


@in_exact_session
def ingest(
    spark: SparkSession,
    pipeline: Pipeline,
    now: datetime | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Ingestion:
    """Appends the records of all new files to the source table, each once, and says how many.

    Records that are no rows are stored beside it, with file and reason. An interrupted ingest is
    finished by the next one, which repeats nothing. `now` (aware) stands for the host clock.
    `progress` is called with (files done, all files).

    Raises UsageError, SpecError and Busy, and StateRefused where a file was written again after it
    was taken, or where the record of files and the table do not fit; nothing is taken then.
    """
    at_us = micros(now or datetime.now(UTC))
    files = files_of(pipeline)
    source = pipeline.source.table
    taken: list[TakenFile] = []
    added: list[str] = []
    columns: str | None = None
    not_pinned: set[str] = set()
    with lock.writer(spark, keeper_of(pipeline)):
        table.drop_leftovers(source)
        found = _finish_interrupted(spark, pipeline, at_us)
        refuse_changed(pipeline, found.landing)
        record = found.record
        for landed in cut_batches(found.landing.new):
            batch = take_batch(spark, source, files, record, landed, at_us)
            taken += batch.files
            added += batch.pinned.added
            not_pinned.update(batch.not_pinned)
            columns = files.columns.text if batch.pinned.is_new else columns
            record = table.read_record(source)
            progress(len(taken), len(found.landing.new))
        if taken:
            table.compact_record(source)
    told = tuple(sorted(not_pinned)[:MOST_NAMES])
    return Ingestion(tuple(taken), found.landing.others, tuple(added), columns, told)


def _finish_interrupted(spark: SparkSession, pipeline: Pipeline, at_us: int) -> Look:
    """What there is to take, once a batch that was interrupted can't be committed any more.

    Its files are new ones then.
    """
    found = look(pipeline)
    source, batch = pipeline.source.table, found.record.batch
    if found.standing is Standing.WHOLE:
        return found
    if found.standing is Standing.OPEN:
        table.fence_batch(spark, source, batch)
    crashpoint("ingest.fenced")
    table.withdraw_quarantined(spark, source, batch)
    crashpoint("ingest.withdrawn")
    table.void_batch(source, batch, at_us)
    crashpoint("ingest.voided")
    return look(pipeline)
