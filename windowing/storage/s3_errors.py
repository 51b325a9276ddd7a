"""What S3 answers, as errors of a file system: each with a sentence, and none with a secret.

An answer of S3 may repeat the token of a session, so nothing of it but its code is passed on.
"""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from windowing.location import Location

_CODE = re.compile(r"<Code>(\w+)</Code>")
"""How S3 names what is wrong."""
_STATUS = re.compile(r"status code: (\d{3})")
_EXPIRED = "the credentials have expired; renew them"
_REFUSED = "the credentials are refused; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_BY_CODE = {
    "AccessDenied": (errno.EACCES, "the credentials do not allow it"),
    "ExpiredToken": (errno.EACCES, _EXPIRED),
    "InvalidToken": (errno.EACCES, _EXPIRED),
    "TokenRefreshRequired": (errno.EACCES, _EXPIRED),
    "InvalidAccessKeyId": (errno.EACCES, _REFUSED),
    "SignatureDoesNotMatch": (errno.EACCES, _REFUSED),
    "RequestTimeTooSkewed": (errno.EACCES, "the clock of this host is not that of the store"),
    "NoSuchBucket": (errno.ENOENT, "there is no such bucket"),
    "PermanentRedirect": (errno.EINVAL, "the bucket is in another region; set AWS_REGION"),
    "NotImplemented": (errno.ENOTSUP, "the store can't do it"),
    "SlowDown": (errno.EBUSY, "the store has too much to do"),
    "ServiceUnavailable": (errno.EBUSY, "the store has too much to do"),
}
_BY_WORDS = {
    "kind: Connect": (errno.ECONNREFUSED, "the store can't be reached; check AWS_ENDPOINT_URL"),
    "kind: Timeout": (errno.ETIMEDOUT, "the store did not answer in time"),
    "without LOCATION": _BY_CODE["PermanentRedirect"],
    "credential": (errno.EACCES, "no credentials were found"),
}
"""Of errors that are no answers, by words of the library, which has no class for them."""
_DENIED = (errno.EACCES, "the store refuses the credentials")


class NoAnswer(OSError):
    """An error after which it is unknown whether the store did what it was asked."""


@contextmanager
def errors_of_s3(place: Location) -> Iterator[None]:
    """OSError with number and sentence for whatever the store, or the way to it, refuses.

    Passed on are FileNotFoundError, where the bucket has no such file, and the two errors of a
    condition that is not met.
    """
    try:
        yield
    except (AlreadyExistsError, PreconditionError):
        raise
    except FileNotFoundError as error:
        if _find_code(error) == "NoSuchBucket":
            raise explain(place, error) from None
        raise
    except (BaseError, ValueError) as error:
        raise explain(place, error) from None


def explain(place: Location, error: Exception) -> OSError:
    """The error of a file system for one of the library."""
    number, sentence, was_answered = _classify(error)
    kind = OSError if was_answered else NoAnswer
    return kind(number, sentence, place.text)


def _classify(error: Exception) -> tuple[int, str, bool]:
    """Number and sentence of an error, and whether the store has answered."""
    text = str(error)
    code, status = _find_code(error), _STATUS.search(text)
    if code in _BY_CODE:
        return (*_BY_CODE[code], True)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return (*_DENIED, True)
    if isinstance(error, ValueError):
        return errno.EINVAL, "S3 can't have a file of this name", True
    if code or status:
        answer = code or (status[1] if status else "")
        # Behind an error of its own a server may have done what it was asked.
        was_refused = status is not None and status[1].startswith("4")
        return errno.EIO, f"the store answered {answer}", was_refused
    for words, found in _BY_WORDS.items():
        if words in text:
            return (*found, False)
    return errno.EIO, "the connection to the store was lost", False


def _find_code(error: Exception) -> str | None:
    found = _CODE.search(str(error))
    return found[1] if found else None
