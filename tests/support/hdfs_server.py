"""A name node and a data node of HDFS, on this machine, for the tests that are marked `hdfs`.

python -m tests.support.hdfs_server      fetches the JAR with both, once
"""

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from urllib.request import urlopen

import pyspark
import pytest
from hdfs_native import Client, WriteOptions

from jobs.sessions.jars import name_file
from jobs.setup import fetch_into
from tests.support.fetched import fetch_or_tell
from tests.support.s3_server import find_free_port

VERSION = "3.4.2"
"""The one of Hadoop's classes that PySpark has."""
PACKAGE = f"org.apache.hadoop:hadoop-client-minicluster:{VERSION}"
SHA256 = "ae2406c544825b7734b8aad4f87eff60d9ec422284f0b16c2856032083b63c77"
SERVER = Path(__file__).parents[2] / ".tools" / name_file(PACKAGE)
_SPARK_JARS = Path(pyspark.__file__).parent / "jars"
_NEEDED = ("hadoop-client-api", "hadoop-client-runtime", "slf4j-api", "log4j-", "jcl-over-slf4j")
_NODES = "org.apache.hadoop.hdfs.server"
_NAME_NODE, _DATA_NODE = f"{_NODES}.namenode.NameNode", f"{_NODES}.datanode.DataNode"
_JAVA = ("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_FIGURES_AGE = 12.0
_NO_CALLS = re.compile("Overall|SendHeartbeat|BlockRe|.*Exception")
"""Figures of a name node that are sums, failures, or what data nodes ask."""
_PATIENCE = 60.0
"""Seconds within which a file can be written after the start."""
_NUMBERS = count(1)


@dataclass
class HdfsServer:
    """HDFS with all its files in the directory `home`, on a port of 127.0.0.1 that it keeps."""

    home: Path
    port: int
    http_port: int
    processes: "dict[str, subprocess.Popen[bytes]]" = field(default_factory=dict, repr=False)

    @property
    def url(self) -> str:
        """The URL of the cluster."""
        return f"hdfs://127.0.0.1:{self.port}"

    def make_home(self) -> str:
        """The URL of a directory that nobody else has."""
        return f"{self.url}/tests-{os.getpid()}-{next(_NUMBERS)}"

    def start(self) -> None:
        """Starts what does not run, and returns when files can be written."""
        if not (self.home / "name").exists():
            self._configure()
            subprocess.run(
                self._command(_NAME_NODE, "-format", "-force"),
                check=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
            )
        for node in (_NAME_NODE, _DATA_NODE):
            if node not in self.processes:
                self._start_node(node)
        self._await_answer()

    def kill(self) -> None:
        """Ends the name node as a lost machine ends; `start` brings it back with all its files."""
        process = self.processes.pop(_NAME_NODE)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """Ends all that runs."""
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.processes.clear()

    @property
    def name_node(self) -> int:
        """The process of the name node."""
        return self.processes[_NAME_NODE].pid

    def count_calls(self) -> Counter[str]:
        """How often each call of the name node was made since it was started; it takes seconds."""
        # The name node shows figures that are up to so old.
        time.sleep(_FIGURES_AGE)
        bean = f"Hadoop:service=NameNode,name=RpcDetailedActivityForPort{self.port}"
        url = f"http://127.0.0.1:{self.http_port}/jmx?qry={bean}"
        with urlopen(url, timeout=_PATIENCE) as answer:  # noqa: S310
            (figures,) = json.load(answer)["beans"]
        calls = {name.removesuffix("NumOps"): n for name, n in figures.items() if "NumOps" in name}
        return Counter({name: n for name, n in calls.items() if not _NO_CALLS.match(name)})

    def _configure(self) -> None:
        conf = self.home / "conf"
        conf.mkdir(parents=True)
        free = "127.0.0.1:0"
        write_settings(conf / "core-site.xml", {"fs.defaultFS": self.url})
        of_hdfs = {
            "dfs.namenode.name.dir": f"file://{self.home}/name",
            "dfs.datanode.data.dir": f"file://{self.home}/data",
            "dfs.replication": "1",
            "dfs.namenode.safemode.extension": "0",
            "dfs.namenode.http-address": f"127.0.0.1:{self.http_port}",
            "dfs.datanode.address": free,
            "dfs.datanode.http.address": free,
            "dfs.datanode.ipc.address": free,
            "dfs.heartbeat.interval": "1",
        }
        write_settings(conf / "hdfs-site.xml", of_hdfs)

    def _start_node(self, node: str) -> None:
        with (self.home / "log").open("ab") as log:
            self.processes[node] = subprocess.Popen(
                self._command(node), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _command(self, node: str, *words: str) -> list[str]:
        jars = [jar for name in _NEEDED for jar in _SPARK_JARS.glob(f"{name}*.jar")]
        path = os.pathsep.join(map(str, [self.home / "conf", SERVER, *jars]))
        return [*_JAVA, "-cp", path, node, *words]

    def _await_answer(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        quick = {"dfs.client.failover.max.attempts": "0"}
        while True:
            try:
                client = Client(self.url, quick)
                with client.create("/started", WriteOptions(overwrite=True)) as file:
                    file.write(b"1")
                return
            except (OSError, RuntimeError):
                log = (self.home / "log").read_text()
                assert all(each.poll() is None for each in self.processes.values()), log
                assert time.monotonic() < deadline, log
                time.sleep(0.2)


def write_settings(file: Path, settings: dict[str, str]) -> None:
    """Writes a file of settings as Hadoop reads it."""
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>\n"
        for name, value in settings.items()
    )
    file.write_text(f"<configuration>\n{properties}</configuration>\n")


@contextmanager
def started_hdfs_server(home: Path) -> Iterator[HdfsServer]:
    """Inside, HDFS answers; `home` is an empty directory for all that it writes."""
    if not SERVER.exists():
        pytest.fail(f"{SERVER} is not there; `make test-hdfs` installs it", pytrace=False)
    server = HdfsServer(home, find_free_port(), find_free_port())
    try:
        server.start()
        yield server
    finally:
        server.stop()


def main() -> int:
    """Fetches the JAR of the servers; returns 0 when it is there."""
    SERVER.parent.mkdir(exist_ok=True)
    return fetch_or_tell(lambda: fetch_into(SERVER.parent, [PACKAGE], {SERVER.name: SHA256}))


if __name__ == "__main__":
    sys.exit(main())
