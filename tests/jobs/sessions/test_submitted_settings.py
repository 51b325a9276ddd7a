"""What `spark-submit` was given wins over ours, unless results depend on it."""

import pytest
from pyspark import SparkConf

from jobs.session import is_chosen, named_master
from jobs.sessions.profiles import CLUSTER, COMMON, DEFAULTS
from jobs.sessions.submitted import merge_settings
from windowing.errors import UsageError
from windowing.storage import gateway_variables, spark_internals
from windowing.storage.log_stores import ANY_SCHEME, LOG_STORE_SETTINGS

OURS = {"spark.master": "local[*]", **DEFAULTS, **COMMON, **CLUSTER, **LOG_STORE_SETTINGS}
JARS = ("/jars/delta-spark_4.1_2.13-4.4.0.jar", "/jars/delta-storage-4.4.0.jar")
SECRET = "spark.authenticate.secret"


def given(**settings: str) -> SparkConf:
    return SparkConf(loadDefaults=False).setAll([(n, str(v)) for n, v in settings.items()])


@pytest.mark.parametrize(
    "name", ["spark.master", "spark.log.level", "spark.databricks.delta.snapshotPartitions"]
)
def test_what_was_given_is_left_to_the_jvm(name: str) -> None:
    assert name in merge_settings(OURS, given(), JARS)
    merged = merge_settings(OURS, given(**{name: "theirs", SECRET: "hidden"}), JARS)
    assert name not in merged
    assert "hidden" not in merged.values()


@pytest.mark.parametrize(
    "name",
    [
        "spark.sql.session.timeZone",
        "spark.sql.ansi.enabled",
        "spark.sql.extensions",
        "spark.sql.catalog.spark_catalog",
        "spark.hadoop.fs.defaultFS",
        *LOG_STORE_SETTINGS,
    ],
)
def test_what_results_or_delta_depend_on_stays_ours(name: str) -> None:
    assert merge_settings(OURS, given(**{name: "theirs"}), JARS)[name] == OURS[name]


def test_one_log_store_for_everything_is_refused() -> None:
    theirs = given(**{ANY_SCHEME: "io.delta.storage.S3DynamoDBLogStore"})
    with pytest.raises(UsageError, match="commits to S3 and HDFS by log stores of its own"):
        merge_settings(OURS, theirs, JARS)


@pytest.mark.parametrize(
    ("theirs", "merged"),
    [
        ("", ",".join(JARS)),
        ("/a/b.jar", ",".join(["/a/b.jar", *JARS])),
        (
            "file:///j/jars/io.delta_delta-spark_4.1_2.13-4.4.0.jar,/a/b.jar",
            "file:///j/jars/io.delta_delta-spark_4.1_2.13-4.4.0.jar,/a/b.jar," + JARS[1],
        ),
    ],
)
def test_our_jars_are_added_to_theirs(theirs: str, merged: str) -> None:
    assert merge_settings(OURS, given(**{"spark.jars": theirs}), JARS)["spark.jars"] == merged


def test_under_spark_submit_the_environment_names_no_master(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_MASTER", "spark://host:7077")
    assert named_master() == "spark://host:7077"
    assert not is_chosen("spark.log.level")
    conf = given(**{"spark.log.level": "INFO", "spark.sql.ansi.enabled": "false"})
    monkeypatch.setattr(spark_internals, "read_submitted", lambda: conf)
    assert named_master() is None
    assert is_chosen("spark.log.level")
    assert not is_chosen("spark.sql.ansi.enabled")


def test_a_jvm_of_ours_was_not_started_by_spark_submit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(gateway_variables.PORT, "1")
    monkeypatch.setenv(spark_internals._STARTED_HERE, "yes")
    assert spark_internals.read_submitted() is None
