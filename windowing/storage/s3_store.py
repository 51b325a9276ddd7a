"""Files of a lake on S3, or on another server that speaks its language.

A request may be done although its answer is lost, and the library repeats some requests by itself.
So each file that is written under a condition carries an id, by which its writer knows it again.
"""

import errno
import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache, partial
from typing import TYPE_CHECKING, cast
from uuid import uuid4

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import S3Store as Client

from windowing.errors import UsageError
from windowing.location import Location
from windowing.storage.parts_of_files import open_parts
from windowing.storage.permission import check_permission
from windowing.storage.s3_errors import NoAnswer, errors_of_s3
from windowing.storage.s3_profile import find_profile_keys
from windowing.storage.s3_settings import FORCE_LOAD
from windowing.storage.store import StoredFile, Tagged

if TYPE_CHECKING:
    from obstore import ListResult, ObjectMeta
    from obstore.store import S3Config

Options = tuple[tuple[str, str], ...]
"""Settings of a client as a value, so that each client is made once."""
_WRITE_ID = "tidemark-write"
"""Among the metadata of a file: the id of the call that wrote it."""
_UNDECIDED = (errno.EAGAIN, "the store refuses a condition that is met")
_MISSING = (errno.ENOENT, os.strerror(errno.ENOENT))
_ATTEMPTS = 3
"""How often a conditional write is tried at most, when no answer says what became of it."""
_PAGE = 1_000
"""How many files one request lists."""
_DELETED_AT_ONCE = 1000
"""How many files S3 deletes with one request."""
_SMALL_BYTES = 1_000_000
_RETRIES = 6
_CLIENTS = 64
"""How many clients are kept; where keys are renewed, those of old ones are needed no more."""
_CONNECT_SECONDS = 5.0
_SLOWEST = 100_000
"""How many bytes a second a link brings at least that counts as working."""
_COPY_PATIENCE = 8
"""How many times as long the store itself may copy a file, of which it says nothing meanwhile."""


@dataclass(frozen=True)
class _Written:
    """A file as it was found: its content, its tag, and which call wrote it."""

    content: bytes
    tag: str
    write_id: str | None

    def is_by(self, write_id: str, content: bytes) -> bool:
        return (self.write_id, self.content) == (write_id, content)


