"""Files of a lake that are no tables: each kind of storage has a store that reads and writes them.

Files that Spark writes by itself, and those that a JVM locks, are not written through a store.
"""

import errno
import os
import shutil
from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable
from uuid import uuid4

import pyarrow as pa

from windowing.crash import crashpoint
from windowing.errors import UsageError
from windowing.location import Location


@dataclass(frozen=True)
class StoredFile:
    """A file in a listing: how large it is, and when it was written (seconds since 1970)."""

    bytes: int
    written_s: float


class Store(Protocol):
    """What every kind of storage does with whole files.

    A file appears, and is replaced, as a whole: readers see the old content or the new one, never a
    part. Where a call raises OSError it is unknown whether it was done, so callers repeat it.
    """

    def read(self, file: Location) -> bytes | None:
        """The content of a file; None where there is none."""

    def open(self, file: Location) -> pa.NativeFile:
        """The content of a file, to read parts of it; FileNotFoundError where there is none."""

    def identify(self, file: Location) -> Hashable:
        """What no other file has that is written to the same place; None where there is none."""

    def write(self, file: Location, content: bytes) -> None:
        """Writes a file, in place of the one that is there; it is kept when the host loses power.

        Of two that write the same file at once, one may get OSError.
        """

    def create(self, file: Location, content: bytes) -> bool:
        """Writes a file unless there is one; whether it did. Of two at once, one does."""

    def copy(self, source: Location, target: Location) -> None:
        """Gives the file at `source` a second place, in the same kind of storage.

        Both are independent of each other. A file that is at `target` already stays, so no other
        one may ever be written there. FileNotFoundError where there is no file at `source`.
        """

    def list_names(self, directory: Location) -> Iterator[str]:
        """The names of the files and directories in a directory, in no order.

        There is none where there is no such directory.
        """

    def list_files(self, directory: Location) -> Mapping[str, StoredFile]:
        """All files below a directory by their paths from there, in order.

        There is none where there is no such directory.
        """

    def delete(self, directory: Location) -> None:
        """Deletes all files below a directory; nothing where there is none."""

    def drop_drafts(self, directory: Location) -> None:
        """Deletes what killed processes have left of files that they were creating in a directory.

        Nobody may write there meanwhile. Directories in it are passed over.
        """


@dataclass(frozen=True)
class Tagged:
    """The content of a file, and the tag that its store has given it.

    Files with other contents have other tags. Those with equal contents may have the same.
    """

    content: bytes
    tag: str


@runtime_checkable
class SharedStore(Store, Protocol):
    """A store that several machines write to, and that changes a file only if it is unchanged.

    The file system of a machine is none: its system has locks instead.
    """

    def read_tagged(self, file: Location) -> Tagged | None:
        """The content of a file with its tag; None where there is none."""

    def replace(self, file: Location, content: bytes, tag: str | None) -> str | None:
        """Writes a file in place of the one that has `tag`; its new tag.

        Without a tag it is written unless there is one. Where the file is another one it gives
        None, and nothing is written. Of several at once that name the same tag, one writes. Where
        it was done and the answer was lost, that is found out, as by `create`.
        """

    def create_listed(self, file: Location, content: bytes) -> str | None:
        """As `create`; the tag that listings show of the file, None where it did not write it."""

    def read_listed(self, file: Location) -> Tagged | None:
        """The content of a file with the tag that listings show of it; None where there is none.

        Of a file that is replaced meanwhile the tag may be the earlier one.
        """

    def delete_file(self, file: Location) -> None:
        """Deletes a file; nothing where there is none."""

    def is_directory(self, directory: Location) -> bool:
        """Whether there is such a directory; always where none has to be made."""

    def list_directories(self, directory: Location) -> Iterator[str]:
        """The names of the directories in a directory, in no order."""

    def list_tags(self, directory: Location, after: str) -> Iterator[tuple[str, str]]:
        """The files below a directory whose paths from there come after a text, and their tags.

        Such a tag is that of the file, and none for `replace`. They are in order of their paths. A
        thousand are listed by each request, and no more requests are made than the caller needs.
        """


