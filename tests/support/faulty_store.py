"""A store on which calls fail as they do on storage behind a network."""

import errno
import os
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

import pyarrow as pa

from windowing.location import Location
from windowing.storage.store import Store, StoredFile

Result = TypeVar("Result")


class Fault(Enum):
    """What happens to a call that changes something."""

    LOST = "it is not done, and its caller gets an error"
    UNANSWERED = "it is done, and its caller gets an error"


@dataclass
class PassingStore:
    """A store that does what `inner` does. Each change goes through `_change`."""

    inner: Store

    def read(self, file: Location) -> bytes | None:
        """As `inner` does."""
        return self.inner.read(file)

    def open(self, file: Location) -> pa.NativeFile:
        """As `inner` does."""
        return self.inner.open(file)

    def identify(self, file: Location) -> Hashable:
        """As `inner` does."""
        return self.inner.identify(file)

    def write(self, file: Location, content: bytes) -> None:
        """A change."""
        self._change(lambda: self.inner.write(file, content))

    def create(self, file: Location, content: bytes) -> bool:
        """A change."""
        return self._change(lambda: self.inner.create(file, content))

    def copy(self, source: Location, target: Location) -> None:
        """A change."""
        self._change(lambda: self.inner.copy(source, target))

    def list_names(self, directory: Location) -> Iterator[str]:
        """As `inner` does."""
        return self.inner.list_names(directory)

    def list_files(self, directory: Location) -> Mapping[str, StoredFile]:
        """As `inner` does."""
        return self.inner.list_files(directory)

    def delete(self, directory: Location) -> None:
        """A change."""
        self._change(lambda: self.inner.delete(directory))

    def drop_drafts(self, directory: Location) -> None:
        """A change."""
        self._change(lambda: self.inner.drop_drafts(directory))

    def _change(self, does: Callable[[], Result]) -> Result:
        return does()


@dataclass
class FaultyStore(PassingStore):
    """`inner`, of whose changes the one at place `at`, counted from 0, meets `fault`."""

    fault: Fault
    at: int
    changes: int = 0

    def _change(self, does: Callable[[], Result]) -> Result:
        place, self.changes = self.changes, self.changes + 1
        if place != self.at:
            return does()
        if self.fault is Fault.UNANSWERED:
            does()
        raise OSError(errno.EIO, os.strerror(errno.EIO), self.fault.value)
