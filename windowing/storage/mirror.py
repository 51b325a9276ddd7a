"""A table that shows chosen versions of another one, as plain files and with a change feed.

A mirror has the files of the version that it shows, shared where the storage can share them. The
change feed of its next commit is the difference between two shown versions, however many commits
the original had in between. No Spark.
"""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace

import pyarrow as pa
from deltalake import Schema

from windowing.crash import crashpoint
from windowing.location import Location
from windowing.storage import plain_table, row_changes
from windowing.storage.commit_file import (
    CHANGES,
    Action,
    DataFile,
    add_file,
    create_commit,
    note_transaction,
    remove_file,
    render_actions,
    tell_changes,
    without_change,
    write_data_file,
)
from windowing.storage.control import (
    TableError,
    commit_actions,
    compose_creation,
    errors_explained,
)
from windowing.storage.file_rows import read_file_as
from windowing.storage.footers import ParquetFile, read_footer
from windowing.storage.kept_open import has_commit, note_version
from windowing.storage.log_lines import parse_actions
from windowing.storage.next_commit import check_next, choose_pruned
from windowing.storage.plain_table import PlainTable
from windowing.storage.row_changes import RowChanges, compare_rows
from windowing.storage.store import store_of
from windowing.storage.table_properties import (
    CHANGE_FEED,
    CHECKPOINT_INTERVAL,
    LONG_KEPT_FILES,
    WITH_STATISTICS,
    is_true,
)
from windowing.storage.version_changes import find_told_changes
from windowing.storage.version_files import (
    PlainFile,
    VersionFiles,
    list_version,
    name_rewritten,
    read_plain,
    write_plain,
)

_AT_ONCE = 8
OPERATION = "PUBLISH"
"""The operation that the history of a mirror shows."""
_TAKEN = (WITH_STATISTICS, CHECKPOINT_INTERVAL, CHANGE_FEED)
"""The properties that a mirror has of its original."""


@dataclass(frozen=True)
class Shown:
    """Which version of its original a mirror shows, and since which number of an edition."""

    number: int
    version: int


@dataclass(frozen=True)
class Mirror:
    """Where a mirror lies, who commits to it, and the columns that distinguish its rows.

    Without such columns all that can be compared distinguish them.
    """

    home: Location
    application: str
    identity: Sequence[str]

    @property
    def of_versions(self) -> str:
        """Under what name the log has the version of the original."""
        return f"{self.application}:version"


def show_version(mirror: Mirror, wanted: VersionFiles, number: int) -> None:
    """Makes a mirror show a version of its original under a number, in one commit.

    Nothing is done where it does so already. So it can be called again wherever it failed, and
    makes no change twice. Busy where another commit comes first. TableError with the path of the
    mirror or of its original, whichever is damaged.
    """
    with errors_explained(mirror.home):
        opened = _open(mirror)
        if opened is None:
            _create(mirror, wanted, number)
            return
        if not _shows(mirror, opened, wanted, number):
            _advance(mirror, opened, wanted, number)


def share_layout(mirror: Mirror, wanted: VersionFiles) -> bool:
    """Makes a mirror have the files of a version with the rows that it shows already.

    Returns whether it does; a version with other rows is left alone.
    """
    with errors_explained(mirror.home):
        opened = _open(mirror)
        shown = None if opened is None else _read_shown(mirror, opened)
        if opened is None or shown is None:
            return False
        edition = _compare(mirror, opened, wanted)
        if not edition.gone or edition.changes is None or edition.changes.count:
            return False
        fresh = _bring_all(mirror, edition.missing, wanted, edition.there)
        _commit(mirror, opened, edition, fresh, Shown(shown.number, wanted.version))
        return True


def has_rows(mirror: Mirror, wanted: VersionFiles) -> bool:
    """Whether a mirror has just the rows of a version; not where that is too much to be compared.

    No file is brought and nothing is committed.
    """
    with errors_explained(mirror.home):
        opened = _open(mirror)
        if opened is None:
            return False
        edition = _list_edition(mirror, opened, wanted)
        if not edition.gone or not edition.missing:
            return not edition.gone and not edition.missing
        changes = _find_changes(mirror, opened, edition)
        return changes is not None and not changes.count


@dataclass(frozen=True)
class _Edition:
    """What a commit is to make of a mirror: files that come and go, and the rows that differ.

    `there` are the files that it has by their names, and `missing` those that have to be brought.
    `changes` is None where readers of the feed learn them from the files themselves.
    """

    wanted: VersionFiles
    there: Mapping[str, DataFile]
    missing: tuple[PlainFile, ...]
    gone: tuple[DataFile, ...]
    changes: RowChanges | None


