"""The directory where the engine of this user and environment listens; nobody else can enter it."""

import os
import stat
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

from windowing.errors import UsageError

_PRIVATE = 0o700


@dataclass(frozen=True)
class EngineDirectory:
    """An open directory that belongs to this user alone, and the engine's files in it."""

    path: Path
    descriptor: int

    @property
    def socket(self) -> str:
        """The socket, by way of the open directory.

        A path is then never too long for a socket, and always in the directory that was checked.
        """
        return f"/proc/self/fd/{self.descriptor}/socket"

    @property
    def lock(self) -> Path:
        """The file whose lock the engine holds as long as it lives."""
        return self.path / "lock"

    @property
    def log(self) -> Path:
        """What the engine and its JVM print, since the engine was started."""
        return self.path / "log"


def find_directory() -> EngineDirectory | None:
    """The directory, or None where no engine was ever started.

    Raises UsageError for a directory that belongs to somebody else or that others can enter.
    """
    try:
        return _open_directory()
    except FileNotFoundError:
        return None


def make_directory() -> EngineDirectory:
    """The directory, which is made where it does not exist. Raises what `find_directory` does."""
    for directory in (_user_directory(), _directory()):
        try:
            directory.mkdir(mode=_PRIVATE, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"{directory} can't be made ({error.strerror}); the engine needs a directory of "
                "yours there; set XDG_RUNTIME_DIR to one, or TIDEMARK_ENGINE=off"
            ) from error
    return _open_directory()


def _open_directory() -> EngineDirectory:
    # What lies in a private directory can't be exchanged by others, so the outer one comes first.
    os.close(_open_private(_user_directory()))
    return EngineDirectory(_directory(), _open_private(_directory()))


def _user_directory() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "tidemark"
    return Path(os.environ.get("TMPDIR") or "/tmp") / f"tidemark-{os.getuid()}"


def _directory() -> Path:
    """One for each environment that Tidemark is installed in."""
    return _user_directory() / f"{zlib.crc32(os.fsencode(sys.prefix)):08x}"


def _open_private(directory: Path) -> int:
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UsageError(
            f"{directory} is not a directory that you can read ({error.strerror}); the engine "
            "needs one of yours there, and no link; remove it, or set TIDEMARK_ENGINE=off"
        ) from error
    found = os.fstat(descriptor)
    mode = stat.S_IMODE(found.st_mode)
    # What a setgid directory gets inside inherits that bit, which lets nobody in.
    if found.st_uid == os.getuid() and mode & 0o777 == _PRIVATE:
        return descriptor
    os.close(descriptor)
    raise UsageError(
        f"{directory} belongs to user {found.st_uid} and has mode {mode:04o}; the engine only uses "
        f"a directory of user {os.getuid()} with mode 0700; remove it, or set TIDEMARK_ENGINE=off"
    )