@dataclass(frozen=True)
class S3Store:
    """Files on S3. `options` say where it is; credentials are those of the environment.

    A request takes no longer than `seconds`, and a call that gets no answer about twice as long.
    One with many bytes takes as long as they may need.
    """

    options: Options
    seconds: float

    def read(self, file: Location) -> bytes | None:
        """The content of a file; None where there is none."""
        found = self._find(file)
        return None if found is None else found.content

    def read_tagged(self, file: Location) -> Tagged | None:
        """The content of a file with its tag; None where there is none."""
        found = self._find(file)
        return None if found is None else Tagged(found.content, found.tag)

    def open(self, file: Location) -> pa.NativeFile:
        """The content of a file, to read parts of it; a small one is read at once."""
        client, key = self._client(file), _key(file)
        try:
            with errors_of_s3(file):
                found = obstore.get(client, key, options={"range": (0, _SMALL_BYTES)})
                if found.meta["size"] <= _SMALL_BYTES:
                    return pa.BufferReader(found.bytes().to_bytes())
                return open_parts(found.meta["size"], partial(self._read_part, file))
        except FileNotFoundError:
            raise FileNotFoundError(*_MISSING, file.text) from None

    def _read_part(self, file: Location, start: int, end: int) -> bytes:
        with errors_of_s3(file):
            return obstore.get_range(
                self._client(file), _key(file), start=start, end=end
            ).to_bytes()

    def identify(self, file: Location) -> Hashable:
        """The tag of a file and when it was written; None where there is none."""
        try:
            with errors_of_s3(file):
                found = obstore.head(self._client(file), _key(file))
        except FileNotFoundError:
            return None
        return (found["e_tag"], found["last_modified"])

    def write(self, file: Location, content: bytes) -> None:
        """Writes a file, in place of the one that is there, by one request."""
        with errors_of_s3(file):
            client = self._client(file, allow_seconds(self.seconds, len(content)))
            obstore.put(client, _key(file), content, use_multipart=False)

    def create(self, file: Location, content: bytes) -> bool:
        """Writes a file unless there is one; whether it did, also where an answer was lost."""
        return self.replace(file, content, None) is not None

    def replace(self, file: Location, content: bytes, tag: str | None) -> str | None:
        """Writes a file in place of the one that has `tag`; its new tag, None where it did not."""
        write_id = uuid4().hex
        unanswered = None
        for _ in range(_ATTEMPTS):
            try:
                return self._put_once(file, content, tag, write_id)
            except (AlreadyExistsError, PreconditionError):
                # This may have been an earlier request of this same call.
                unanswered = None
            except NoAnswer as error:
                unanswered = error
            try:
                found = self._find(file, len(content))
            except UsageError as error:
                # The keys are just being written anew, and an earlier request may still arrive.
                raise unanswered or NoAnswer(*_UNDECIDED, file.text) from error
            if found is not None and found.is_by(write_id, content):
                return found.tag
            is_unchanged = (None if found is None else found.tag) == tag
            if not is_unchanged:
                return None
        raise unanswered or NoAnswer(*_UNDECIDED, file.text)

    def copy(self, source: Location, target: Location) -> None:
        """Gives a file a second place in the same bucket; S3 copies it, and no byte comes here."""
        check_permission()
        with errors_of_s3(source):
            client = self._client(source, self.seconds * _COPY_PATIENCE)
            obstore.copy(client, _key(source), _key(target))

    def create_listed(self, file: Location, content: bytes) -> str | None:
        """Writes a file unless there is one; the tag that listings show of it."""
        return self.replace(file, content, None)

    def read_listed(self, file: Location) -> Tagged | None:
        """The content of a file with its tag, which listings show, too."""
        return self.read_tagged(file)

    def list_names(self, directory: Location) -> Iterator[str]:
        """The names of the files and directories in a directory, in no order."""
        start, found = _start_of(directory), self._look_into(directory)
        paths = [*found["common_prefixes"], *(each["path"] for each in found["objects"])]
        yield from (path.removeprefix(start) for path in paths if path.startswith(start))

    def is_directory(self, _: Location) -> bool:
        """Whether there is such a directory: always, because S3 has none."""
        return True

    def list_directories(self, directory: Location) -> Iterator[str]:
        """The names of the directories in a directory, in no order."""
        paths = self._look_into(directory)["common_prefixes"]
        yield from (path.rpartition("/")[2] for path in paths)

    def list_tags(self, directory: Location, after: str) -> Iterator[tuple[str, str]]:
        """The files below a directory whose paths come after a text, by a thousand a request."""
        for name, each in self._list_below(directory, after):
            yield name, each["e_tag"] or ""

    def list_files(self, directory: Location) -> Mapping[str, StoredFile]:
        """All files below a directory by their paths from there, in order."""
        return {
            name: StoredFile(each["size"], each["last_modified"].timestamp())
            for name, each in self._list(directory).items()
        }

    def delete(self, directory: Location) -> None:
        """Deletes all files below a directory, a thousand with each request.

        Busy in front of a request where the lock of the command was lost.
        """
        keys = [_key(directory / name) for name in self._list(directory)]
        for first in range(0, len(keys), _DELETED_AT_ONCE):
            # Whoever has taken the lock over may have written files of the same names.
            check_permission()
            with errors_of_s3(directory):
                obstore.delete(self._client(directory), keys[first : first + _DELETED_AT_ONCE])

    def drop_drafts(self, directory: Location) -> None:
        """Nothing: a file appears here when it is complete, and has no draft."""

    def delete_file(self, file: Location) -> None:
        """Deletes a file; nothing where there is none."""
        with errors_of_s3(file):
            obstore.delete(self._client(file), [_key(file)])

    def _list(self, directory: Location) -> "dict[str, ObjectMeta]":
        """All files below a directory, by their paths from there and in their order."""
        found: dict[str, ObjectMeta] = {}
        for name, each in self._list_below(directory):
            # An empty object that is no file stands for a directory, and ends with `/`.
            if each["size"] > 0 or self.identify(directory / name) is not None:
                found[name] = each
        return dict(sorted(found.items()))

    def _list_below(
        self, directory: Location, after: str = ""
    ) -> "Iterator[tuple[str, ObjectMeta]]":
        """What is below a directory, by its path from there, which comes after a text."""
        start = _start_of(directory)
        pages = obstore.list(
            self._client(directory),
            _key(directory) or None,
            offset=f"{start}{after}" if after else None,
            chunk_size=_PAGE,
        )
        while True:
            with errors_of_s3(directory):
                page = next(pages, None)
            if page is None:
                return
            for each in page:
                if each["path"].startswith(start):
                    yield each["path"].removeprefix(start), each

    def _look_into(self, directory: Location) -> "ListResult[Sequence[ObjectMeta]]":
        with errors_of_s3(directory):
            return obstore.list_with_delimiter(self._client(directory), _key(directory) or None)

    def _put_once(self, file: Location, content: bytes, tag: str | None, write_id: str) -> str:
        with errors_of_s3(file):
            done = obstore.put(
                self._client(file, allow_seconds(self.seconds, len(content))),
                _key(file),
                content,
                attributes={_WRITE_ID: write_id},
                mode="create" if tag is None else {"e_tag": tag},
            )
        return done["e_tag"] or ""

    def _find(self, file: Location, size: int = 0) -> _Written | None:
        """The file, which may have so many bytes."""
        try:
            with errors_of_s3(file):
                client = self._client(file, allow_seconds(self.seconds, size))
                found = obstore.get(client, _key(file))
                content = found.bytes().to_bytes()
        except FileNotFoundError:
            return None
        return _Written(content, found.meta["e_tag"] or "", found.attributes.get(_WRITE_ID))

    def _client(self, place: Location, seconds: float | None = None) -> Client:
        """A client of a bucket, of which a request takes no longer than `seconds`, if given."""
        bucket, _ = place.bucket_and_key
        keys = tuple(find_profile_keys(os.environ).items())
        return _make_client(bucket, self, seconds or self.seconds, keys, _list_variables())


