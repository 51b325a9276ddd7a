"""Local files: where tables lie, and what the log of a Delta table shows without reading the table.

No table here is a name of Spark's catalog.
"""

import json
import os
import re

from windowing.location import Location
from windowing.storage.store import store_of

_COMMIT = re.compile(r"(\d{20})\.json")
"""The name of the file of one commit: its version."""


def locate_uri(uri: str) -> Location:
    """Where a local path or `file:` URI points to, as Spark and Delta print one."""
    return Location(uri.removeprefix("file://").removeprefix("file:"))


def has_directory(path: Location) -> bool:
    """Whether there is anything at `path`, or was once."""
    return path.local.is_dir()


def list_tables(directory: Location) -> list[str]:
    """The names of all Delta tables that lie in `directory`, in order."""
    return sorted(log.parent.name for log in directory.local.glob("*/_delta_log"))


def newest_version(table: Location) -> int:
    """The newest version that the log of `table` has a commit for; -1 where it has none."""
    log = table.local / "_delta_log"
    if not log.is_dir():
        return -1
    names = [_COMMIT.fullmatch(file.name) for file in log.iterdir()]
    return max((int(name[1]) for name in names if name is not None), default=-1)


def has_commit(table: Location) -> bool:
    """Whether the log of `table` has a commit. It may be long, so no more of it is looked at."""
    try:
        with os.scandir(table.local / "_delta_log") as files:
            return any(_COMMIT.fullmatch(file.name) for file in files)
    except (FileNotFoundError, NotADirectoryError):
        return False


def locate_commit(table: Location, version: int) -> Location:
    """Where the log of `table` has the commit that made `version`, if it is still there."""
    return table / "_delta_log" / f"{version:020}.json"


def read_commit_text(table: Location, version: int) -> str | None:
    """The commit that made `version` of `table`, a line for each action; None where it is gone."""
    commit = locate_commit(table, version)
    content = store_of(commit).read(commit)
    return None if content is None else content.decode()


def committed_us(table: Location, version: int) -> int | None:
    """When `version` of `table` was written, microseconds by its writer's clock.

    It is None where the commit file was deleted or has no time.
    """
    file = locate_commit(table, version).local
    if not file.exists():
        return None
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            info = json.loads(line).get("commitInfo")
            if info and "timestamp" in info:
                milliseconds: int = info["timestamp"]
                return milliseconds * 1000
    return None
