"""What a session leaves out of Hadoop's settings, and what it keeps."""

from pathlib import Path

from pyspark.sql import SparkSession

from jobs.session import spark_session
from windowing import delta


def test_defaults_of_what_does_not_run_here_go_and_do_not_come_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    delta.append(spark.range(1), str(tmp_path / "table"))
    assert delta.read(spark, str(tmp_path / "table")).count() == 1
    settings = spark._jsc.hadoopConfiguration()
    assert (
        settings.get("yarn.resourcemanager.address"),
        settings.get("mapreduce.job.reduces"),
    ) == (None, None)
    assert settings.get("fs.AbstractFileSystem.file.impl"), "defaults of file systems stay"


def test_what_spark_or_a_user_has_set_stays(spark: SparkSession) -> None:
    settings = spark._jsc.hadoopConfiguration()
    settings.set("mapreduce.job.reduces", "7")
    spark_session("again")
    assert settings.get("mapreduce.job.reduces") == "7"
    assert settings.get("mapreduce.fileoutputcommitter.algorithm.version") == "1", "Spark sets it"
    settings.unset("mapreduce.job.reduces")


def test_the_cache_of_generated_classes_holds_those_of_a_run(spark: SparkSession) -> None:
    # Spark reads it once, when the JVM first compiles something; a later change has no effect.
    assert spark.conf.get("spark.sql.codegen.cache.maxEntries") == "5000"
    assert not spark.conf.isModifiable("spark.sql.codegen.cache.maxEntries")
