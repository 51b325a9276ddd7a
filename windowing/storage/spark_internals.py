"""What is asked of Spark and its bridge to Python by names that neither of them promises.

They are for this file alone, and each has a test of its own, which says what breaks without it. A
Spark that has them no more is met here.
"""

import os
import re
import secrets
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.core import context as pyspark_context
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from windowing.location import HDFS, Location
from windowing.storage.files import locate_uri
from windowing.storage.gateway_variables import PORT, SECRET

_STARTED_HERE = "TIDEMARK_JVM"
"""The variable that says that `start_gateway` has started it, and not `spark-submit`."""
SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""What Spark raises, and the bridge where PySpark has no class of its own for an error."""
FENCED, COMMIT_UNKNOWN, UNSAFE_STORE = (
    *("TIDEMARK_FENCED", "TIDEMARK_COMMIT_UNKNOWN", "TIDEMARK_UNSAFE_STORE"),
)
"""How our own log stores begin the text of an error: the fence refuses a commit, nobody knows
whether one was made, the store would lose some."""
_MADE_FOR_PYTHON = re.compile(r"o\d+")
"""What the bridge calls the objects that it has given to Python; its own have other names."""


def arrow_schema(columns: T.StructType) -> pa.Schema:
    """The columns as Arrow has them; times are those of UTC."""
    return to_arrow_schema(columns, timestamp_utc=True)


def read_streamed_files(
    spark: SparkSession, stream: SparkSession, rows: DataFrame
) -> DataFrame | None:
    """The rows of a batch that a stream of the session `stream` passed on, as a table is read.

    Spark passes rows on one by one with all their columns. A read of the batch's files leaves out
    the columns that a query does not need. None where the batch is not simply files, or where this
    version of Spark or Delta names them in another way.
    """
    relation = _find_relation_of_batch(stream)
    if relation is None:
        return None
    # Its own session says into how many tasks the files are split.
    own = _in_session(relation, spark)
    found = DataFrame(spark._jsparkSession.baseRelationToDataFrame(own), spark)
    return found if found.schema == rows.schema else None


def pass_rows_on(spark: SparkSession, rows: DataFrame) -> DataFrame:
    """The rows of a batch one by one, so that queries of them have the settings of `spark`."""
    passed_on = rows._jdf.queryExecution().toRdd()
    of_spark = spark._jsparkSession.internalCreateDataFrame(passed_on, rows._jdf.schema(), False)
    return DataFrame(of_spark, spark)


def _find_relation_of_batch(stream: SparkSession) -> Any:
    """The files that the stream which calls this thread has chosen for its batch; None as above."""
    number = stream.sparkContext.getLocalProperty("sql.streaming.queryId")
    query = stream._jsparkSession.streams().get(number) if number else None
    if query is None:
        return None
    # The sink, a renaming of all columns, and the files.
    plan = query.streamingQuery().lastExecution().logical()
    for above in ("WriteToMicroBatchDataSourceV1", "Project"):
        if plan.getClass().getSimpleName() != above:
            return None
        plan = plan.children().head()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return None
    relation = plan.relation()
    files = getattr(relation, "location", None)
    is_batch = files is not None and files().getClass().getSimpleName() == "TahoeBatchFileIndex"
    return relation if is_batch else None


def list_batch_files(stream: SparkSession) -> list[Location] | None:
    """The Parquet files whose rows are those of the batch that the stream has passed on.

    None where they contain other rows too, name columns otherwise than the table does, or are on
    other storage than this process reads. It has to be asked by the thread that the stream calls.
    """
    relation = _find_relation_of_batch(stream)
    if relation is None or relation.fileFormat().metadata().columnMappingMode().name() != "none":
        return None
    chosen = relation.location()
    files = chosen.addFiles()
    if any(files.apply(n).deletionVector() is not None for n in range(files.size())):
        return None
    uris = [str(uri) for uri in chosen.inputFiles()]
    if not all(uri.startswith(("file:/", "s3a://", HDFS)) for uri in uris):
        return None
    return [locate_uri(uri) for uri in uris]


def measure_batch(stream: SparkSession) -> int:
    """The bytes of the files of the batch that the stream has passed on; 0 where it has no files.

    It has to be asked by the thread that the stream calls.
    """
    relation = _find_relation_of_batch(stream)
    return 0 if relation is None else int(relation.location().sizeInBytes())


def _in_session(relation: Any, spark: SparkSession) -> Any:
    """The same files, read with the settings of `spark`."""
    return relation.copy(
        relation.location(),
        relation.partitionSchema(),
        relation.dataSchema(),
        relation.bucketSpec(),
        relation.fileFormat(),
        relation.options(),
        spark._jsparkSession,
    )


def list_settings(spark: SparkSession) -> str:
    """All settings of a session as one text, in one call to the JVM instead of some two hundred."""
    return str(spark._jsparkSession.conf().getAll())


def read_setting(spark: SparkSession, name: str) -> str:
    """The value of a setting of the context, which no session changes; empty for none."""
    context: Any = spark.sparkContext
    return str(context._jsc.sc().conf().get(name, ""))


def clone_session(spark: SparkSession) -> SparkSession:
    """A session with settings of its own that shares context, catalog and views with `spark`."""
    return SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())


def start_gateway(settings: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], dict[str, str]]:
    """A JVM with no session yet, and the variables by which another process joins it."""
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    gateway: Any = launch_gateway(conf)  # type: ignore[no-untyped-call]
    parameters = gateway.java_parameters
    found = {PORT: str(parameters.port), SECRET: parameters.auth_token, _STARTED_HERE: "yes"}
    return gateway.proc, found


def resolve_packages(packages: str, directory: str) -> None:
    """Fetches packages, by Maven's coordinates and separated by commas, by Ivy into a directory.

    It needs no context, but a JVM of its own that has read Spark's defaults. What the packages
    depend on, some 100 files, is part of Spark, is among them, or is not used.
    """
    conf = SparkConf(loadDefaults=False).setMaster("local[1]").set("spark.jars.packages", "")
    gateway: Any = launch_gateway(conf)  # type: ignore[no-untyped-call]
    java = gateway.jvm
    resolver, with_dependencies = java.org.apache.spark.util.DependencyUtils, False
    given = resolver.getIvyProperties()
    settings = java.scala.Option.apply(given.ivySettingsPath())
    resolver.resolveMavenDependencies(
        with_dependencies, None, packages, given.repositories(), directory, settings
    )
    gateway.shutdown()


def read_submitted() -> SparkConf | None:
    """The settings that `spark-submit` was given, by options and by files.

    None where it has not started this process.
    """
    if PORT not in os.environ or _STARTED_HERE in os.environ:
        return None
    SparkContext._ensure_initialized()
    return SparkConf()


def load_jars(paths: Iterable[str]) -> None:
    """Adds JARs to the classes of a JVM that runs already, before it has a context."""
    SparkContext._ensure_initialized()
    java: Any = SparkContext._jvm
    classes = java.java.lang.Thread.currentThread().getContextClassLoader()
    for path in paths:
        classes.addURL(java.java.io.File(path).toURI().toURL())


def has_context() -> bool:
    """Whether this process has a Spark context."""
    return SparkContext._active_spark_context is not None


def join_running_context() -> bool:
    """Whether the JVM that another process has started has a context, which this one has joined.

    A new session of that context is the one that PySpark finds. It shares the context's static
    settings, and neither settings nor temporary views with other sessions.
    """
    SparkContext._ensure_initialized()
    _number_proxies_apart()
    java: Any = SparkContext._jvm
    sessions = getattr(java, "org.apache.spark.sql.classic.SparkSession")
    if not sessions.getDefaultSession().isDefined():
        return False
    session = sessions.getDefaultSession().get().newSession()
    context = java.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
        session.sparkContext()
    )
    SparkSession(SparkContext(jsc=context, conf=SparkConf(_jconf=context.getConf())), session)
    return True


def _number_proxies_apart() -> None:
    """Gives the objects that the JVM calls back numbers which no other process has given.

    Every process numbers them from 0. The JVM would drop the object of an earlier process, and tell
    this one to forget its own of the same number, such as the function of a running stream.
    """
    gateway: Any = SparkContext._gateway
    gateway.gateway_property.pool.next_id = secrets.randbits(62)


@contextmanager
def ctrl_c_kept() -> Iterator[None]:
    """What Ctrl-C does stays as it was, although a context may be made inside the block.

    A context sets a handler of its own, which asks the JVM to cancel its jobs before it raises
    KeyboardInterrupt. It does so on the connection that is waiting, which raises another error.
    """
    contexts: Any = pyspark_context
    before, cancel = signal.getsignal(signal.SIGINT), SparkContext.cancelAllJobs
    SparkContext.cancelAllJobs = _cancel_nothing  # type: ignore[method-assign,assignment]
    contexts.launch_gateway = _launch_whole
    try:
        yield
    finally:
        # Only the main thread may set a handler, and a context sets it there only.
        if _is_main_thread():
            signal.signal(signal.SIGINT, before)
        SparkContext.cancelAllJobs = cancel  # type: ignore[method-assign]
        contexts.launch_gateway = launch_gateway


def _launch_whole(*given: Any, **named: Any) -> Any:
    """Starts a JVM; Ctrl-C waits until it has told where it listens.

    Before that PySpark would delete the directory in which the JVM tells it. The JVM would fail
    there, keep its port open, and never end.
    """
    launch: Any = launch_gateway
    if not _is_main_thread():
        return launch(*given, **named)
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        return launch(*given, **named)
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _cancel_nothing(_: SparkContext) -> None:
    """Leaves the jobs to the JVM, which ends with this process."""


def read_first_cause(error: Exception) -> str:
    """The text of the first cause of an error of the JVM; empty where there is none."""
    # PySpark keeps the error of the JVM under another name than the bridge.
    thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    try:
        while thrown is not None and thrown.getCause() is not None:
            thrown = thrown.getCause()
        return "" if thrown is None else str(thrown.toString())
    except Exception:
        # The JVM may have ended, and the causes with it.
        return ""


def find_java() -> subprocess.Popen[bytes] | None:
    """The JVM that this process has started; None where it has joined one or has none."""
    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    return process


def find_jvm_process(spark: SparkSession) -> int:
    """The id of the process of the session's JVM."""
    started = find_java()
    if started is not None:
        return started.pid
    # One that this process has joined is asked, which takes some calls over the bridge.
    java: Any = spark._jvm
    return int(java.java.lang.ProcessHandle.current().pid())


