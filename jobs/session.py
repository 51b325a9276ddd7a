"""The one place that makes a Spark session: UTC everywhere, two Delta JARs, nothing listening outside 127.0.0.1."""

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import java_import
from pyspark.sql import SparkSession

from jobs.preflight.exact_session import EXACT
from windowing.errors import UsageError
from windowing.spec.words import listed

SHARE = Path(sys.prefix) / "share" / "tidemark"
JARS = Path(os.environ.get("TIDEMARK_JARS") or SHARE / "jars").absolute()
"""Where `tidemark setup` puts the Delta JARs: in the environment, since they fit its PySpark."""
DELTA_JARS = ("delta-spark_4.1_2.13-4.4.0.jar", "delta-storage-4.4.0.jar")
ARCHIVE = SHARE / "classes.jsa"
"""The JVM's classes, loaded ahead of time by `make setup`; a JVM it wasn't made by ignores it."""
DEFAULTS = {
    # Where the environment brings Hadoop's own settings, a path without a scheme would be one of its cluster.
    "spark.hadoop.fs.defaultFS": "file:///",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    **EXACT,
    "spark.sql.shuffle.partitions": "4",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "20000",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.databricks.delta.merge.materializeSource": "none",
    # Spark describes the plan of every query for its pages, which nobody sees here; small runs spent a twelfth of their time on it.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "500",
    # Spark keeps in every expression the Java frames that made it, here those of a Python bridge, and sends them along with it.
    "spark.sql.dataFrameQueryContext.enabled": "false",
    # PySpark asks the JVM more questions for every column, to say in an error which line of Python made it: half of a small run's Python.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Spark keeps 100 generated classes unless told otherwise, and one run needs about 300 of them:
    # each warm run compiled some 500 anew. The cache belongs to the JVM, so only its start can set it.
    "spark.sql.codegen.cache.maxEntries": "5000",
    # VACUUM lists a table's files in as many tasks, each of a few milliseconds, as this says: 10,000 if nothing is said.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "4g",
    # Every sort, aggregation and broadcast begins with a page of this size, zeroed: with few cores Spark would make it 64 MB.
    "spark.buffer.pageSize": "4m",
}
"""What a session of one machine adds; a cluster's own settings say where its driver is found."""
LIGHT = {
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""What a session adds that ends soon and reads few rows: queries are interpreted, and the JVM compiles quickly rather than well.

A cold run of 1,000 rows spent half of its CPU on compiling; with a million rows it takes 1.8 times as long this way.
"""
_OFTEN = (
    "org.apache.spark.sql.functions",
    "org.apache.spark.api.python.PythonUtils",
    "org.apache.spark.sql.api.python.PythonSQLUtils",
)
"""Classes that PySpark asks for by their last name alone, several hundred times in a run."""
_ELSEWHERE = ("mapred-default.xml", "yarn-default.xml")
JVM = "-Duser.timezone=UTC -XX:+UseParallelGC -Dlog4j2.disableJmx=true"


def spark_session(app_name: str = "tidemark", **conf: str) -> SparkSession:
    """A session that reads and writes Delta; `conf` adds to or replaces the settings above.

    `SPARK_MASTER` in the environment names a cluster; without it the session is local. UsageError when the JARs aren't set up.
    """
    jars = _find_jars()
    java = os.environ.get("JAVA_HOME")
    if java and not (Path(java) / "bin" / "java").exists():
        raise UsageError(
            f"JAVA_HOME is {java}, and there is no {Path(java) / 'bin' / 'java'}; name the directory of a Java 17 or newer"
        )
    os.environ["TZ"] = "UTC"
    time.tzset()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = os.environ.get("SPARK_MASTER", "local[*]")
    builder = SparkSession.builder.appName(app_name).master(master)
    for name, value in {**_settings(master, jars), **conf}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    _introduce(spark)
    if master.startswith("local"):
        _unburden(spark)
    return spark


def _find_jars() -> list[str]:
    """The paths of the two JARs; other files beside them, such as those of an older Delta, are left out."""
    missing = [name for name in DELTA_JARS if not (JARS / name).is_file()]
    if missing:
        raise UsageError(
            f"{JARS} lacks {listed(missing)}; "
            "run `tidemark setup` (or `make setup` in a checkout) once"
        )
    return [str(JARS / name) for name in DELTA_JARS]


def _introduce(spark: SparkSession) -> None:
    """Tells the bridge to the JVM the packages of some classes; else it tries several, and in each of them some 300 JARs."""
    for name in _OFTEN:
        java_import(spark._jvm, name)


def _unburden(spark: SparkSession) -> None:
    """Takes from Hadoop's settings the defaults of YARN and MapReduce, 714 of 1,076; what Spark or a user has set stays.

    Spark copies all settings into every read and write, and Hadoop packs the origin of each one by itself: 9 ms each time, 4 without these.
    """
    java: Any = spark._jvm
    settings = spark._jsc.hadoopConfiguration()
    # Whoever adds defaults brings all of them back; these two do when they are first met.
    java.org.apache.hadoop.mapred.JobConf(False)
    java.org.apache.hadoop.hdfs.HdfsConfiguration.init()
    java.org.apache.hadoop.conf.Configuration.dumpConfiguration(
        settings, written := java.java.io.StringWriter()
    )
    for setting in json.loads(written.toString())["properties"]:
        if setting["resource"] in _ELSEWHERE:
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
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    return {
        **DEFAULTS,
        **_COMMON,
        **LOCAL,
        "spark.driver.extraClassPath": os.pathsep.join(jars),
        "spark.driver.extraJavaOptions": f"{JVM} {_shared()}",
    }


def _shared() -> str:
    return (
        f"-XX:SharedArchiveFile={ARCHIVE} -Xshare:auto -Xlog:disable -Xlog:all=off"
        if ARCHIVE.exists()
        else ""
    )


_COMMON = {
    "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "tidemark-warehouse"),
}
