"""Ends the earlier try of a task that a scheduler has lost, so that the next try can begin.

A run that is ended loses nothing, because the next one finishes what it left.

file of the lock -> who locked it last -> is it an earlier try, and nobody else after it? -> its end
"""

import fcntl
import struct
from typing import BinaryIO

from jobs.locking.attempt import Attempt
from jobs.locking.holder import Holder, parse_holder
from jobs.locking.running_process import end_processes

_FLOCK = "hhqqi0q"
"""The structure `flock` of fcntl(2): type, whence, start, length and process."""


def end_earlier_try(file: BinaryIO, attempt: Attempt) -> Holder | None:
    """Whoever had locked the file last and was ended, as it was an earlier try of the same task.

    It need not hold the lock now: a backfill holds it only while it writes. None where somebody
    else does, where that try has ended by itself, and where it can't be ended from here: on another
    machine or in another container, as another user, or where it does not end.
    """
    file.seek(0)
    holder = parse_holder(file.read())
    if holder is None or not attempt.follows(holder.attempt):
        return None
    # What the file says may be of a holder before the one of now.
    locked_by = find_locking_process(file)
    if locked_by not in (None, *(each.process for each in holder.processes)):
        return None
    return end_holder(holder)


def end_holder(holder: Holder) -> Holder | None:
    """`holder`, if its processes ran on this system and have ended now; None where not."""
    try:
        return holder if end_processes(holder.processes) else None
    except PermissionError:
        return None


def find_locking_process(file: BinaryIO) -> int | None:
    """The process that has locked the file; None where this one could lock it.

    It is 0 where that process is not one of those that this process can see.
    """
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, 0, 0, 0, 0)
    found, _, _, _, process = struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, asked))
    return None if found == fcntl.F_UNLCK else int(process)
