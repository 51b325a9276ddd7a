"""What lies in the folder of a pipeline and was not taken yet, which is known without a JVM."""

from dataclasses import dataclass, replace

from windowing.errors import StateRefused, UsageError
from windowing.ingest import table
from windowing.ingest.columns import read_columns
from windowing.ingest.rule import (
    HOME,
    LandedFile,
    Landing,
    Standing,
    compare_files,
    describe_names,
    judge_standing,
)
from windowing.ingest.table import Record
from windowing.location import Location
from windowing.source.managed import managed_refused
from windowing.spec.pipeline import Files, Pipeline
from windowing.storage.files import has_commit
from windowing.storage.landed_files import has_folder, list_landed
from windowing.storage.store import store_of

_MICROS = 1_000_000


@dataclass(frozen=True)
class Look:
    """The record of files, how it fits the source table, and what lies in the folder."""

    record: Record
    standing: Standing
    landing: Landing

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to take and nothing to finish."""
        return self.standing is Standing.WHOLE and not self.landing.new


def files_of(pipeline: Pipeline) -> Files:
    """The files that land for a pipeline; UsageError where its spec names none."""
    if pipeline.source.files is None:
        raise UsageError(
            f"{pipeline.file or pipeline.name}: the spec has no source.files; write there in which "
            "folder files land, as in files: {folder: ../drop}"
        )
    return pipeline.source.files


def keeper_of(pipeline: Pipeline) -> Pipeline:
    """The pipeline with the directory of its source's ingest as its own.

    Its lock is that of all pipelines with the same source table.
    """
    return replace(pipeline, lake=pipeline.source.table, name=HOME)


def look(pipeline: Pipeline) -> Look:
    """What there is to take; StateRefused where record and table do not fit.

    The files of a batch that was interrupted are new ones.
    """
    files = files_of(pipeline)
    if not has_folder(files.folder):
        raise UsageError(
            f"{pipeline.file or pipeline.name}: source.files.folder: {files.folder} is no "
            "directory; make it"
        )
    source = pipeline.source.table
    record = table.read_record(source)
    with managed_refused(pipeline):
        committed = table.find_committed(source)
    standing = judge_standing(record.batch, committed, is_void=record.is_void)
    if record.batch and not has_commit(source):
        # A table is created before any file is recorded.
        standing = Standing.TABLE_BEHIND
    _refuse_standing(source, record, committed, standing)
    taken = record.taken if standing is Standing.WHOLE else record.before
    return Look(record, standing, compare_files(list_files(files.folder), taken, files.format))


def list_files(folder: Location) -> list[LandedFile]:
    """All files below a folder as they are now."""
    return [
        LandedFile(name, found.bytes, round(found.written_s * _MICROS))
        for name, found in list_landed(folder).items()
    ]


def _refuse_standing(source: Location, record: Record, committed: int, standing: Standing) -> None:
    home = table.home_of(source)
    counts = (
        f"{home} has a record of {record.batch:,} batches of files, and {source} has "
        f"{committed // 2:,}"
    )
    if standing is Standing.RECORD_BEHIND:
        raise StateRefused(
            "FILES_FORGOTTEN", f"{counts}, so files would be taken twice; restore the record"
        )
    if standing is Standing.TABLE_BEHIND:
        # Of a table that has batches left, files would be taken twice without the record.
        other = "" if committed else f", or delete {home} to take every file of the folder again"
        raise StateRefused("ROWS_LOST", f"{counts}, so rows are missing; restore the table{other}")


def check_columns(files: Files) -> None:
    """Raises SpecError where the file that pins columns is wrong, as far as this needs no JVM."""
    if store_of(files.columns).read(files.columns) is not None:
        read_columns(files.columns.text)


def refuse_changed(pipeline: Pipeline, landing: Landing) -> None:
    """StateRefused where a file is not the one that was taken under its name."""
    if landing.changed:
        names = describe_names([file.name for file in landing.changed])
        is_one = len(landing.changed) == 1
        differ = "is not the file of that name" if is_one else "are not the files of these names"
        raise StateRefused(
            "FILE_CHANGED",
            f"{names} in {files_of(pipeline).folder} {differ} taken before, by size or time, so "
            "nothing was taken; give new records a file with a name of its own, or run "
            f"`tidemark ingest {pipeline.file or pipeline.name} --keep-taken`, which takes nothing "
            "of such files again",
        )
