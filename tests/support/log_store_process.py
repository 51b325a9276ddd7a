"""A JVM with the log stores and no session: what Delta calls to commit, started in a second."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from jobs.session import _settings
from windowing.storage.s3_settings import read_s3_settings

_HADOOP = "spark.hadoop."


class LogStoreProcess:
    """Log stores of one JVM, for S3 as `environ` describes it."""

    def __init__(self, gateway: JavaGateway, environ: Mapping[str, str]) -> None:
        self._java: Any = gateway.jvm
        self.process: subprocess.Popen[bytes] = gateway.proc
        self._conf = self._java.org.apache.hadoop.conf.Configuration()
        for name, value in read_s3_settings(environ).for_hadoop().items():
            self._conf.set(name.removeprefix(_HADOOP), value)
        self._store = self._java.tidemark.ConditionalLogStore(self._conf)
        self.fence = self._java.tidemark.Fence

    def commit(self, table: str, version: int, *lines: str) -> None:
        """Commits a version of the table."""
        self.write(f"{table}/_delta_log/{version:020}.json", lines, overwrite=False)

    def try_commit(self, table: str, version: int, *lines: str) -> bool:
        """Whether this commit was made, and no other one is in its place."""
        try:
            self.commit(table, version, *lines)
        except Py4JJavaError as error:
            if "java.nio.file.FileAlreadyExistsException" in str(error):
                return False
            raise
        return True

    def write(self, file: str, lines: Sequence[str], *, overwrite: bool) -> None:
        """Writes a file as Delta does."""
        listed = self._java.java.util.ArrayList()
        for line in lines:
            listed.add(line)
        self._store.write(self._path(file), listed.iterator(), overwrite, self._conf)

    def read(self, file: str) -> list[str]:
        """The lines of a file."""
        lines, found = self._store.read(self._path(file), self._conf), []
        while lines.hasNext():
            found.append(lines.next())
        lines.close()
        return found

    def list_names(self, directory: str, first: str) -> list[str]:
        """The names of files in a directory, from `first` on."""
        files = self._store.listFrom(self._path(f"{directory}/{first}"), self._conf)
        found = []
        while files.hasNext():
            found.append(files.next().getPath().getName())
        return found

    def set_of_bucket(self, bucket: str, name: str, value: str) -> None:
        """Sets what a bucket that was not opened yet is opened with."""
        self._conf.set(f"fs.s3a.bucket.{bucket}.{name}", value)

    def _path(self, text: str) -> Any:
        return self._java.org.apache.hadoop.fs.Path(text)


@contextmanager
def started_log_store(environ: Mapping[str, str]) -> Iterator[LogStoreProcess]:
    """Inside, a JVM runs that has `environ` among its variables."""
    settings = _settings("log store", {})
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**environ, "SPARK_LOCAL_IP": "127.0.0.1"}.items():
            patch.setenv(name, value)
        gateway: Any = launch_gateway(SparkConf(loadDefaults=False).setAll([*settings.items()]))
    try:
        yield LogStoreProcess(gateway, environ)
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=60)