class LocalStore:
    """The file system of this machine."""

    def read(self, file: Location) -> bytes | None:
        """The content of a file; None where there is none."""
        try:
            return file.local.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open(self, file: Location) -> pa.NativeFile:
        """The content of a file, to read parts of it."""
        return pa.OSFile(file.text)

    def identify(self, file: Location) -> Hashable:
        """What no other file has that is written to the same place."""
        try:
            found = file.local.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        # A copy may keep the time of the last write and get the same inode, but not the same ctime.
        return (found.st_ino, found.st_ctime_ns, found.st_size)

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
        """Writes a file unless there is one, by one link; whether it did.

        UsageError where the file system has no links.
        """
        path = file.local
        draft = path.with_name(name_draft())
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            draft.write_bytes(content)
            # Unlike a rename, a link does not replace a file that is there.
            os.link(draft, path)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            raise UsageError(
                f"{file}: this file system has no hard links ({error.strerror}), by which commits "
                "are made; use another disk"
            ) from error
        finally:
            draft.unlink(missing_ok=True)
        return True

    def copy(self, source: Location, target: Location) -> None:
        """Gives a file a second name by a link, or a copy of its bytes where it can't have one.

        UsageError as `create`.
        """
        target.local.parent.mkdir(parents=True, exist_ok=True)
        try:
            # No file of a lake is changed where it lies, so both names may be of the same bytes.
            os.link(source.local, target.local)
        except FileExistsError:
            return
        except OSError as error:
            if error.errno not in (*_NO_LINKS, *_NO_MORE_LINKS):
                raise
            self.create(target, source.local.read_bytes())

    def list_names(self, directory: Location) -> Iterator[str]:
        """The names of the files and directories in a directory."""
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(directory.local) as found:
            for entry in found:
                yield entry.name

    def list_files(self, directory: Location) -> Mapping[str, StoredFile]:
        """All files below a directory by their paths from there, in order.

        Links to directories are not followed. PermissionError names one that can't be listed.
        """
        home = directory.local
        found = {}
        for parent, _, names in os.walk(home, onerror=_raise_unless_gone):
            for name in names:
                file = Path(parent, name)
                try:
                    facts = file.stat()
                except OSError as error:
                    _raise_unless_gone(error)
                    continue
                written = StoredFile(facts.st_size, facts.st_mtime)
                found[file.relative_to(home).as_posix()] = written
        return dict(sorted(found.items()))

    def delete(self, directory: Location) -> None:
        """Deletes a directory with all that is in it; nothing where there is none."""
        with suppress(FileNotFoundError):
            shutil.rmtree(directory.local)

    def drop_drafts(self, directory: Location) -> None:
        """Deletes what killed processes have left of files that they were creating there."""
        for name in filter(is_draft, [*self.list_names(directory)]):
            (directory / name).local.unlink(missing_ok=True)


def name_draft() -> str:
    """A name that no other file has, for one that gets its own name when it is complete.

    Readers of tables pass over hidden files.
    """
    return f".{uuid4()}{_DRAFT}"


def is_draft(name: str) -> bool:
    """Whether `name_draft` gives such names."""
    return name.startswith(".") and name.endswith(_DRAFT)


def _raise_unless_gone(error: OSError) -> None:
    """Another process may delete a file meanwhile, and a link may lead to nothing, or to itself.

    What a mounted file system has in `lost+found` is for its administrator alone.
    """
    if error.errno not in _GONE and Path(error.filename).name != "lost+found":
        raise error


def _sync_directory(path: Path) -> None:
    """Without this a rename may be lost when the host loses power, although the file is on disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


_DRAFT = ".tmp"
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
"""The errors of a file system without links; the first also of a file that belongs to others."""
_NO_MORE_LINKS = (errno.EXDEV, errno.EMLINK)
"""The errors of a file that can't have another name there."""
_LOCAL = LocalStore()
_SECONDS = 30.0
"""How long a request may take; a store that does not answer is an error within a minute."""


def store_of(place: Location) -> Store:
    """The store of the lake that `place` is in."""
    if place.is_in_catalog:
        raise ValueError(f"{place} is a table's name and no place for files")
    return shared_store_of(place) or _LOCAL


def shared_store_of(place: Location, seconds: float | None = None) -> SharedStore | None:
    """The store that `place` shares with other machines; None on a disk of this one.

    A request to it takes no longer than `seconds`, if they are given.
    """
    if place.is_local:
        return None
    if place.is_on_hdfs:
        # Nor does one on S3 need a client of HDFS.
        from windowing.storage.hdfs_store import HdfsStore

        return HdfsStore(seconds or _SECONDS)
    # A lake on a disk needs no client of S3.
    from windowing.storage.s3_settings import read_s3_settings
    from windowing.storage.s3_store import S3Store

    return S3Store(tuple(read_s3_settings(os.environ).for_rust().items()), seconds or _SECONDS)


def find_free(directory: Location, name: str) -> Location:
    """A place in `directory` without files: `name` and the first number for which there is none."""
    n = 1
    while store_of(directory).list_files(place := directory / f"{name}{n}"):
        n += 1
    return place
