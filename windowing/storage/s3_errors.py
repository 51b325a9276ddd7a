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
_STATUS = re.compile(r"status code(?:\x1b\[\d+m|\W)+(\d{3})")
"""How the libraries quote an answer: in one line, or as a tree in colours."""
_MISSING = re.compile(r"(<Code>NoSuchKey</Code>|404 Not Found)")
_NO_KEYS = (
    "no credentials found in chain",
    "/latest/api/token",
    "/latest/meta-data",
    "169.254.169.254",
    "169.254.170.2",
    "EKS token file",
)
"""What errors quote where the services of instances and containers were asked for keys, in vain.

Those are asked last, so nothing else has any keys.
"""
_EXPIRED = "the credentials have expired; renew them"
_REFUSED = "the credentials are refused; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_ELSEWHERE = (errno.EINVAL, "the bucket is in another region; set AWS_REGION")
_BY_CODE = {
    "AccessDenied": (errno.EACCES, "the credentials do not allow it"),
    "ExpiredToken": (errno.EACCES, _EXPIRED),
    "InvalidToken": (errno.EACCES, _EXPIRED),
    "TokenRefreshRequired": (errno.EACCES, _EXPIRED),
    "InvalidAccessKeyId": (errno.EACCES, _REFUSED),
    "SignatureDoesNotMatch": (errno.EACCES, _REFUSED),
    "RequestTimeTooSkewed": (errno.EACCES, "the clock of this host is not that of the store"),
    "NoSuchBucket": (errno.ENOENT, "there is no such bucket; check its name"),
    "PermanentRedirect": _ELSEWHERE,
    "AuthorizationHeaderMalformed": _ELSEWHERE,
    "NotImplemented": (errno.ENOTSUP, "the store can't do it"),
    "SlowDown": (errno.EBUSY, "the store has too much to do"),
    "ServiceUnavailable": (errno.EBUSY, "the store has too much to do"),
}
_ABSENT = (
    errno.EACCES,
    "no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to "
    "a profile with keys (`aws configure export-credentials --format env` prints those of others)",
)
_LOST = (errno.EIO, "the connection to the store was lost")
_UNREACHABLE = (errno.ECONNREFUSED, "the store can't be reached; check AWS_ENDPOINT_URL")
_SILENT = (errno.ETIMEDOUT, "the store did not answer in time")
_BY_WORDS = {
    "kind: Connect": _UNREACHABLE,
    "client error (Connect)": _UNREACHABLE,
    "kind: Timeout": _SILENT,
    "operation timed out": _SILENT,
    "without LOCATION": _ELSEWHERE,
    "credential": _ABSENT,
    "HTTP error": _LOST,
}
"""Of errors that are no answers, by words of the library, which has no class for them."""
_DENIED = (errno.EACCES, "the store refuses the credentials")


class NoAnswer(OSError):
    """An error after which it is unknown whether the store did what it was asked."""


class NoBucket(OSError):
    """An error of a bucket that is not there, which is no missing file."""


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
        if _find(_CODE, str(error)) == "NoSuchBucket":
            raise explain(place, error) from None
        raise
    except (BaseError, ValueError) as error:
        raise explain(place, error) from None


def explain(place: Location, error: Exception) -> OSError:
    """The error of a file system for one of the library."""
    if isinstance(error, ValueError):
        return OSError(errno.EINVAL, "S3 can't have a file of this name", place.text)
    denied = isinstance(error, PermissionDeniedError | UnauthenticatedError)
    return _explain(place, str(error)) or (
        OSError(*_DENIED, place.text) if denied else NoAnswer(*_LOST, place.text)
    )


def find_error(place: Location, text: str) -> OSError | None:
    """The error of a file system that a message of delta-rs tells of; None where it tells of none.

    A file that is missing is none, because its table is damaged then.
    """
    is_known = _find(_CODE, text) in _BY_CODE or _lacks_keys(text)
    is_missing = _find(_MISSING, text) is not None and not is_known
    return None if is_missing else _explain(place, text)


def _explain(place: Location, text: str) -> OSError | None:
    """The error that the text of any library tells of, as far as S3 or the way to it is named."""
    if _lacks_keys(text):
        return OSError(*_ABSENT, place.text)
    code, status = _find(_CODE, text), _find(_STATUS, text)
    if code in _BY_CODE:
        known = NoBucket if code == "NoSuchBucket" else OSError
        return known(*_BY_CODE[code], place.text)
    if code or status:
        # Behind an error of its own a server may have done what it was asked.
        kind = OSError if status and status.startswith("4") else NoAnswer
        return kind(errno.EIO, f"the store answered {code or status}", place.text)
    found = next((found for words, found in _BY_WORDS.items() if words in text), None)
    return None if found is None else NoAnswer(*found, place.text)


def _lacks_keys(text: str) -> bool:
    return any(words in text for words in _NO_KEYS)


def _find(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1] if found else None
