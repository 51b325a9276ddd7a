"""A process with a Spark session whose s3a is the server that its environment names.

    python -m tests.support.spark_on_s3

It reads one JSON object a line, does what it asks, and answers by one.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from jobs.maintenance.erasure import UNCHECKED
from jobs.session import spark_session
from jobs.sessions.exact_session import copy_session
from jobs.sessions.profiles import TEST
from jobs.sessions.s3_session import ON_S3
from windowing.storage import delta_log, spark_internals, upkeep
from windowing.storage.delta_log import CommitFence, allow_commit
from windowing.storage.files import locate_uri
from windowing.storage.spark_internals import SPARK_ERRORS

_SETTINGS = {**TEST, **ON_S3, "spark.master": "local[1]", "spark.driver.memory": "1g"}


class SparkOnS3:
    """Such a process, from outside."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.jvm = int(self.ask("jvm"))

    def begin(self, verb: str, *words: object) -> None:
        """Asks for something, whose answer `end` waits for."""
        assert self._process.stdin is not None
        print(json.dumps([verb, *words]), file=self._process.stdin, flush=True)

    def end(self) -> Any:
        """The answer to what was asked last."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def ask(self, verb: str, *words: object) -> Any:
        """The answer; what Spark refuses is answered by its text."""
        self.begin(verb, *words)
        return self.end()


@contextmanager
def started_spark(environ: Mapping[str, str]) -> Iterator[SparkOnS3]:
    """Inside, such a process runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.spark_on_s3"],
        env={**os.environ, **environ},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield SparkOnS3(process)
    finally:
        process.communicate(timeout=60)


class _Work:
    """What can be asked."""

    def __init__(self) -> None:
        self.spark = spark_session("tests on S3", **_SETTINGS)

    def jvm(self) -> int:
        found = spark_internals.find_java()
        return 0 if found is None else found.pid

    def append(self, table: str, first: int, rows: int) -> int:
        """Appends rows by a commit each; how many were acknowledged."""
        for each in range(first, first + rows):
            self.spark.range(each, each + 1).write.format("delta").mode("append").save(table)
        return rows

    def merge(self, table: str, key: int) -> int:
        self.spark.sql(
            f"merge into delta.`{table}` t using (select {key}L id) s on t.id = s.id "
            "when not matched then insert *"
        )
        return key

    def overwrite(self, table: str, key: int) -> int:
        """Leaves one row, and the files of those before it."""
        row = self.spark.range(key, key + 1)
        row.write.format("delta").mode("overwrite").save(table)
        return key

    def vacuum(self, table: str) -> list[str]:
        """Deletes all files that the newest version does not need; which operations that made."""
        path = locate_uri(table)
        before = delta_log.version(self.spark, path)
        upkeep.vacuum(copy_session(self.spark, UNCHECKED), path, timedelta(0))
        made = delta_log.version(self.spark, path) - before
        return [name for _, name in upkeep.list_history(self.spark, path, made)] if made else []

    def read(self, table: str) -> list[int]:
        return sorted(row.id for row in self.spark.read.format("delta").load(table).collect())

    def fence(self, lake: str) -> str:
        CommitFence(self.spark, lake)
        return lake

    def allow(self, table: str, version: int) -> int:
        allow_commit(self.spark, table, version)
        return version

    def settings(self) -> str:
        """All settings of session, context and Hadoop, and what the JVM was started with."""
        java: Any = self.spark._jvm
        hadoop = self.spark.sparkContext._jsc.hadoopConfiguration()
        text = java.java.io.StringWriter()
        java.org.apache.hadoop.conf.Configuration.dumpConfiguration(hadoop, text)
        properties = java.java.lang.System.getProperties().toString()
        of_context = self.spark.sparkContext.getConf().toDebugString()
        of_session = spark_internals.list_settings(self.spark)
        return "\n".join((of_session, of_context, text.toString(), properties))


def main() -> None:
    """Answers until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    work = _Work()
    for line in sys.stdin:
        verb, *words = json.loads(line)
        try:
            answer = getattr(work, verb)(*words)
        except SPARK_ERRORS as error:
            answer = str(error)
        print(json.dumps(answer), file=answers, flush=True)
    work.spark.stop()


if __name__ == "__main__":
    main()