def _open(mirror: Mirror) -> PlainTable | None:
    return plain_table.open_plain(mirror.home) if has_commit(mirror.home) else None


def _read_shown(mirror: Mirror, opened: PlainTable) -> Shown | None:
    number = opened.table.transaction_version(mirror.application)
    version = opened.table.transaction_version(mirror.of_versions)
    return None if number is None or version is None else Shown(number, version)


def _create(mirror: Mirror, wanted: VersionFiles, number: int) -> None:
    check_next(mirror.home, 0)
    fresh = _bring_all(mirror, [file for file in wanted.files if file.rows], wanted, {})
    crashpoint("publish.shared")
    settings = _choose_settings(wanted.settings)
    made = compose_creation(Schema.from_json(wanted.schema_json), settings)
    actions = [
        *_note(mirror, Shown(number, wanted.version)),
        *_add(fresh, choose_pruned(settings, wanted.schema.names)),
    ]
    create_commit(mirror.home, 0, made + render_actions(actions))
    note_version(mirror.home, 0)
    crashpoint("publish.shown")


def _advance(mirror: Mirror, opened: PlainTable, wanted: VersionFiles, number: int) -> None:
    edition = _compare(mirror, opened, wanted)
    fresh = _bring_all(mirror, edition.missing, wanted, edition.there)
    crashpoint("publish.shared")
    _commit(mirror, opened, edition, fresh, Shown(number, wanted.version))
    crashpoint("publish.shown")


def _compare(mirror: Mirror, opened: PlainTable, wanted: VersionFiles) -> _Edition:
    """What is known before any file is brought."""
    edition = _list_edition(mirror, opened, wanted)
    # Where files only come or only go, so do all of their rows.
    if edition.gone and edition.missing and _has_feed(wanted):
        return replace(edition, changes=_find_changes(mirror, opened, edition))
    return edition


def _list_edition(mirror: Mirror, opened: PlainTable, wanted: VersionFiles) -> _Edition:
    """The files that come and go; which rows differ is not looked for."""
    there = _list_there(mirror, opened)
    kept = _name_files(wanted, there)
    gone = tuple(file for name, file in there.items() if name not in kept)
    files = [file for file in wanted.files if file.rows]
    missing = tuple(file for file in files if _find_name(file, there) not in there)
    return _Edition(wanted, there, missing, gone, None)


def _find_changes(mirror: Mirror, opened: PlainTable, edition: _Edition) -> RowChanges | None:
    """The rows that differ; None where they are too many, or of other types."""
    wanted, gone, missing = edition.wanted, edition.gone, edition.missing
    if not _has_same_types(opened, wanted):
        return None
    told = _find_told(mirror, opened, wanted, edition.there)
    if told is not None:
        return told
    if not _are_few(mirror, gone, missing):
        return None
    old = [read_file_as(mirror.home / file.name, wanted.schema) for file in gone]
    with errors_explained(wanted.table):
        new = [read_plain(file, wanted.schema) for file in missing]
    identity = _choose_identity(mirror, wanted.schema)
    return compare_rows(pa.concat_tables(old), pa.concat_tables(new), identity)


def _shows(mirror: Mirror, opened: PlainTable, wanted: VersionFiles, number: int) -> bool:
    """Whether a mirror shows the rows of a version under that number.

    A lake that was restored in parts may give them to others again, so its files count, too.
    """
    shown = _read_shown(mirror, opened)
    if shown is None or shown.number != number:
        return False
    there = _list_there(mirror, opened)
    if shown.version == wanted.version:
        return _name_files(wanted, there) == there.keys()
    changes = _find_told(mirror, opened, wanted, there)
    return changes is not None and not changes.count


def _name_files(version: VersionFiles, there: Mapping[str, DataFile]) -> set[str]:
    """The names in a mirror of all files of a version that have rows."""
    return {_find_name(file, there) for file in version.files if file.rows}


def _list_there(mirror: Mirror, opened: PlainTable) -> dict[str, DataFile]:
    found = plain_table.list_files(opened, {})
    if found is None:
        raise TableError(mirror.home, "it has files that lie elsewhere")
    return {file.name: file for file in found}


def _find_name(file: PlainFile, there: Mapping[str, DataFile]) -> str:
    """The name of a file in a mirror that has it, and otherwise in the original."""
    rewritten = name_rewritten(file)
    return rewritten if rewritten in there else file.name


def _bring_all(
    mirror: Mirror,
    files: Sequence[PlainFile],
    wanted: VersionFiles,
    there: Mapping[str, DataFile],
) -> tuple[ParquetFile, ...]:
    """`_bring` of several files. Where each is a request or two, several are made at once."""
    if mirror.home.is_local or len(files) < _AT_ONCE:
        return tuple(_bring(mirror, file, wanted, there) for file in files)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        # Each has a copy of the caller's context, which knows of the lock.
        running = [
            pool.submit(copy_context().run, _bring, mirror, file, wanted, there) for file in files
        ]
    return tuple(done.result() for done in running)


