"""Where tables lie, and what the log of a Delta table shows without reading the table.

No table here is a name of Spark's catalog.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import unquote

from windowing.location import S3, Location
from windowing.storage import log_lines
from windowing.storage.log_lines import LOG, parse_actions
from windowing.storage.store import store_of

COMMIT = re.compile(r"(\d{20})\.json")
"""The name of the file of one commit: its version."""
_LAST_COMMITS = 16
"""More than one command makes of a table in the half minute that a system may keep files back."""


def locate_uri(uri: str) -> Location:
    """Where a path, or a URI of a local file or on S3 points to, as Spark and Delta print one."""
    if uri.startswith("s3a://"):
        return Location(f"{S3}{uri.removeprefix('s3a://')}")
    return Location(uri.removeprefix("file://").removeprefix("file:"))


def drop_location(message: str, path: Location) -> str:
    """The message of a library without the path that it is about, in whatever way it writes it."""
    places = [path.text, path.hadoop]
    if path.is_local:
        places.append(str(path.local.resolve()))
    # Some messages contain the path as a URL.
    return _drop_all(unquote(_drop_all(message, places)), places)


def _drop_all(message: str, places: Iterable[str]) -> str:
    for place in places:
        message = message.replace(place, "")
    return message


def has_directory(path: Location) -> bool:
    """Whether there is anything at `path`; on a local disk also whether there was once."""
    return path.name in store_of(path).list_names(path.parent)


def list_tables(directory: Location) -> list[str]:
    """The names of all Delta tables that lie in `directory`, in order."""
    names = store_of(directory).list_names(directory)
    return sorted(name for name in names if _has_log(directory / name))


def _has_log(table: Location) -> bool:
    if table.is_local or table.is_on_hdfs:
        return LOG in store_of(table).list_names(table)
    # On S3 an object that stands for the directory may be left of it.
    return any(store_of(table).list_names(table / LOG))


def newest_version(table: Location) -> int:
    """The newest version that the log of `table` has a commit for; -1 where it has none."""
    log = table / LOG
    return find_newest_commit(store_of(log).list_names(log))


def find_newest_commit(names: Iterable[str]) -> int:
    """The newest version that one of these files of a log is the commit of; -1 where none is."""
    commits = map(COMMIT.fullmatch, names)
    return max((int(name[1]) for name in commits if name is not None), default=-1)


def has_commit(table: Location) -> bool:
    """Whether the log of `table` has a commit. It may be long, so no more of it is looked at."""
    log = table / LOG
    return any(map(COMMIT.fullmatch, store_of(log).list_names(log)))


def name_commit(version: int) -> str:
    """The name of the file of the commit that made `version`."""
    return f"{version:020}.json"


def locate_commit(table: Location, version: int) -> Location:
    """Where the log of `table` has the commit that made `version`, if it is still there."""
    return table / LOG / name_commit(version)


def has_empty_commit(table: Location, version: int) -> bool:
    """Whether one of the last commits up to `version` of a table on a disk has no bytes.

    A machine that loses power may leave such a file, which readers of Delta take for a commit that
    did nothing. No writer makes one. Older commits were on the disk before.
    """
    for number in range(max(0, version + 1 - _LAST_COMMITS), version + 1):
        with suppress(FileNotFoundError):
            if not locate_commit(table, number).local.stat().st_size:
                return True
    return False


def read_commit_text(table: Location, version: int) -> str | None:
    """The commit that made `version` of `table`, a line for each action; None where it is gone."""
    commit = locate_commit(table, version)
    content = store_of(commit).read(commit)
    return None if content is None else content.decode()


def committed_us(table: Location, version: int) -> int | None:
    """When `version` of `table` was written, in microseconds.

    It is None where the commit file was deleted or has no time.
    """
    return find_time(read_commit_text(table, version))


def find_time(commit: str | None) -> int | None:
    """When a commit was written, in microseconds; None where it has no time."""
    return log_lines.find_time(parse_actions(commit or ""))
