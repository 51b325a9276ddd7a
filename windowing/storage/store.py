"""Files of a lake that are no tables: each kind of storage has a store that reads and writes them.

Files that Spark writes by itself, and those that a JVM locks, are not written through a store.
"""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from windowing.crash import crashpoint
from windowing.location import Location


class Store(Protocol):
    """What every kind of storage does with whole files.

    A file appears, and is replaced, as a whole: readers see the old content or the new one, never a
    part. Where a call raises OSError it is unknown whether it was done, so callers repeat it.
    """

    def read(self, file: Location) -> bytes | None:
        """The content of a file; None where there is none."""

    def write(self, file: Location, content: bytes) -> None:
        """Writes a file, in place of the one that is there; it is kept when the host loses power.

        Of two that write the same file at once, one may get OSError.
        """

    def create(self, file: Location, content: bytes) -> bool:
        """Writes a file unless there is one; whether it did. Of two at once, one does."""

    def list_files(self, directory: Location) -> Mapping[str, int]:
        """All files below a directory: their paths from there, in order, and their sizes in bytes.

        There is none where there is no such directory.
        """

    def delete(self, directory: Location) -> None:
        """Deletes all files below a directory; nothing where there is none."""


class LocalStore:
    """The file system of this machine."""

    def read(self, file: Location) -> bytes | None:
        """The content of a file; None where there is none."""
        try:
            return file.local.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, file: Location, content: bytes) -> None:
        """Writes a file, in place of the one that is there, by one rename."""
        path = file.local
        # A later write replaces what a killed one has left.
        draft = path.with_name(f".{path.name}.draft")
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        crashpoint("file.drafted")
        os.replace(draft, path)
        _sync_directory(path.parent)

    def create(self, file: Location, content: bytes) -> bool:
        """Writes a file unless there is one, by one link; whether it did."""
        path = file.local
        # Readers of a log pass over hidden files.
        draft = path.with_name(f".{uuid4()}.tmp")
        try:
            draft.write_bytes(content)
            # Unlike a rename, a link does not replace a file that is there.
            os.link(draft, path)
        except FileExistsError:
            return False
        finally:
            draft.unlink(missing_ok=True)
        return True

    def list_files(self, directory: Location) -> Mapping[str, int]:
        """All files below a directory: their paths from there, in order, and their sizes."""
        home = directory.local
        found = {}
        for parent, _, names in os.walk(home):
            for name in names:
                file = Path(parent, name)
                # Another process may delete it meanwhile.
                with suppress(FileNotFoundError):
                    found[file.relative_to(home).as_posix()] = file.stat().st_size
        return dict(sorted(found.items()))

    def delete(self, directory: Location) -> None:
        """Deletes a directory with all that is in it; nothing where there is none."""
        with suppress(FileNotFoundError):
            shutil.rmtree(directory.local)


def _sync_directory(path: Path) -> None:
    """Without this a rename may be lost when the host loses power, although the file is on disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


_LOCAL = LocalStore()


def store_of(place: Location) -> Store:
    """The store of the lake that `place` is in."""
    if place.is_in_catalog:
        raise ValueError(f"{place} is a table's name and no place for files")
    return _LOCAL


def find_free(directory: Location, name: str) -> Location:
    """A place in `directory` without files: `name` and the first number for which there is none."""
    n = 1
    while store_of(directory).list_files(place := directory / f"{name}{n}"):
        n += 1
    return place
