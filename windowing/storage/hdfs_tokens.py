"""Replaces a file on HDFS only if it is unchanged, by renames of a token.

Beside a file that is replaced so lies a directory with one token, whose name says which write is in
force. The content of a new write is put there first. Then the token is renamed from the name of the
last write to that of this one, which fails where it has another name by now: of several writers one
wins, and one that wakes up late finds no token of its name. Then the content is moved into the
place of the file. Whoever finds that this was not done does it, and it can be done only once.

content written -> token renamed: it counts -> content moved
"""

import errno
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

from hdfs_native import FileStatus

from windowing.location import Location
from windowing.storage.hdfs_client import HdfsClient
from windowing.storage.store import Tagged

_TOKENS = "._tokens_"
"""How the name of the directory begins, before that of its file."""
_TOKEN = "now-"
_FIRST = "0-"
"""How the write is called before there was one by tag."""
_ATTEMPTS = 5


def is_of_tokens(name: str) -> bool:
    """Whether a directory of that name has the token of a file."""
    return name.startswith(_TOKENS)


@dataclass(frozen=True)
class _State:
    """The write that is in force, None without a token, and where its content lies, if anywhere."""

    write: str | None
    place: Location
    found: FileStatus | None
    is_moved: bool

    @property
    def tag(self) -> str | None:
        """What no other content of the file has; None where there is none."""
        if self.found is None:
            return None
        first = self.write is None or self.write.startswith(_FIRST)
        name = "" if first else self.write
        # A file that was never replaced by its tag is told from others by its time.
        return f"{name}/{self.found.modification_time}/{self.found.length}"


@dataclass(frozen=True)
class Tokens:
    """The tokens of files on HDFS."""

    client: HdfsClient

    def has_any(self, file: Location) -> bool:
        """Whether a file has a token."""
        return self.client.find(_home(file)) is not None

    def read(self, file: Location) -> Tagged | None:
        """The content of a file with its tag; None where there is none."""
        for _ in range(_ATTEMPTS):
            state = self._look(file)
            if state.tag is None:
                return None
            try:
                return Tagged(self.client.read(state.place), state.tag)
            except FileNotFoundError:
                # Its content was moved or replaced meanwhile.
                continue
        raise OSError(errno.EBUSY, "others write it all the time", file.text)

    def replace(self, file: Location, content: bytes, tag: str | None) -> str | None:
        """Writes a file in place of the one that has `tag`; its new tag, None where it did not."""
        state = self._look(file)
        if state.tag != tag:
            return None
        if state.write is None:
            self._make_token(file)
            state = self._look(file)
        if state.tag != tag or state.write is None:
            return None
        # Before another write may count, the last one lies in its place.
        self._move_content(file, state)
        write = uuid4().hex
        draft = _home(file) / write
        try:
            self.client.write_new(draft, content, makes_directory=False)
        except FileNotFoundError:
            # The file was deleted with its token. A directory without one could never get one.
            return None
        if not self._rename_token(file, state.write, write):
            self.client.delete(draft)
            return None
        done = self._place(file, write, self.client.find(draft))
        # It counts already. Where it can't be moved, whoever is next moves it.
        self._move_content(file, done)
        return done.tag

    def delete(self, file: Location) -> None:
        """Deletes the token of a file, and with it what was not yet moved."""
        self.client.delete(_home(file))

    def _look(self, file: Location) -> _State:
        home = _home(file)
        listed = {Location(each.path).name: each for each in self.client.list_directory(home)}
        tokens = [name.removeprefix(_TOKEN) for name in listed if name.startswith(_TOKEN)]
        write = tokens[0] if tokens else None
        return self._place(file, write, None if write is None else listed.get(write))

    def _place(self, file: Location, write: str | None, draft: FileStatus | None) -> _State:
        """The state of a write that counts. Its content lies in a draft until it is moved."""
        if write is not None and draft is not None:
            return _State(write, _home(file) / write, draft, is_moved=False)
        return _State(write, file, self.client.find(file), is_moved=True)

    def _make_token(self, file: Location) -> None:
        """Makes the token of a file that has none, by a rename of its whole directory."""
        draft = file.parent / f".{uuid4()}.tmp"
        try:
            self.client.write_new(draft / f"{_TOKEN}{_FIRST}{uuid4().hex}", b"")
            self.client.rename(draft, _home(file))
        except FileExistsError:
            # Another one was first.
            pass
        finally:
            with suppress(OSError):
                self.client.delete(draft)

    def _rename_token(self, file: Location, before: str, write: str) -> bool:
        """Whether a write counts from now on: whether the one before it was in force until now."""
        old, new = (_home(file) / f"{_TOKEN}{name}" for name in (before, write))
        failure: OSError | None = None
        for _ in range(_ATTEMPTS):
            try:
                self.client.rename(old, new)
                return True
            except FileNotFoundError:
                # An earlier request of this same call may have done it, and its answer was lost.
                return self._look(file).write == write
            except OSError as error:
                failure = error
        raise failure or OSError(errno.EIO, "the token was not renamed", file.text)

    def _move_content(self, file: Location, state: _State) -> None:
        if state.is_moved:
            return
        for attempt in range(_ATTEMPTS):
            try:
                self.client.rename_over(state.place, file)
                return
            except FileNotFoundError:
                # It was moved, by another one or by an earlier request of this same call.
                return
            except OSError:
                if attempt == _ATTEMPTS - 1:
                    raise


def _home(file: Location) -> Location:
    return file.parent / f"{_TOKENS}{file.name}"
