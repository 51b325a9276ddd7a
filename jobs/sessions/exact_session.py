"""The session that a command works in, with the settings that results depend on.

It is the caller's own session, or a copy of it. A notebook or a cluster may have set another time
zone, or have switched ANSI off. Then text and local timestamps would be read hours off, and a
number that doesn't fit would become null without an error. The caller's own session keeps its
settings, also while a command runs.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from pyspark.sql import SparkSession

from jobs.sessions.profiles import EXACT
from windowing.storage.spark_internals import clone_session

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def in_exact_session(
    command: Callable[Concatenate[SparkSession, _Given], _Result],
) -> Callable[Concatenate[SparkSession, _Given], _Result]:
    """`command`, which always gets a session with the `EXACT` settings."""

    @wraps(command)
    def exact(spark: SparkSession, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        return command(exact_session(spark), *args, **kwargs)

    return exact


def exact_session(spark: SparkSession) -> SparkSession:
    """`spark` where it has the `EXACT` settings already, else a copy of it that has them."""
    # Spark takes another default than None for a value of the setting, and refuses what is none.
    if all(spark.conf.get(name, None) == value for name, value in EXACT.items()):
        return spark
    return copy_session(spark, EXACT)


def copy_session(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A session with other `settings` that shares context, catalog and views with `spark`."""
    copy = clone_session(spark)
    for name, value in settings.items():
        copy.conf.set(name, value)
    return copy
