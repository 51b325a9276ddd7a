"""What HDFS answers, as errors of a file system: each with a sentence, and none with a Java page.

An answer of HDFS is the trace of its server. Nothing of it but the class of the error is passed on.
"""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from windowing.location import Location

_CLASS = re.compile(r"\b(?:org\.apache\.hadoop|java)(?:\.\w+)*\.(\w+(?:Exception|Error))")
"""How both libraries quote the class of an answer."""
_NUMBER = re.compile(r"\(os error (\d+)\)")
_BY_CLASS = {
    "AccessControlException": (errno.EACCES, "this user may not do it; see HADOOP_USER_NAME"),
    "SafeModeException": (errno.EBUSY, "the name node is in safe mode"),
    "StandbyException": (errno.EBUSY, "no name node of the cluster is active"),
    "NSQuotaExceededException": (errno.EDQUOT, "the directory may have no more files"),
    "DSQuotaExceededException": (errno.EDQUOT, "the directory may have no more bytes"),
    "InvalidPathException": (errno.EINVAL, "HDFS can't have a file of this name"),
}
_MISSING = ("FileNotFoundException", "ParentNotDirectoryException")
"""Where a file is missing, or one of the directories above it is a file."""
_BELOW_A_FILE = "(is not a directory)"
"""What HDFS says, as a lack of permission, where one of the directories above is a file."""
_LOST = (errno.EIO, "the connection to HDFS was lost")
_UNREACHABLE = (errno.ECONNREFUSED, "the name node can't be reached; check host and port")
_OF_THE_WAY = ("communicating with HDFS", "HdfsObjectStore")


@contextmanager
def errors_of_hdfs(place: Location) -> Iterator[None]:
    """OSError with number and sentence for whatever HDFS, or the way to it, refuses.

    FileNotFoundError and FileExistsError are passed on, or raised where HDFS says it otherwise.
    """
    try:
        yield
    except (FileNotFoundError, FileExistsError):
        raise
    except (OSError, RuntimeError) as error:
        raise _explain(place, str(error)) from None


def find_error(place: Location, text: str) -> OSError | None:
    """The error of a file system that a message of delta-rs tells of; None where it tells of none.

    A file that is missing is none, because its table is damaged then.
    """
    found = _CLASS.search(text)
    if found is not None and found[1] in _BY_CLASS:
        return OSError(*_BY_CLASS[found[1]], place.text)
    is_missing = found is not None and found[1] in _MISSING
    is_of_the_way = not is_missing and any(words in text for words in _OF_THE_WAY)
    return _explain_way(place, text) if is_of_the_way else None


def find_number(text: str) -> int | None:
    """The number of the system's error that a message of any library quotes; None without one."""
    found = _NUMBER.search(text)
    return int(found[1]) if found else None


def _explain(place: Location, text: str) -> OSError:
    found = _CLASS.search(text)
    if found is None:
        return _explain_way(place, text)
    if found[1] in _MISSING or _BELOW_A_FILE in text:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), place.text)
    if found[1] in _BY_CLASS:
        return OSError(*_BY_CLASS[found[1]], place.text)
    return OSError(errno.EIO, f"HDFS answered {found[1]}", place.text)


def _explain_way(place: Location, text: str) -> OSError:
    is_refused = find_number(text) == errno.ECONNREFUSED
    return OSError(*(_UNREACHABLE if is_refused else _LOST), place.text)
