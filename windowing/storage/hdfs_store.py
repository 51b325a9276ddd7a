"""Files of a lake on HDFS.

HDFS has no write with a condition but this one: a rename fails where its source is gone, or where
its target is there. So each write begins with a draft whose name nobody else has. A draft that is
gone was renamed, whatever became of the answer, and one that was deleted can't be renamed any more,
however late a request arrives.
"""

import errno
import os
from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
from hdfs_native import FileStatus

from windowing.location import Location
from windowing.storage.hdfs_client import HdfsClient
from windowing.storage.hdfs_tokens import Tokens, is_of_tokens
from windowing.storage.parts_of_files import open_parts
from windowing.storage.store import StoredFile, Tagged, is_draft, name_draft

_ATTEMPTS = 3
"""How often a rename is tried at most, when no answer says what became of it."""
_REPLACED = 100
"""How often a file may be replaced by others before one that replaces it gives up."""


@dataclass(frozen=True)
class HdfsStore:
    """Files on HDFS. A call to it takes no longer than `seconds`, and a write is five to ten."""

    seconds: float

    def read(self, file: Location) -> bytes | None:
        """The content of a file; None where there is none."""
        try:
            return self._client.read(file)
        except (FileNotFoundError, IsADirectoryError):
            return None

    def read_tagged(self, file: Location) -> Tagged | None:
        """The content of a file with its tag; None where there is none."""
        return self._tokens.read(file)

    def open(self, file: Location) -> pa.NativeFile:
        """The content of a file, to read parts of it."""
        found = self._find_file(file)
        return open_parts(found.length, lambda start, end: self._client.read_part(file, start, end))

    def identify(self, file: Location) -> Hashable:
        """When a file was written and how large it is; None where there is none."""
        found = self._client.find(file)
        return None if found is None else (found.modification_time, found.length)

    def write(self, file: Location, content: bytes) -> None:
        """Writes a file, in place of the one that is there, by one rename.

        One that was replaced by its tag gets another tag.
        """
        for _ in range(_REPLACED):
            if not self._tokens.has_any(file):
                self._write_over(file, content)
                return
            found = self._tokens.read(file)
            if self._tokens.replace(file, content, None if found is None else found.tag):
                return
        raise OSError(errno.EBUSY, "others write it all the time", file.text)

    def create(self, file: Location, content: bytes) -> bool:
        """Writes a file unless there is one; whether it did, also where an answer was lost."""
        if self._client.find(file) is not None:
            return False
        draft = self._write_draft(file, content)
        try:
            return self._rename(draft, file, content)
        finally:
            with suppress(OSError):
                self._client.delete(draft)

    def copy(self, source: Location, target: Location) -> None:
        """Gives a file a second place. HDFS has no links, so it is read and written."""
        found = self._find_file(source)
        self.create(target, self._client.read_parts(source, found.length))

    def replace(self, file: Location, content: bytes, tag: str | None) -> str | None:
        """Writes a file in place of the one that has `tag`; its new tag, None where it did not."""
        return self._tokens.replace(file, content, tag)

    def create_listed(self, file: Location, content: bytes) -> str | None:
        """Writes a file unless there is one; the tag that listings show of it."""
        if not self.create(file, content):
            return None
        found = self._client.find(file)
        # One that is gone is listed by no tag.
        return "" if found is None else _tag_of(found)

    def read_listed(self, file: Location) -> Tagged | None:
        """The content of a file with the tag that listings show of it; None where there is none."""
        found = self._client.find(file)
        content = None if found is None or found.isdir else self.read(file)
        return None if found is None or content is None else Tagged(content, _tag_of(found))

    def list_names(self, directory: Location) -> Iterator[str]:
        """The names of the files and directories in a directory, in no order."""
        yield from self._list_directory(directory)

    def is_directory(self, directory: Location) -> bool:
        """Whether there is such a directory."""
        found = self._client.find(directory)
        return found is not None and found.isdir

    def list_directories(self, directory: Location) -> Iterator[str]:
        """The names of the directories in a directory, in no order."""
        yield from (name for name, each in self._list_directory(directory).items() if each.isdir)

    def list_files(self, directory: Location) -> Mapping[str, StoredFile]:
        """All files below a directory by their paths from there, in order."""
        return {name: _describe(each) for name, each in self._list_below(directory).items()}

    def list_tags(self, directory: Location, after: str) -> Iterator[tuple[str, str]]:
        """The files below a directory whose paths come after a text, in order, and their tags."""
        for name, each in self._list_below(directory).items():
            if name > after:
                yield name, _tag_of(each)

    def delete(self, directory: Location) -> None:
        """Deletes a directory with all that is in it, at once; nothing where there is none."""
        self._client.delete(directory)

    def drop_drafts(self, directory: Location) -> None:
        """Deletes what killed processes have left of files that they were creating there."""
        for name, found in self._list_directory(directory).items():
            if is_draft(name) and not found.isdir:
                self._client.delete(directory / name)

    def delete_file(self, file: Location) -> None:
        """Deletes a file; nothing where there is none."""
        found = self._client.find(file)
        if found is not None and found.isdir:
            return
        self._tokens.delete(file)
        self._client.delete(file)

    def _find_file(self, file: Location) -> FileStatus:
        found = self._client.find(file)
        if found is None or found.isdir:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), file.text)
        return found

    def _list_directory(self, directory: Location) -> dict[str, FileStatus]:
        """The files and directories in a directory by their names."""
        home = directory.cluster_and_path[1]
        found = {
            Location(each.path).name: each
            for each in self._client.list_directory(directory)
            if each.path != home
        }
        return {name: each for name, each in found.items() if not is_of_tokens(name)}

    def _list_below(self, directory: Location) -> dict[str, FileStatus]:
        """All files below a directory by their paths from there, in order."""
        start = f"{directory.cluster_and_path[1].rstrip('/')}/"
        found = {}
        for each in self._client.list_directory(directory, deep=True):
            name = each.path.removeprefix(start)
            is_shown = each.path.startswith(start) and not any(map(is_of_tokens, name.split("/")))
            if is_shown and not each.isdir:
                found[name] = each
        return dict(sorted(found.items()))

    @property
    def _client(self) -> HdfsClient:
        return HdfsClient(self.seconds)

    @property
    def _tokens(self) -> Tokens:
        return Tokens(self._client)

    def _write_draft(self, file: Location, content: bytes) -> Location:
        draft = file.parent / name_draft()
        try:
            self._client.write_new(draft, content)
        except BaseException:
            with suppress(OSError):
                self._client.delete(draft)
            raise
        return draft

    def _write_over(self, file: Location, content: bytes) -> None:
        draft = self._write_draft(file, content)
        for attempt in range(_ATTEMPTS):
            try:
                self._client.rename_over(draft, file)
                return
            except OSError:
                if self._client.find(draft) is None:
                    return
                if attempt == _ATTEMPTS - 1:
                    self._client.delete(draft)
                    raise

    def _rename(self, source: Location, target: Location, content: bytes) -> bool:
        """Renames what nobody else renames, unless the target is there; whether it did.

        A source that is gone was renamed although an answer was lost, or deleted as what a killed
        process had left. Which of them is told by the target, whose `content` is that of no other.
        """
        failure: OSError | None = None
        for _ in range(_ATTEMPTS):
            try:
                self._client.rename(source, target)
                return True
            except OSError as error:
                failure = error
            there = self.read(target)
            if self._client.find(source) is None:
                if there is None:
                    raise failure
                return there == content
            if there is not None:
                return False
        raise failure or OSError(errno.EIO, "the rename was not done", target.text)


def _describe(found: FileStatus) -> StoredFile:
    return StoredFile(found.length, found.modification_time / 1000)


def _tag_of(found: FileStatus) -> str:
    """When a file was written (milliseconds) and how large it is: what no later one has."""
    return f"{found.modification_time}-{found.length}"
