"""The error of the system, of S3 or HDFS, that an error of a library tells of in its text alone."""

import os
from errno import ENOENT

from windowing.location import Location
from windowing.storage import hdfs_errors


def find_system_error(path: Location, error: Exception) -> OSError | None:
    """OSError with number and sentence; None where the table at `path` itself is wrong."""
    if not path.is_local:
        is_missing = isinstance(error, FileNotFoundError)
        if isinstance(error, OSError) and error.errno is not None and not is_missing:
            # A store has found the sentence for it already, as for a bucket that is not there.
            return error
        found = _find_store_error(path, str(error))
        if found is not None:
            return found
    number = _find_number(error)
    if number is None or number == ENOENT:
        return None
    return OSError(number, os.strerror(number), path.text)


def find_cause_to_show(path: Location, error: Exception) -> Exception | None:
    """The error, but none of S3 or HDFS, whose answers may have a token or pages of Java."""
    return error if path.is_local else None


def _find_store_error(path: Location, text: str) -> OSError | None:
    if path.is_on_hdfs:
        return hdfs_errors.find_error(path, text)
    # A lake elsewhere needs no client of S3.
    from windowing.storage.s3_errors import find_error

    return find_error(path, text)


def _find_number(error: Exception) -> int | None:
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    return hdfs_errors.find_number(str(error))