def allow_seconds(seconds: float, size: int) -> float:
    """How long a request with so many bytes may take; `seconds`, doubled until they suffice.

    >>> allow_seconds(30.0, 1_000), allow_seconds(30.0, 300_000_000)
    (30.0, 3840.0)
    """
    while seconds * _SLOWEST < size:
        seconds *= 2
    return seconds


@lru_cache(maxsize=_CLIENTS)
def _make_client(bucket: str, store: S3Store, seconds: float, keys: Options, _: Options) -> Client:
    """A client of a bucket. It keeps the keys and the variables with which it was made."""
    options = {**dict(store.options), **dict(keys)}
    options.pop(FORCE_LOAD, None)
    allows_http = options.pop("aws_allow_http", "false") == "true"
    return Client(
        bucket,
        config=cast("S3Config", options),
        client_options={
            "allow_http": allows_http,
            "connect_timeout": timedelta(seconds=min(_CONNECT_SECONDS, store.seconds)),
            "timeout": timedelta(seconds=seconds),
        },
        retry_config={
            "max_retries": _RETRIES,
            "retry_timeout": timedelta(seconds=store.seconds / 2),
            "backoff": {"max_backoff": timedelta(seconds=store.seconds / 10)},
        },
    )


def _list_variables() -> Options:
    """The variables that the library reads by itself."""
    return tuple((name, value) for name, value in os.environ.items() if _is_read(name.upper()))


def _is_read(name: str) -> bool:
    return name.startswith(("AWS_", "SSL_CERT_"))


def _start_of(directory: Location) -> str:
    """How the keys of all that is in a directory begin."""
    key = _key(directory)
    return f"{key}/" if key else ""


def _key(place: Location) -> str:
    _, key = place.bucket_and_key
    return key
