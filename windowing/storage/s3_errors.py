"""What S3 answers, as errors of a file system: each with a sentence, and none with a secret.

An answer of S3 may repeat the token of a session, so nothing of it but its code is passed on.
"""

import errno
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from windowing.location import Location

_Told = tuple[int, str]
"""The number and the sentence of an error."""
_CODE = re.compile(r"<Code>(\w+)</Code>")
"""How S3 names what is wrong."""
_STATUS = re.compile(r"status code(?:\x1b\[\d+m|\W)+(\d{3})")
"""How the libraries quote an answer: in one line, or as a tree in colours."""
_MISSING = re.compile(r"(<Code>NoSuchKey</Code>|404 Not Found)")
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
_UNTRUSTED = (
    errno.EPROTO,
    "nobody here knows the authority that signed the certificate of the store; name the file of "
    "that authority in SSL_CERT_FILE, and for Spark a trust store in JAVA_TOOL_OPTIONS",
)
_WRONG_CERTIFICATE = (
    errno.EPROTO,
    "the certificate of the store is not valid for it; check its names and dates, and "
    "AWS_ENDPOINT_URL",
)
_NEVER_ASKED = {
    "no credentials found in chain": _ABSENT,
    "/latest/api/token": _ABSENT,
    "/latest/meta-data": _ABSENT,
    "169.254.169.254": _ABSENT,
    "169.254.170.2": _ABSENT,
    "EKS token file": _ABSENT,
    "UnknownIssuer": _UNTRUSTED,
    "InvalidCertificate": _WRONG_CERTIFICATE,
    "invalid peer certificate": _WRONG_CERTIFICATE,
}
"""Of requests that did not get as far as the store, by words that errors quote.

The services of instances and containers are asked for keys last, so nothing else has any.
"""
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
_ODD_NAME = (
    errno.EINVAL,
    "the name of an object there is no path, because it has //, /./, /../ or a control character; "
    "move that object away",
)
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
    if isinstance(error, InvalidPathError):
        return OSError(*_ODD_NAME, place.text)
    denied = isinstance(error, PermissionDeniedError | UnauthenticatedError)
    return _explain(place, str(error)) or (
        OSError(*_DENIED, place.text) if denied else NoAnswer(*_LOST, place.text)
    )


def find_error(place: Location, text: str) -> OSError | None:
    """The error of a file system that a message of delta-rs tells of; None where it tells of none.

    A file that is missing is none, because its table is damaged then.
    """
    is_known = _find(_CODE, text) in _BY_CODE or _find_by_words(_NEVER_ASKED, text) is not None
    is_missing = _find(_MISSING, text) is not None and not is_known
    return None if is_missing else _explain(place, text)


def _explain(place: Location, text: str) -> OSError | None:
    """The error that the text of any library tells of, as far as S3 or the way to it is named."""
    never_asked = _find_by_words(_NEVER_ASKED, text)
    if never_asked is not None:
        return OSError(*never_asked, place.text)
    code, status = _find(_CODE, text), _find(_STATUS, text)
    if code in _BY_CODE:
        known = NoBucket if code == "NoSuchBucket" else OSError
        return known(*_BY_CODE[code], place.text)
    if code or status:
        # Behind an error of its own a server may have done what it was asked.
        kind = OSError if status and status.startswith("4") else NoAnswer
        return kind(errno.EIO, f"the store answered {code or status}", place.text)
    found = _find_by_words(_BY_WORDS, text)
    return None if found is None else NoAnswer(*found, place.text)


def _find_by_words(known: Mapping[str, _Told], text: str) -> _Told | None:
    return next((found for words, found in known.items() if words in text), None)


def _find(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1] if found else None