def _bring(
    mirror: Mirror, file: PlainFile, wanted: VersionFiles, there: Mapping[str, DataFile]
) -> ParquetFile:
    """Puts a file where the mirror lies. No commit names it yet."""
    target = mirror.home / _find_name(file, there)
    if file.kept is not None:
        return write_plain(file, wanted, target)
    with errors_explained(wanted.table):
        described = read_footer(file.original)
    if not described.plain:
        return write_plain(file, wanted, mirror.home / name_rewritten(file))
    with errors_explained(wanted.table):
        store_of(target).copy(file.original, target)
    return replace(described, path=target)


def _are_few(mirror: Mirror, gone: Sequence[DataFile], missing: Sequence[PlainFile]) -> bool:
    """Whether the rows of these files can be compared at once.

    Otherwise readers of the feed learn that all rows of the files that are gone were deleted, and
    all rows of the new ones inserted.
    """
    before = sum(read_footer(mirror.home / file.name).rows for file in gone)
    return before + sum(file.rows for file in missing) <= row_changes.MOST_ROWS


def _find_told(
    mirror: Mirror, opened: PlainTable, wanted: VersionFiles, there: Mapping[str, DataFile]
) -> RowChanges | None:
    """The difference by what the commits of the original tell.

    None where they don't tell it, or the mirror has not the files of the version that it shows.
    """
    shown = _read_shown(mirror, opened)
    if shown is None:
        return None
    try:
        before = list_version(wanted.table, shown.version)
    except (TableError, OSError):
        # Maintenance deletes older commits.
        return None
    if _name_files(before, there) != there.keys():
        return None
    return find_told_changes(before, wanted, _choose_identity(mirror, wanted.schema))


def _choose_identity(mirror: Mirror, schema: pa.Schema) -> Sequence[str]:
    simple = [column.name for column in schema if not pa.types.is_nested(column.type)]
    return mirror.identity or simple


def _commit(
    mirror: Mirror,
    opened: PlainTable,
    edition: _Edition,
    fresh: Sequence[ParquetFile],
    shown: Shown,
) -> None:
    wanted, changes = edition.wanted, edition.changes
    settings = {**opened.table.metadata().configuration, **_choose_settings(wanted.settings)}
    pruned = choose_pruned(settings, wanted.schema.names)
    files = [*map(remove_file, edition.gone), *_add(fresh, pruned)]
    if changes is not None and changes.count:
        written = write_data_file(mirror.home / CHANGES, changes.tell_feed())
        files.append(tell_changes(written))
    elif changes is not None:
        files = [without_change(action) for action in files]
    described = _describe_again(opened, wanted, settings)
    actions = [*described, *_note(mirror, shown), *files]
    with errors_explained(opened.path):
        commit_actions(opened.path, opened.table, OPERATION, actions)


def _describe_again(
    opened: PlainTable, wanted: VersionFiles, settings: Mapping[str, str]
) -> list[Action]:
    """The lines that give a mirror other columns or properties; none where it has these."""
    metadata = opened.table.metadata()
    has_columns = json.loads(opened.schema_json) == json.loads(wanted.schema_json)
    if has_columns and dict(metadata.configuration) == dict(settings):
        return []
    made = compose_creation(Schema.from_json(wanted.schema_json), settings)
    lines = parse_actions(made.decode())
    described: list[Action] = [line for line in lines if "protocol" in line or "metaData" in line]
    for line in lines:
        if "metaData" in line:
            line["metaData"]["id"] = str(metadata.id)
    return described


def _has_same_types(opened: PlainTable, wanted: VersionFiles) -> bool:
    """Whether the columns that both have are of the same types."""
    stored, types = opened.schema, wanted.schema
    return all(
        stored.field(each.name).type == each.type for each in types if each.name in stored.names
    )


def _has_feed(wanted: VersionFiles) -> bool:
    return is_true(wanted.settings.get(CHANGE_FEED))


def _choose_settings(settings: Mapping[str, str]) -> dict[str, str]:
    return {name: settings[name] for name in _TAKEN if name in settings} | LONG_KEPT_FILES


def _add(files: Sequence[ParquetFile], pruned: Sequence[str]) -> list[Action]:
    return [add_file(file, pruned) for file in files if file.rows]


def _note(mirror: Mirror, shown: Shown) -> list[Action]:
    return [
        note_transaction(mirror.application, shown.number),
        note_transaction(mirror.of_versions, shown.version),
    ]
