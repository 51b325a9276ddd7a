"""Makes every Spark session: UTC, the JARs of Delta and S3, and no port outside 127.0.0.1."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from jobs.sessions.jars import JAR_NAMES, LOG_STORES
from jobs.sessions.process import environment_changed
from jobs.sessions.profiles import CLUSTER, COMMON, DEFAULTS, DRIVER_OPTIONS, HERE, LOCAL
from jobs.sessions.s3_session import describe_s3
from jobs.sessions.submitted import find_missing, is_left_to_user, merge_settings
from windowing.errors import UsageError
from windowing.storage import gateway_variables, spark_internals
from windowing.storage.log_stores import LOG_STORE_SETTINGS
from windowing.storage.master import is_local

SHARE = Path(sys.prefix) / "share" / "tidemark"
JARS = Path(os.environ.get("TIDEMARK_JARS") or SHARE / "jars").absolute()
"""Where `tidemark setup` puts the JARs: in the environment, as they fit its PySpark."""
ARCHIVE = SHARE / "classes.jsa"
"""The classes of the JVM, archived by `make setup`; a JVM of another version ignores the file."""
SPARK_HOME = str(Path(pyspark.__file__).parent)
"""Where Spark is; the environment's SPARK_HOME may have another version than PySpark here."""
JVM = (
    "-Duser.timezone=UTC -XX:+UseParallelGC -Dlog4j2.disableJmx=true "
    # Without a thread that has run out of memory, a JVM may wait for it for ever.
    "-XX:+ExitOnOutOfMemoryError"
)


@dataclass(frozen=True)
class Jvm:
    """A JVM that this process has started; `variables` let other processes of the user join it."""

    process: subprocess.Popen[bytes]
    variables: Mapping[str, str]


def spark_session(app_name: str = "tidemark", **conf: str) -> SparkSession:
    """A session that reads and writes Delta; `conf` adds to the settings above or replaces them.

    The session is local, unless `spark.master` in `conf`, or without it `spark-submit`, or without
    that `SPARK_MASTER` in the environment, names a cluster. Under `spark-submit` its settings win
    over ours that are not in `conf` and that no result depends on. Where the environment names a
    JVM that `start_java` of another process has started, the session is a new one in that JVM.

    Raises UsageError when a JAR is missing, or when JAVA_HOME names a directory without
    Java. The environment of this process stays as it is.
    """
    builder = SparkSession.builder
    for name, value in _settings(app_name, conf).items():
        builder = builder.config(name, value)
    if gateway_variables.PORT in os.environ and not spark_internals.has_context():
        spark_internals.join_running_context()
    _load_jars_when_submitted()
    with environment_changed(_variables(_choose_master(conf))):
        return builder.getOrCreate()


def start_java() -> Jvm:
    """A JVM with the settings of `spark_session`, and no session yet.

    It ends when its standard input is closed, which happens when this process ends. Another process
    has the same JVM once its environment contains `variables`. Raises what `spark_session` does.
    """
    settings = _settings("tidemark", {})
    with environment_changed(_variables(settings["spark.master"])):
        process, variables = spark_internals.start_gateway(settings)
    return Jvm(process, variables)


def named_master() -> str | None:
    """The master that the environment names, such as `spark://host:7077`; None where none.

    None under `spark-submit`, too, which has chosen one already.
    """
    if spark_internals.read_submitted() is not None:
        return None
    return os.environ.get("SPARK_MASTER") or None


def is_chosen(name: str) -> bool:
    """Whether `spark-submit` was given the setting, and results don't depend on it."""
    submitted = spark_internals.read_submitted()
    return submitted is not None and is_left_to_user(name, submitted)


def _settings(app_name: str, conf: Mapping[str, str]) -> dict[str, str]:
    """All settings of a session."""
    jars = _find_jars()
    _check_java_home()
    master = _choose_master(conf)
    names = {"spark.app.name": app_name, "spark.master": master}
    of_place = _local_settings(jars) if is_local(master) else _cluster_settings(jars)
    of_stores = {**describe_s3(os.environ), **LOG_STORE_SETTINGS}
    ours = {**names, **DEFAULTS, **COMMON, **of_stores, **of_place}
    submitted = spark_internals.read_submitted()
    if submitted is not None:
        return {**merge_settings(ours, submitted, jars), **conf}
    settings = {**ours, **conf}
    options = (JVM, _archive_options() if is_local(master) else "", settings.get(DRIVER_OPTIONS))
    return {**settings, DRIVER_OPTIONS: " ".join(filter(None, options))}


def _load_jars_when_submitted() -> None:
    """Adds the JARs to a JVM that `spark-submit` has started without them."""
    submitted = spark_internals.read_submitted()
    if submitted is not None and not spark_internals.has_context():
        spark_internals.load_jars(find_missing(_find_jars(), submitted))


def _variables(master: str) -> dict[str, str]:
    """What Spark reads from the environment when its JVM starts; a user's own choices stay."""
    found = {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}
    if is_local(master):
        found["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
        found["SPARK_HOME"] = SPARK_HOME
    return found


def _choose_master(conf: Mapping[str, str]) -> str:
    submitted = spark_internals.read_submitted()
    chosen = None if submitted is None else submitted.get("spark.master")
    return conf.get("spark.master") or chosen or named_master() or HERE


def _find_jars() -> list[str]:
    """The paths of the JARs; other files, such as those of an older Delta, are ignored."""
    missing = [name for name in JAR_NAMES if not (JARS / name).is_file()]
    if missing:
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise UsageError(f"{JARS} lacks {missing[0]}{others}; run `tidemark setup` once")
    return [*(str(JARS / name) for name in JAR_NAMES), str(LOG_STORES)]


def _check_java_home() -> None:
    home = os.environ.get("JAVA_HOME")
    if not home:
        return
    java = Path(home) / "bin" / "java"
    if not java.exists():
        raise UsageError(
            f"JAVA_HOME is {home}, and there is no {java}; name the directory of a Java 17 to 22"
        )


def _cluster_settings(jars: list[str]) -> dict[str, str]:
    return {**CLUSTER, "spark.jars": ",".join(jars)}


def _local_settings(jars: list[str]) -> dict[str, str]:
    return {**LOCAL, "spark.driver.extraClassPath": os.pathsep.join(jars)}


def _archive_options() -> str:
    """The options that let the JVM use the class archive, where there is one."""
    if not ARCHIVE.exists():
        return ""
    return f"-XX:SharedArchiveFile={ARCHIVE} -Xshare:auto -Xlog:disable -Xlog:all=off"
