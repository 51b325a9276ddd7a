"""What HDFS and the way to it say, as errors of a file system."""

import errno

import pytest

from windowing.location import Location
from windowing.storage.hdfs_errors import errors_of_hdfs, find_error
from windowing.storage.system_errors import find_system_error

PLACE = Location("hdfs://node:8020/lake/a")
TRACE = "\n\tat org.apache.hadoop.hdfs.server.namenode.FSDirectory.check(FSDirectory.java:1)"


@pytest.mark.parametrize(
    ("said", "number", "sentence"),
    [
        (
            'RPCError("org.apache.hadoop.security.AccessControlException", "denied")',
            errno.EACCES,
            "this user may not do it",
        ),
        (
            'RPCError("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "")',
            errno.EBUSY,
            "the name node is in safe mode",
        ),
        (
            'RPCError("org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", "")',
            errno.EDQUOT,
            "the directory may have no more bytes",
        ),
        ('RPCError("org.apache.hadoop.ipc.OddException", "a b")', errno.EIO, "HDFS answered OddE"),
        ("Connection refused (os error 111)", errno.ECONNREFUSED, "can't be reached"),
        ('DataTransferError("x")', errno.EIO, "the connection to HDFS was lost"),
    ],
)
def test_an_error_has_a_number_and_a_sentence(said: str, number: int, sentence: str) -> None:
    with pytest.raises(OSError, match=sentence) as refused, errors_of_hdfs(PLACE):
        raise RuntimeError(said + TRACE)
    assert (refused.value.errno, refused.value.filename) == (number, PLACE.text)
    assert "FSDirectory" not in str(refused.value)


def test_a_file_below_another_file_is_none() -> None:
    said = 'RPCError("org.apache.hadoop.security.AccessControlException", "/a (is not a directory)'
    with pytest.raises(FileNotFoundError), errors_of_hdfs(PLACE):
        raise RuntimeError(said)


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("Generic HdfsObjectStore error\n IO error occurred while communicating with HDFS", 5),
        ("RPC error: org.apache.hadoop.security.AccessControlException denied", errno.EACCES),
    ],
)
def test_an_error_of_delta_rs_is_found_by_its_words(said: str, number: int) -> None:
    found = find_system_error(PLACE, ValueError(said))
    assert found is not None
    assert found.errno == number


def test_what_is_wrong_with_a_table_is_no_error_of_hdfs() -> None:
    assert find_error(PLACE, "Generic delta kernel error: No files in log segment") is None
    missing = "Generic HdfsObjectStore error: java.io.FileNotFoundException: File does not exist"
    assert find_error(PLACE, missing) is None
