"""Local files: where tables lie, and what the log of a Delta table shows without reading the table.

A local path or a file: URI is meant by every path here.
"""

import json
import os
import re
from pathlib import Path

_COMMIT = re.compile(r"(\d{20})\.json")
"""The name of the file of one commit: its version."""


def local_path(uri: str) -> Path:
    """The directory of a local path or file: URI."""
    return Path(uri.removeprefix("file://").removeprefix("file:"))


def free_path_beside(path: Path, kept: str) -> Path:
    """A free path next to `path`: `kept` with the first number for `{n}` that no file has."""
    n = 1
    # Not str.format, because the name of a user's directory may contain braces.
    while (candidate := path.with_name(kept.replace("{n}", str(n)))).exists():
        n += 1
    return candidate


def newest_version(table: Path) -> int | None:
    """The newest version that the log of `table` has a commit for; None where it has none."""
    log = table / "_delta_log"
    if not log.is_dir():
        return None
    names = [_COMMIT.fullmatch(file.name) for file in log.iterdir()]
    return max((int(name[1]) for name in names if name is not None), default=None)


def has_commit(table: Path) -> bool:
    """Whether the log of `table` has a commit. It may be long, so no more of it is looked at."""
    try:
        with os.scandir(table / "_delta_log") as files:
            return any(_COMMIT.fullmatch(file.name) for file in files)
    except (FileNotFoundError, NotADirectoryError):
        return False


def commit_file(table: Path, version: int) -> Path:
    """Where the log of `table` has the commit that made `version`, if it is still there."""
    return table / "_delta_log" / f"{version:020}.json"


def committed_us(table: Path, version: int) -> int | None:
    """When `version` of `table` was written, microseconds by its writer's clock.

    It is None where the commit file was deleted or has no time.
    """
    file = commit_file(table, version)
    if not file.exists():
        return None
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            info = json.loads(line).get("commitInfo")
            if info and "timestamp" in info:
                milliseconds: int = info["timestamp"]
                return milliseconds * 1000
    return None
