"""What HDFS and the way to it say, as errors of a file system."""

import errno
import re
from pathlib import Path

import pytest

from jobs.cli.errors import explain_error
from tests.support.hdfs_server import write_settings
from windowing.location import Location
from windowing.storage.hdfs_client import HdfsClient
from windowing.storage.hdfs_errors import WrongSettings, errors_of_hdfs, find_error
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
        ("failed to lookup address information: Name or", errno.ECONNREFUSED, "can't be reached"),
        ('DataTransferError("x")', errno.EIO, "the connection to HDFS was lost"),
    ],
)
def test_an_error_has_a_number_and_a_sentence(said: str, number: int, sentence: str) -> None:
    with pytest.raises(OSError, match=sentence) as refused, errors_of_hdfs(PLACE):
        raise RuntimeError(said + TRACE)
    assert (refused.value.errno, refused.value.filename) == (number, PLACE.text)
    assert "FSDirectory" not in str(refused.value)


NO_NODES = (
    "HADOOP_CONF_DIR names no name nodes for Ns; set it to the directory with the settings of that "
    "cluster, or add the port, as in hdfs://Ns:8020"
)
NO_LOGIN = (
    "HDFS and this process agree on no way to log in; check hadoop.security.authentication in "
    "HADOOP_CONF_DIR"
)
NO_TICKET = "Kerberos does not log this process in to HDFS; check klist and kinit"
NO_XML = "core-site.xml or hdfs-site.xml in HADOOP_CONF_DIR is no whole XML file"
ERASURE_CODED = (
    "the directory is erasure-coded, where HDFS can't make sure that a write lasts; use one whose "
    "files are replicated (hdfs ec -setPolicy -replicate)"
)
LACKS = "the cluster has something that the client of HDFS lacks"


class Lacking(RuntimeError):
    """As the client raises for what it can't do."""


ANSWER = 'RPCError("org.apache.hadoop.security.AccessControlException", '


@pytest.mark.parametrize(
    ("error", "as_delta_rs_says_it", "sentence"),
    [
        (
            RuntimeError('InvalidArgument("No NameNode hosts found")'),
            "invalid argument\n ↳ No NameNode hosts found",
            NO_NODES,
        ),
        (
            RuntimeError("XmlParseError(UnclosedRootNode)"),
            "XML parse error\n ↳ the root node was opened but never closed",
            NO_XML,
        ),
        (RuntimeError('SASLError("denied")'), "SASL error\n ↳ denied", NO_LOGIN),
        (RuntimeError("NoSASLMechanism"), "No valid SASL mechanism found", NO_LOGIN),
        (
            RuntimeError(f'{ANSWER}"SIMPLE authentication is not enabled.")'),
            "RPC error\n ↳ org.apache.hadoop.security.AccessControlException: SIMPLE "
            "authentication is not enabled.  Available:[TOKEN, KERBEROS]",
            NO_LOGIN,
        ),
        (RuntimeError("GSSAPIError(Major, 1)"), "GSSAPI error\n ↳ 1", NO_TICKET),
        (
            Lacking("hsync is not supported for erasure-coded files"),
            "operation not supported\n ↳ hsync is not supported for erasure-coded files",
            ERASURE_CODED,
        ),
        (Lacking("a cipher"), "operation not supported\n ↳ a cipher", LACKS),
        (RuntimeError('UnsupportedFeature("a")'), "operation not supported\n ↳ a", LACKS),
    ],
    ids=[
        *("nodes", "xml", "sasl", "no-sasl", "simple", "gssapi", "erasure-coded", "class"),
        "feature",
    ],
)
def test_what_other_settings_change_says_which_and_exits_as_a_wrong_use(
    error: Exception, as_delta_rs_says_it: str, sentence: str
) -> None:
    place = Location("hdfs://Ns/lake/a")
    with pytest.raises(WrongSettings) as refused, errors_of_hdfs(place):
        raise error
    said = f"Generic HdfsObjectStore error\n ↳ {as_delta_rs_says_it}"
    for met in (refused.value, find_system_error(place, OSError(said))):
        assert isinstance(met, WrongSettings)
        assert (met.strerror, met.filename) == (sentence, place.text)
        failure = explain_error(met)
        assert (failure.message, failure.code) == (f"{place}: {sentence}", 2)


def test_a_nameservice_is_refused_where_spark_does_not_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client alone looks below HADOOP_HOME."""
    settings = {
        "dfs.nameservices": "Ns",
        "dfs.ha.namenodes.Ns": "one",
        "dfs.namenode.rpc-address.Ns.one": "127.0.0.1:1",
    }
    conf = tmp_path / "etc" / "hadoop"
    conf.mkdir(parents=True)
    write_settings(conf / "core-site.xml", {})
    write_settings(conf / "hdfs-site.xml", settings)
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    with pytest.raises(WrongSettings, match=re.escape(NO_NODES)):
        HdfsClient(30.0).find(Location("hdfs://Ns/lake"))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(conf))
    with pytest.raises(OSError, match="can't be reached"):
        HdfsClient(30.0).find(Location("hdfs://Ns/lake"))


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
