"""Makes every Spark session: UTC, the two Delta JARs, and no port open outside 127.0.0.1."""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import java_import
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from jobs.preflight.exact_session import EXACT
from windowing.errors import UsageError
from windowing.spec.words import join_names

SHARE = Path(sys.prefix) / "share" / "tidemark"
JARS = Path(os.environ.get("TIDEMARK_JARS") or SHARE / "jars").absolute()
"""Where `tidemark setup` puts the Delta JARs: in the environment, as they fit its PySpark."""
DELTA_JARS = ("delta-spark_4.1_2.13-4.4.0.jar", "delta-storage-4.4.0.jar")
ARCHIVE = SHARE / "classes.jsa"
"""The classes of the JVM, archived by `make setup`; a JVM of another version ignores the file."""
DEFAULTS = {
    # Without this, Hadoop settings of the environment would turn a path without a scheme into one
    # of their cluster.
    "spark.hadoop.fs.defaultFS": "file:///",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    **EXACT,
    "spark.sql.shuffle.partitions": "4",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "20000",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.databricks.delta.merge.materializeSource": "none",
    # Spark describes the plan of every query for its web pages, which are off here. Small runs
    # spent a twelfth of their time on that.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "500",
    # Spark stores in every expression the Java frames that created it, and serializes them with it.
    # Here these are only frames of the bridge to Python.
    "spark.sql.dataFrameQueryContext.enabled": "false",
    # For every column PySpark makes more calls to the JVM, so that an error can name a line of
    # Python. That was half of the Python time of a small run.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Spark caches 100 generated classes by default, and one run needs about 300 of them, so each
    # warm run compiled some 500 again. The cache belongs to the JVM, so it can only be set when
    # that starts.
    "spark.sql.codegen.cache.maxEntries": "5000",
    # Spark lists more files than that in a job, before it reads them.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    # VACUUM lists the files of a table in up to this many tasks of a few milliseconds; the default
    # is 10,000.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # With what the JVM needs beside its heap, its process stays within 4 GiB.
    "spark.driver.memory": "3400m",
    # Few rows are collected, however large each of them is.
    "spark.driver.maxResultSize": "0",
    # Every sort, aggregation and broadcast begins with a zeroed page of this size. With few cores
    # Spark would choose 64 MB.
    "spark.buffer.pageSize": "4m",
    # The optimizing compiler took a fourth of the CPU time of a first load of 5 million rows, for
    # code that runs a few seconds. Here it waits for code that runs eight times as often as usual.
    "spark.driver.defaultJavaOptions": (
        "-XX:Tier4InvocationThreshold=40000 -XX:Tier4MinInvocationThreshold=4800 "
        "-XX:Tier4CompileThreshold=120000 -XX:Tier4BackEdgeThreshold=320000"
    ),
}
"""Settings of a local session; a cluster has settings of its own for them."""
QUICK = {
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
}
"""Settings of a short session: the JVM compiles quickly rather than well.

A cold run of 1,000 rows spent half of its CPU time on compiling. With millions of rows and sketches
such a JVM makes a run take longer.
"""
LIGHT = {
    **QUICK,
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings of a short session that reads few rows: queries are interpreted, too."""
_FREQUENT_CLASSES = (
    "org.apache.spark.sql.functions",
    "org.apache.spark.api.python.PythonUtils",
    "org.apache.spark.sql.api.python.PythonSQLUtils",
)
"""Classes that PySpark looks up by their last name alone, several hundred times in a run."""
_UNUSED_DEFAULTS = ("mapred-default.xml", "yarn-default.xml")
"""Files of Hadoop defaults for services that no session here uses."""
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
"""The variables by which PySpark finds a JVM that runs already."""
JVM = "-Duser.timezone=UTC -XX:+UseParallelGC -Dlog4j2.disableJmx=true"


@dataclass(frozen=True)
class Jvm:
    """A JVM that this process has started; `variables` let other processes of the user join it."""

    process: subprocess.Popen[bytes]
    variables: Mapping[str, str]


def spark_session(app_name: str = "tidemark", **conf: str) -> SparkSession:
    """A session that reads and writes Delta; `conf` adds to the settings above or replaces them.

    `SPARK_MASTER` in the environment names a cluster; without it the session is local. Where the
    environment names a JVM that `start_jvm` of another process has started, the session is a new
    one in that JVM. Raises UsageError when the Delta JARs are missing, or when JAVA_HOME names a
    directory without Java.
    """
    builder = SparkSession.builder
    for name, value in _prepare(app_name, conf).items():
        builder = builder.config(name, value)
    joined = _join_running_context()
    spark = builder.getOrCreate()
    _import_frequent_classes(spark)
    if not joined and _master().startswith("local"):
        _drop_unused_defaults(spark)
    return spark


def start_jvm(app_name: str = "tidemark", **conf: str) -> Jvm:
    """A JVM with the settings of `spark_session`, and no session yet.

    It ends when its standard input is closed, which happens when this process ends. Another process
    has the same JVM once its environment contains `variables`. Raises what `spark_session` does.
    """
    settings = SparkConf(loadDefaults=False).setAll(list(_prepare(app_name, conf).items()))
    gateway: Any = launch_gateway(settings)  # type: ignore[no-untyped-call]
    port, secret = gateway.java_parameters.port, gateway.java_parameters.auth_token
    return Jvm(gateway.proc, {_PORT: str(port), _SECRET: secret})


def _prepare(app_name: str, conf: Mapping[str, str]) -> dict[str, str]:
    """All settings of a session; sets what Spark reads from the environment of this process."""
    jars = _find_jars()
    _check_java_home()
    os.environ["TZ"] = "UTC"
    time.tzset()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = _master()
    names = {"spark.app.name": app_name, "spark.master": master}
    return {**names, **_settings(master, jars), **conf}


def _master() -> str:
    return os.environ.get("SPARK_MASTER", "local[*]")


def _join_running_context() -> bool:
    """Whether there is a JVM that another process has started, and it has a context.

    Then a new session of that context is the one that PySpark finds. It shares the context's static
    settings, and neither settings nor temporary views with other sessions.
    """
    if _PORT not in os.environ or SparkContext._active_spark_context is not None:
        return False
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


def _find_jars() -> list[str]:
    """The paths of the two JARs; other files, such as those of an older Delta, are ignored."""
    missing = [name for name in DELTA_JARS if not (JARS / name).is_file()]
    if missing:
        raise UsageError(
            f"{JARS} lacks {join_names(missing)}; "
            "run `tidemark setup` (or `make setup` in a checkout) once"
        )
    return [str(JARS / name) for name in DELTA_JARS]


def _check_java_home() -> None:
    home = os.environ.get("JAVA_HOME")
    if not home:
        return
    java = Path(home) / "bin" / "java"
    if not java.exists():
        raise UsageError(
            f"JAVA_HOME is {home}, and there is no {java}; name the directory of a Java 17 or newer"
        )


def _import_frequent_classes(spark: SparkSession) -> None:
    """Imports some classes into the bridge to the JVM.

    Otherwise the bridge tries several packages for each name, and each attempt searches some 300
    JARs.
    """
    for name in _FREQUENT_CLASSES:
        java_import(spark._jvm, name)


def _drop_unused_defaults(spark: SparkSession) -> None:
    """Removes the defaults of YARN and MapReduce, 714 of 1,076 settings, from those of Hadoop.

    What Spark or a user has set stays. Spark copies all settings into every read and write, and
    Hadoop serializes the origin of each one: that takes 9 ms each time, and 4 ms without these
    defaults.
    """
    java: Any = spark._jvm
    settings = spark._jsc.hadoopConfiguration()
    # Hadoop loads all defaults again when a class adds its own. These two do so when they are first
    # used, so they are used before anything is removed.
    java.org.apache.hadoop.mapred.JobConf(False)
    java.org.apache.hadoop.hdfs.HdfsConfiguration.init()
    written = java.java.io.StringWriter()
    java.org.apache.hadoop.conf.Configuration.dumpConfiguration(settings, written)
    for setting in json.loads(written.toString())["properties"]:
        if setting["resource"] in _UNUSED_DEFAULTS:
            settings.unset(setting["key"])


def _settings(master: str, jars: list[str]) -> dict[str, str]:
    if not master.startswith("local"):
        return {
            **DEFAULTS,
            **_COMMON,
            "spark.jars": ",".join(jars),
            "spark.driver.extraJavaOptions": JVM,
        }
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # SPARK_HOME may name another version than the PySpark that is installed here.
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    return {
        **DEFAULTS,
        **_COMMON,
        **LOCAL,
        "spark.driver.extraClassPath": os.pathsep.join(jars),
        "spark.driver.extraJavaOptions": f"{JVM} {_archive_options()}",
    }


def _archive_options() -> str:
    """The options that let the JVM use the class archive, where there is one."""
    if not ARCHIVE.exists():
        return ""
    return f"-XX:SharedArchiveFile={ARCHIVE} -Xshare:auto -Xlog:disable -Xlog:all=off"


_COMMON = {
    "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "tidemark-warehouse"),
}
