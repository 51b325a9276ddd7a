"""A session in a JVM that `spark-submit` has started, with the settings that it was given.

These win over ours, unless results depend on them, or Delta does not work without ours, or loses
commits.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pyspark import SparkConf

from jobs.sessions.profiles import EXACT
from windowing.errors import UsageError
from windowing.storage.log_stores import ANY_SCHEME, LOG_STORE_SETTINGS

_JARS = "spark.jars"
_OURS = frozenset(
    {
        *EXACT,
        *LOG_STORE_SETTINGS,
        "spark.hadoop.fs.defaultFS",
        "spark.sql.extensions",
        "spark.sql.catalog.spark_catalog",
        _JARS,
    }
)
"""The settings that are ours whatever was given."""


def merge_settings(
    ours: Mapping[str, str], given: SparkConf, jars: Iterable[str]
) -> dict[str, str]:
    """Those of `ours` that count beside the settings `given`, which the JVM has already.

    What was given is not repeated, so no secret of it gets into the settings of a session. Our
    `jars` are added to those that were given.

    UsageError where one log store was given for everything.
    """
    if given.contains(ANY_SCHEME):
        raise UsageError(
            f"{ANY_SCHEME} is {given.get(ANY_SCHEME)}, and Tidemark commits to S3 and HDFS by log "
            "stores of its own; leave it out of spark-defaults.conf and --conf, or name the log "
            "store of another scheme in spark.delta.logStore.SCHEME.impl"
        )
    kept = {name: value for name, value in ours.items() if not is_left_to_user(name, given)}
    theirs = given.get(_JARS, "") or ""
    return {**kept, _JARS: ",".join([*filter(None, [theirs]), *find_missing(jars, given)])}


def is_left_to_user(name: str, given: SparkConf) -> bool:
    """Whether the setting was given and may be another than ours."""
    return name not in _OURS and given.contains(name)


def find_missing(jars: Iterable[str], given: SparkConf) -> list[str]:
    """The `jars` that were not given; `--packages` names its files after their groups, too."""
    theirs = (given.get(_JARS, "") or "").split(",")
    return [jar for jar in jars if not any(name.endswith(Path(jar).name) for name in theirs)]
