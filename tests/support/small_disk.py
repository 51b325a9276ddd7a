"""A disk that can be full: a file system in memory where this process may mount one."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOSPC
from pathlib import Path

_BLOCK = 4096
_BALLAST = "dump-of-somebody-else"


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[bool]:
    """Mounts a disk of that size at a new directory; False where that is not allowed."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, check=False)
    try:
        yield done.returncode == 0
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill_disk(place: Path, left: int) -> Path:
    """Fills the disk but for that many blocks of 4 KB; the file to delete."""
    ballast = place / _BALLAST
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(_BLOCK)) == _BLOCK:
                pass
        except OSError as error:
            if error.errno != ENOSPC:
                raise
        file.truncate(max(0, file.tell() - left * _BLOCK))
    return ballast
