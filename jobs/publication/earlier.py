"""Which earlier publication is published again, and whether its rows are all still there."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from jobs.diagnosis.pointer import read_pointer
from windowing.doctor.rule import name_command
from windowing.errors import UsageError
from windowing.grid.zone import moment
from windowing.ledger.acceptance import parse_rollback
from windowing.ledger.history import LedgerHistory
from windowing.ledger.rule import EVOLVE_DONE, PERIOD_CLOSED, PERIOD_INTENT, LedgerEntry
from windowing.merge.rule import complete_table
from windowing.report.publications import find_undone
from windowing.report.text import instant_us
from windowing.spec.pipeline import Pipeline
from windowing.storage.control import TableError
from windowing.storage.files import committed_us
from windowing.storage.kept_open import newest_version
from windowing.storage.plain_log import find_file_retention
from windowing.storage.store import store_of
from windowing.storage.version_files import PlainFile, VersionFiles, list_version

_UNDONE = {
    EVOLVE_DONE: "the spec was changed",
    PERIOD_INTENT: "a close was begun",
    PERIOD_CLOSED: "a period was closed",
}


def find_publication(pipeline: Pipeline, past: LedgerHistory, number: int) -> LedgerEntry:
    """The publication of that number; UsageError with those there are where there is none."""
    for entry in past.publications:
        if entry.seq == number:
            return entry
    known = ", ".join(str(entry.seq) for entry in past.publications[-5:]) or "none"
    raise UsageError(
        f"{pipeline.name} has no publication {number}; the last ones are {known}: "
        "see `tidemark publish --list`"
    )


def choose_earlier(pipeline: Pipeline, past: LedgerHistory, number: int | None) -> LedgerEntry:
    """The publication to go back to: that of a number, or the last one of other outputs.

    Without a number it is that of a rollback which was recorded and not shown to readers yet.
    UsageError where there is none, or where an erasure or a change of the spec came after it, which
    must not be undone for readers.
    """
    now = past.published
    if now is None:
        raise UsageError(f"{pipeline.name}: nothing is published yet, so nothing is rolled back")
    begun = parse_rollback(now.note)
    if number is not None:
        chosen = find_publication(pipeline, past, number)
    elif begun is not None and read_pointer(pipeline).step != now.seq:
        chosen = find_publication(pipeline, past, begun.to)
    else:
        all_of_them = past.publications
        earlier = [entry for entry in all_of_them if not has_same_outputs(pipeline, entry, now)]
        if not earlier:
            raise UsageError(f"{pipeline.name} has no publication of other versions")
        chosen = earlier[-1]
    undone = find_undone(past, chosen)
    if undone is not None:
        what = _UNDONE.get(undone.step, "rows were erased")
        raise UsageError(
            f"{pipeline.name}: publication {chosen.seq} can't be published again, because {what} "
            f"since then ({instant_us(undone.at)}); "
            f"{_advise_on_earlier(pipeline, past, now, undone)}"
        )
    return chosen


def _advise_on_earlier(
    pipeline: Pipeline, past: LedgerHistory, now: LedgerEntry, undone: LedgerEntry
) -> str:
    """What can be done where going back to a publication would undo that step."""
    if undone.step in (PERIOD_INTENT, PERIOD_CLOSED):
        reopen = name_command(pipeline, "reopen", "--reason", "REASON")
        return f"release its rows, then roll back: {reopen}"
    others = [each for each in past.publications if not has_same_outputs(pipeline, each, now)]
    possible = [each.seq for each in others if find_undone(past, each) is None]
    if possible:
        words = (f"--rollback {possible[-1]}", "--reason REASON")
        return f"{possible[-1]} can be: {name_command(pipeline, 'publish', *words)}"
    backfill = name_command(pipeline, "backfill")
    return (
        f"none of before can, so repair the rows in the source, {backfill} their event times, "
        "then validate and publish"
    )


def has_same_outputs(pipeline: Pipeline, entry: LedgerEntry, now: LedgerEntry) -> bool:
    """Whether readers see each output that `entry` has in the same version now.

    Versions of state and of refused rows, which runs may change alone, do not count.
    """
    names = [window.name for window in pipeline.windows if window.name in entry.versions]
    return all(entry.versions[name] == now.versions.get(name) for name in names)


def list_outputs_since(
    pipeline: Pipeline, past: LedgerHistory, entry: LedgerEntry
) -> tuple[str, ...]:
    """The outputs that readers see now and that the publication `entry` did not have."""
    shown = {} if past.published is None else past.published.versions
    names = [window.name for window in pipeline.windows]
    return tuple(name for name in names if name in shown and name not in entry.versions)


def list_earlier(
    pipeline: Pipeline, past: LedgerHistory, entry: LedgerEntry
) -> Mapping[str, VersionFiles]:
    """The files of the outputs as they were published.

    UsageError where a version of an output, or of the table with which it is read, is gone or may
    be deleted by the next maintenance, which keeps those that readers use.
    """
    in_use = {} if past.published is None else past.published.versions
    found = {}
    for window in pipeline.windows:
        if window.name not in entry.versions:
            continue
        for table in dict.fromkeys((window.name, complete_table(pipeline, window).path.name)):
            version = entry.versions.get(table)
            if version is None:
                continue
            files = _list_there(pipeline, table, version)
            if files is None:
                raise UsageError(
                    f"{pipeline.name}: publication {entry.seq} can't be read any more, because "
                    f"files of {table}, version {version}, were deleted by maintenance"
                )
            if version != in_use.get(table) and _may_be_deleted(files):
                raise UsageError(
                    f"{pipeline.name}: publication {entry.seq} can't be published again, because "
                    f"maintenance may delete files of {table}, version {version}, at any time"
                )
            if table == window.name:
                found[table] = files
    return found


def _list_there(pipeline: Pipeline, table: str, version: int) -> VersionFiles | None:
    """What a version of a table consists of; None where a file of it is gone."""
    path = pipeline.table(table)
    try:
        found = list_version(path, version)
    except TableError:
        return None
    there = set(store_of(path).list_names(path))
    missing = [*_find_missing(found.files, there)]
    return None if missing else found


def _may_be_deleted(version: VersionFiles) -> bool:
    """Whether a version was replaced so long ago that nothing keeps its files any more.

    By then logs may have forgotten when these were removed, so it would be too late to keep them
    longer.
    """
    path, last = version.table, newest_version(version.table)
    newest = list_version(path, last)
    if {file.original for file in version.files} <= {file.original for file in newest.files}:
        return False
    kept = find_file_retention(newest.settings)
    if kept is None:
        return False
    replaced_us = committed_us(path, version.version + 1)
    return replaced_us is None or datetime.now(UTC) - moment(replaced_us) >= kept


def _find_missing(files: Iterable[PlainFile], there: set[str]) -> Iterator[PlainFile]:
    for file in files:
        if (
            file.original.name not in there
            and store_of(file.original).identify(file.original) is None
        ):
            yield file
