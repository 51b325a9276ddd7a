"""Large files and listings of HDFS come in parts, of files by calls that each end in time."""

import time
from dataclasses import dataclass

import pytest

from windowing.location import Location
from windowing.storage import hdfs_client
from windowing.storage.hdfs_client import HdfsClient

FILE = Location("hdfs://node:8020/lake/a")
SECONDS = 0.6
BYTES_A_SECOND = 1_000
CONTENT = bytes(range(256)) * 4


@dataclass
class SlowFile:
    """A file behind a slow link. It is also its own client, reader and writer."""

    content: bytes = b""
    synced: int = 0
    is_closed: bool = False

    def create(self, *_: object) -> "SlowFile":
        """The file, to be written."""
        return self

    def read(self, _: str) -> "SlowFile":
        """The file, to be read."""
        return self

    def write(self, part: bytes) -> int:
        """Appends to it."""
        time.sleep(len(part) / BYTES_A_SECOND)
        self.content += part
        return len(part)

    def read_range(self, start: int, length: int) -> bytes:
        """A part of it."""
        time.sleep(length / BYTES_A_SECOND)
        return self.content[start : start + length]

    def hsync(self) -> None:
        """What was written lasts."""
        self.synced = len(self.content)

    def close(self) -> None:
        """It is complete."""
        self.is_closed = True


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SlowFile:
    """The one file there is."""
    file = SlowFile()
    monkeypatch.setattr(hdfs_client, "_make_client", lambda *_: file)
    monkeypatch.setattr(hdfs_client, "_AT_ONCE_BYTES", 200)
    return file


def test_what_takes_longer_than_a_call_may_is_written(slow: SlowFile) -> None:
    HdfsClient(SECONDS).write_new(FILE, CONTENT)
    assert (slow.content, slow.synced, slow.is_closed) == (CONTENT, len(CONTENT), True)


def test_what_takes_longer_than_a_call_may_is_read(slow: SlowFile) -> None:
    slow.content = CONTENT
    assert HdfsClient(SECONDS).read_parts(FILE, len(CONTENT)) == CONTENT


def test_an_empty_file_is_written_and_read(slow: SlowFile) -> None:
    HdfsClient(SECONDS).write_new(FILE, b"")
    assert slow.is_closed
    assert HdfsClient(SECONDS).read_parts(FILE, 0) == b""


def test_a_part_that_takes_too_long_is_an_error(
    slow: SlowFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hdfs_client, "_AT_ONCE_BYTES", len(CONTENT))
    with pytest.raises(TimeoutError, match="HDFS did not answer in time"):
        HdfsClient(SECONDS).write_new(FILE, CONTENT)
    assert not slow.is_closed


@dataclass
class Listing:
    """Names as they are listed; None stands for a directory that has gone. It is also a client."""

    left: list[str | None]

    def list_status(self, *_: object, **__: object) -> "Listing":
        """The names."""
        return self

    def __iter__(self) -> "Listing":
        return self

    def __next__(self) -> str:
        """The next name."""
        if not self.left:
            raise StopIteration
        name = self.left.pop(0)
        if name is None:
            raise FileNotFoundError(name)
        return name


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        ([], []),
        ([None], []),
        (["a", "a/1"], ["a", "a/1"]),
        (["a", None, "b", None, None, "b/1", "c", None], ["a", "b", "b/1", "c"]),
    ],
    ids=["empty", "not there", "whole", "changing"],
)
def test_a_listing_lacks_only_what_goes_while_it_is_made(
    listed: list[str | None], found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hdfs_client, "_make_client", lambda *_: Listing(listed))
    assert [str(each) for each in HdfsClient(SECONDS).list_directory(FILE, deep=True)] == found
