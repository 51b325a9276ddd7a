"""Calls to HDFS, of which each ends in time and with an error of a file system."""

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from threading import Thread
from typing import TypeVar

from hdfs_native import Client, FileStatus, WriteOptions

from windowing.location import Location
from windowing.storage.hdfs_errors import check_settings, errors_of_hdfs

Result = TypeVar("Result")
_SETTINGS = {
    # By default a call to a name node that is not there is repeated for minutes.
    "dfs.client.failover.max.attempts": "3",
    "dfs.client.failover.sleep.base.millis": "100",
    "dfs.client.failover.sleep.max.millis": "1000",
}
_SILENT = (errno.ETIMEDOUT, "HDFS did not answer in time")
_AT_ONCE_BYTES = 2_000_000
"""How many bytes of a large file one call reads or writes."""
_READS = 3
"""How often a read is tried. A file that was replaced loses its blocks under a slow reader."""


@dataclass(frozen=True)
class HdfsClient:
    """HDFS as the environment describes it: HADOOP_CONF_DIR, HADOOP_USER_NAME.

    Each call takes no longer than `seconds`. What was asked may still be done afterwards.
    """

    seconds: float

    def read(self, file: Location) -> bytes:
        """The content of a file; FileNotFoundError where there is none."""

        def read_all(client: Client, path: str) -> bytes:
            return client.read(path).read()

        return self._read(file, read_all)

    def read_part(self, file: Location, start: int, end: int) -> bytes:
        """The bytes of a file from `start` up to `end`, which is not inside."""
        return self._read(
            file, lambda client, path: client.read(path).read_range(start, end - start)
        )

    def read_parts(self, file: Location, length: int) -> bytes:
        """The content of a file of that length, which nobody replaces, by calls for its parts."""
        starts = range(0, length, _AT_ONCE_BYTES)
        return b"".join(
            self.read_part(file, start, min(start + _AT_ONCE_BYTES, length)) for start in starts
        )

    def find(self, file: Location) -> FileStatus | None:
        """What HDFS knows of a file or directory; None where there is none."""
        try:
            return self._ask(file, lambda client, path: client.get_file_info(path))
        except FileNotFoundError:
            return None

    def list_directory(self, directory: Location, *, deep: bool = False) -> Iterator[FileStatus]:
        """All files and directories in a directory, or below it; none where there is none.

        One that goes while the listing is made may be missing, and nothing else.
        """
        try:
            yield from self._ask(
                directory, lambda client, path: _take_all(client.list_status(path, recursive=deep))
            )
        except FileNotFoundError:
            return

    def write_new(self, file: Location, content: bytes, *, makes_directory: bool = True) -> None:
        """Writes a file that may not be there, and makes it last.

        Its directory is made, or else FileNotFoundError is raised where that is not there. Others
        see the file before it is whole.
        """
        new = WriteOptions(overwrite=False, create_parent=makes_directory)
        opened = self._ask(file, lambda client, path: client.create(path, new))

        for start in range(0, len(content), _AT_ONCE_BYTES):
            part = content[start : start + _AT_ONCE_BYTES]
            self._ask(file, lambda *_, part=part: opened.write(part))
        if content:
            self._ask(file, lambda *_: opened.hsync())
        self._ask(file, lambda *_: opened.close())

    def rename(self, source: Location, target: Location) -> None:
        """Renames a file or directory at once, for all to see.

        FileNotFoundError where the source is not there, FileExistsError where the target is.
        """
        to = target.cluster_and_path[1]
        self._ask(source, lambda client, path: client.rename(path, to, overwrite=False))

    def rename_over(self, source: Location, target: Location) -> None:
        """Renames a file, in place of the target if that is there."""
        to = target.cluster_and_path[1]
        self._ask(source, lambda client, path: client.rename(path, to, overwrite=True))

    def delete(self, place: Location) -> None:
        """Deletes a file, or a directory with all that is in it; nothing where there is none."""
        self._ask(place, lambda client, path: client.delete(path, recursive=True))

    def _read(self, file: Location, read: Callable[[Client, str], bytes]) -> bytes:
        for _ in range(_READS - 1):
            try:
                return self._ask(file, read)
            except FileNotFoundError:
                raise
            except OSError:
                continue
        return self._ask(file, read)

    def _ask(self, place: Location, call: Callable[[Client, str], Result]) -> Result:
        """What a call returns, or its error. The library itself waits for a silent server."""
        cluster, path = place.cluster_and_path
        check_settings(place, os.environ)
        results: list[Result] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                results.append(call(_make_client(cluster, _list_variables()), path))
            except BaseException as error:
                errors.append(error)

        thread = Thread(target=work, name="hdfs", daemon=True)
        thread.start()
        thread.join(self.seconds)
        with errors_of_hdfs(place):
            if errors:
                raise errors[0]
        if not results:
            raise TimeoutError(*_SILENT, place.text)
        return results[0]


def _take_all(listing: Iterator[FileStatus]) -> list[FileStatus]:
    """A listing without what is in directories that have gone since their names were listed.

    FileNotFoundError where the first one is not there.
    """
    found: list[FileStatus] = []
    while True:
        try:
            each = next(listing, None)
        except FileNotFoundError:
            if not found:
                raise
            continue
        if each is None:
            return found
        found.append(each)


@cache
def _make_client(cluster: str, _: tuple[tuple[str, str], ...]) -> Client:
    """A client of a cluster. It keeps the variables with which it was made."""
    return Client(cluster, _SETTINGS)


def _list_variables() -> tuple[tuple[str, str], ...]:
    """The variables that the library reads by itself."""
    return tuple((name, value) for name, value in os.environ.items() if name.startswith("HADOOP_"))
