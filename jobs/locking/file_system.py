"""Which file system a lake on a disk lies in: locks and renames are promised on local ones alone.

mountinfo of this process, path -> mount -> UsageError, or nothing
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath

from windowing.errors import UsageError

VARIABLE = "TIDEMARK_ALLOW_FILE_SYSTEMS"
_MOUNTS = Path("/proc/self/mountinfo")
_SHARED = frozenset(
    (
        *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs2", "glusterfs", "gpfs", "lustre"),
        *("ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "prl_fs", "pvfs2", "smb3", "smbfs"),
        *("vboxsf", "virtiofs", "vmhgfs", "wekafs"),
    )
)
"""File systems that other machines may write to, as the kernel names them."""
_OVERLAY = "fuse.fuse-overlayfs"
"""The root of a container without root's rights; like any other overlay it is one machine's."""
_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """A mounted file system: its numbers in the tree of mounts, its directory and its type."""

    number: int
    parent: int
    directory: PurePosixPath
    type: str

    @property
    def is_shared(self) -> bool:
        """Whether other machines, or a program in place of a disk, may be behind it."""
        by_program = self.type == "fuse" or self.type.startswith("fuse.")
        return self.type in _SHARED or (by_program and self.type != _OVERLAY)


def find_mount(mountinfo: str, path: PurePath) -> Mount | None:
    r"""The mount that an absolute path without links lies in, by a text of the kernel's.

    A mount over a directory hides those that were mounted below it before. None where the text
    names no mount of the path.

    >>> text = "1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:9 / /data rw - nfs4 nas:/ rw\n"
    >>> find_mount(text, PurePosixPath("/data/lake")).type
    'nfs4'
    """
    mounts = [mount for mount in _parse(mountinfo) if path.is_relative_to(mount.directory)]
    numbers = {mount.number for mount in mounts}
    inner = [m for m in mounts if m.parent not in numbers or m.parent == m.number]
    found: Mount | None = None
    while inner:
        # A path comes to the outermost one first. Of two in one place the newer one is listed last.
        found = min(reversed(inner), key=lambda mount: len(mount.directory.parts))
        inner = [m for m in mounts if m.parent == found.number != m.number]
    return found


def _parse(mountinfo: str) -> Iterator[Mount]:
    """The mounts of a text; lines of another form are passed over."""
    for line in mountinfo.splitlines():
        place, _, system = line.partition(" - ")
        words, kind = place.split(" "), system.partition(" ")[0]
        if len(words) >= 6 and kind and words[0].isdecimal() and words[1].isdecimal():
            directory = PurePosixPath(_unescape(words[4]))
            yield Mount(int(words[0]), int(words[1]), directory, kind)


def _unescape(text: str) -> str:
    r"""A name as the file system has it; the kernel writes a space as `\040`.

    >>> _unescape(r"/my\040lake")
    '/my lake'
    """
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)


def refuse_shared(directory: Path, mount: Mount | None, allowed: str) -> None:
    """UsageError for a mount whose file system is shared, and not among the types `allowed`.

    These are separated by commas.
    """
    if mount is None or not mount.is_shared:
        return
    if mount.type in (name.strip() for name in allowed.split(",")):
        return
    raise UsageError(
        f"{directory} lies in a file system of type {mount.type}, mounted at {mount.directory}, "
        "where locks and renames do not keep two machines apart; use a local disk, S3 or HDFS, or "
        f"set {VARIABLE}={mount.type} if one machine alone ever writes there"
    )


def check_file_system(directory: Path) -> None:
    """UsageError where a directory, which need not be there yet, lies in a shared file system.

    Where the kernel tells of no mounts, as outside Linux, any is taken for local.
    """
    # A mount that waits for its first use is made by this look at what is in it.
    place = Path(os.path.realpath(directory))
    try:
        mountinfo = os.fsdecode(_MOUNTS.read_bytes())
    except OSError:
        return
    refuse_shared(directory, find_mount(mountinfo, place), os.environ.get(VARIABLE, ""))
