"""The file of a project: found from a folder upwards, and read as plain values.

It imports little, because every command looks for it before anything else.
"""

import os
import stat
import tomllib
from typing import Any

from windowing.errors import SpecError

OWN, SHARED = "tidemark.toml", "pyproject.toml"
"""The file of a project, or the file of which the table [tool.tidemark] is one."""
TARGET = "TIDEMARK_TARGET"
"""The variable that names a target where the command line does not."""


def find_project_file(start: str) -> str | None:
    """The file of the project that the folder `start` is in, or None.

    It is that of the nearest folder which has one, `start` itself or above it. In one folder
    `tidemark.toml` comes first. SpecError for a file that may be one and is no TOML, and for one
    that somebody else has put where everybody may write, such as `/tmp`.
    """
    folder = os.path.abspath(start)
    while True:
        found = project_file_in(folder)
        above = os.path.dirname(folder)
        if found is not None:
            _refuse_planted(found)
        if found is not None or above == folder:
            return found
        folder = above


def _refuse_planted(file: str) -> None:
    """SpecError for a file of another user, but root, in a folder that everybody may write to.

    The file is that of another user also where a symbolic link of theirs leads to it.
    """
    owners, folder = {os.stat(file).st_uid, os.lstat(file).st_uid}, os.path.dirname(file)
    if owners <= {0, os.geteuid()} or not os.stat(folder).st_mode & stat.S_IWOTH:
        return
    wrong = f"belongs to another user, in {folder}, where everybody may write, so it is not taken"
    advice = (
        f"delete it, or work in a folder with a {OWN} of yours, or, if the folder is yours and "
        f"the file is right, `chmod o-w {folder}`"
    )
    raise SpecError("", f"{wrong}; {advice}", file)


def project_file_in(folder: str) -> str | None:
    """The file of a project that lies in the folder itself, or None."""
    own, shared = os.path.join(folder, OWN), os.path.join(folder, SHARED)
    if os.path.isfile(own):
        return own
    return shared if os.path.isfile(shared) and _has_table(shared) else None


def read_table(file: str) -> dict[str, Any]:
    """The plain values of a project's file; SpecError for what is no TOML."""
    values = _parse(file, _read(file))
    return values if os.path.basename(file) == OWN else dict(values["tool"]["tidemark"])


def _has_table(shared: str) -> bool:
    """Whether a file that belongs to others, too, has a table for Tidemark."""
    raw = _read(shared)
    if b"tidemark" not in raw:
        return False
    try:
        tool = _parse(shared, raw).get("tool")
    except SpecError:
        # Others complain about their own file.
        if b"tool.tidemark" in raw:
            raise
        return False
    return isinstance(tool, dict) and isinstance(tool.get("tidemark"), dict)


def _read(file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError as error:
        raise SpecError("", f"{file}: can't be read ({error.strerror})") from None


def _parse(file: str, raw: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(raw.decode())
    except UnicodeDecodeError:
        raise SpecError("", "is not UTF-8 text; save the file as UTF-8", file) from None
    except tomllib.TOMLDecodeError as error:
        what = str(error)
        advice = 'texts stand in quotes, as in lake = "lake"'
        raise SpecError("", f"is not TOML ({what[:1].lower()}{what[1:]}); {advice}", file) from None