def end_java(spark: SparkSession, seconds: float) -> None:
    """Ends the session and its JVM, which has so many seconds to end."""
    gateway: Any = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    # The JVM of PySpark ends when its standard input is closed.
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=seconds)


def measure_heap(spark: SparkSession) -> float:
    """How much of the heap that the JVM may have is used, from 0 to 1."""
    java: Any = spark._jvm
    runtime = java.java.lang.Runtime.getRuntime()
    return float((runtime.totalMemory() - runtime.freeMemory()) / runtime.maxMemory())


def collect_garbage(spark: SparkSession) -> None:
    """Makes the JVM delete what nobody uses any more."""
    java: Any = spark._jvm
    java.java.lang.System.gc()


def delete_objects(spark: SparkSession) -> None:
    """Deletes what the bridge kept for this process.

    It keeps every object that Python has been given until Python deletes its own, which a process
    that ends does not do.
    """
    java: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    server: Any = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    names = server.getGateway().getBindings().keySet()
    kept = java.java.util.ArrayList()
    for name in str(names.toString()).strip("[]").split(", "):
        if not _MADE_FOR_PYTHON.fullmatch(name):
            kept.add(name)
    names.retainAll(kept)


class FileLock:
    """A record lock on a file that the JVM holds, so that it lives and dies with that process."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        java: Any = spark._jvm
        self._channel = java.java.io.RandomAccessFile(str(path), "rw").getChannel()
        try:
            self._lock = self._channel.tryLock()
        except Py4JJavaError:
            # Java raises instead of returning null where this JVM itself has the lock.
            self._lock = None

    @property
    def is_held(self) -> bool:
        """Whether no other process had the lock."""
        return self._lock is not None

    def release(self) -> None:
        """Gives the lock back, if it is held, and closes the file."""
        if self._lock is not None:
            self._lock.release()
        self._channel.close()
