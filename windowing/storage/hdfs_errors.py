"""What HDFS answers, as errors of a file system: each with a sentence, and none with a Java page.

An answer of HDFS is the trace of its server. Nothing of it but the class of the error is passed on.
"""

import errno
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from windowing.location import HDFS, Location

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
_NO_HOST = "failed to lookup address"
_NO_NODES = (
    errno.EINVAL,
    "HADOOP_CONF_DIR names no name nodes for {cluster}; set it to the directory with the settings "
    "of that cluster, or add the port, as in hdfs://{cluster}:8020",
)
_BAD_FILE = (errno.EINVAL, "core-site.xml or hdfs-site.xml in HADOOP_CONF_DIR is no whole XML file")
_NO_LOGIN = (
    errno.EACCES,
    "HDFS and this process agree on no way to log in; check hadoop.security.authentication in "
    "HADOOP_CONF_DIR",
)
_NO_TICKET = (errno.EACCES, "Kerberos does not log this process in to HDFS; check klist and kinit")
_ERASURE_CODED = (
    errno.ENOTSUP,
    "the directory is erasure-coded, where HDFS can't make sure that a write lasts; use one whose "
    "files are replicated (hdfs ec -setPolicy -replicate)",
)
_NOT_IN_CLIENT = (errno.ENOTSUP, "the cluster has something that the client of HDFS lacks")
_LACKING = "UnsupportedFeature"
_BY_SETTING = {
    "No NameNode hosts found": _NO_NODES,
    "XmlParseError": _BAD_FILE,
    "XML parse error": _BAD_FILE,
    "GSSAPIError": _NO_TICKET,
    "GSSAPI error": _NO_TICKET,
    "libgssapi": _NO_TICKET,
    "SASLError": _NO_LOGIN,
    "SASL error": _NO_LOGIN,
    "NoSASLMechanism": _NO_LOGIN,
    "No valid SASL mechanism": _NO_LOGIN,
    "SIMPLE authentication is not enabled": _NO_LOGIN,
    "hsync is not supported": _ERASURE_CODED,
    _LACKING: _NOT_IN_CLIENT,
    "operation not supported": _NOT_IN_CLIENT,
    "UnsupportedErasureCodingPolicy": _NOT_IN_CLIENT,
    "unsupported erasure coding policy": _NOT_IN_CLIENT,
}
"""By words of either library, of which each has its own: what only other settings change."""


class WrongSettings(OSError):
    """An error that comes again until settings of this process or of the cluster are others."""


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
        # The client tells what it can't do by a kind of RuntimeError, and all else by that itself.
        is_lacking = isinstance(error, RuntimeError) and type(error) is not RuntimeError
        text = f"{_LACKING}: {error}" if is_lacking else str(error)
        raise _explain(place, text) from None


def check_settings(place: Location, environ: Mapping[str, str]) -> None:
    """WrongSettings where settings alone name the name nodes, and Spark is not told where they are.

    The client would find them below HADOOP_HOME, too, where Spark does not look.
    """
    cluster = place.cluster_and_path[0].removeprefix(HDFS)
    if ":" not in cluster and not environ.get("HADOOP_CONF_DIR"):
        raise _make_setting(place, *_NO_NODES)


def find_error(place: Location, text: str) -> OSError | None:
    """The error of a file system that a message of delta-rs tells of; None where it tells of none.

    A file that is missing is none, because its table is damaged then.
    """
    setting = _find_setting(place, text)
    if setting is not None:
        return setting
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
    setting = _find_setting(place, text)
    if setting is not None:
        return setting
    found = _CLASS.search(text)
    if found is None:
        return _explain_way(place, text)
    if found[1] in _MISSING or _BELOW_A_FILE in text:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), place.text)
    if found[1] in _BY_CLASS:
        return OSError(*_BY_CLASS[found[1]], place.text)
    return OSError(errno.EIO, f"HDFS answered {found[1]}", place.text)


def _find_setting(place: Location, text: str) -> WrongSettings | None:
    """The error of a setting that a message tells of; None where it tells of none."""
    told = next((told for words, told in _BY_SETTING.items() if words in text), None)
    return None if told is None else _make_setting(place, *told)


def _make_setting(place: Location, number: int, sentence: str) -> WrongSettings:
    cluster = place.cluster_and_path[0].removeprefix(HDFS)
    return WrongSettings(number, sentence.format(cluster=cluster), place.text)


def _explain_way(place: Location, text: str) -> OSError:
    is_unreachable = find_number(text) == errno.ECONNREFUSED or _NO_HOST in text
    return OSError(*(_UNREACHABLE if is_unreachable else _LOST), place.text)
