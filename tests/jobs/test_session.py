"""What a session is made with."""

from pyspark.sql import SparkSession


def test_the_cache_of_generated_classes_holds_those_of_a_run(spark: SparkSession) -> None:
    # Spark reads it once, when the JVM first compiles something; a later change has no effect.
    assert spark.conf.get("spark.sql.codegen.cache.maxEntries") == "5000"
    assert not spark.conf.isModifiable("spark.sql.codegen.cache.maxEntries")
