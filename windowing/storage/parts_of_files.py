"""A file of a store of which parts are read: each read is a request for those bytes."""

import io
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

ReadPart = Callable[[int, int], bytes]
"""The bytes from the first number up to the second one, which is not inside."""
_AT_ONCE_BYTES = 1_000_000


def open_parts(size: int, read: ReadPart) -> pa.NativeFile:
    """A file of so many bytes, of which `read` gets parts; at least a million at once."""
    return pa.PythonFile(io.BufferedReader(_Parts(size, read), _AT_ONCE_BYTES), mode="r")


class _Parts(io.RawIOBase):
    """A file of so many bytes, of which each read is a request."""

    def __init__(self, size: int, read: ReadPart) -> None:
        self._size, self._read_part, self._at = size, read, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: "WriteableBuffer") -> int:
        wanted = memoryview(buffer)
        end = min(self._at + len(wanted), self._size)
        length = max(0, end - self._at)
        if length:
            wanted[:length] = self._read_part(self._at, end)
            self._at = end
        return length
