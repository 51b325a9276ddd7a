"""Which session a run works in, by its size."""

from pyspark.sql import SparkSession

from jobs.sessions.small_session import SMALL, session_of_size
from jobs.shortcuts.run_size import RunSize

FEW = RunSize(new_rows=1, stored_bytes=1)
MANY = RunSize(new_rows=1_000_000, stored_bytes=1)
PARTITIONS = "spark.sql.shuffle.partitions"


def test_a_small_run_works_in_a_copy(spark: SparkSession) -> None:
    own = spark.newSession()
    own.conf.set(PARTITIONS, "7")
    small = session_of_size(own, FEW)
    assert {name: small.conf.get(name) for name in SMALL} == SMALL
    assert own.conf.get(PARTITIONS) == "7"


def test_other_runs_work_in_the_session_itself(spark: SparkSession) -> None:
    assert session_of_size(spark, MANY) is spark
    assert session_of_size(spark, None) is spark


def test_all_small_runs_of_a_session_share_a_copy(spark: SparkSession) -> None:
    own, other = spark.newSession(), spark.newSession()
    assert session_of_size(own, FEW) is session_of_size(own, FEW)
    assert session_of_size(own, FEW) is not session_of_size(other, FEW)


def test_a_changed_setting_makes_another_copy(spark: SparkSession) -> None:
    own = spark.newSession()
    before = session_of_size(own, FEW)
    own.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    after = session_of_size(own, FEW)
    assert after is not before
    assert after.conf.get("spark.sql.autoBroadcastJoinThreshold") == "-1"
