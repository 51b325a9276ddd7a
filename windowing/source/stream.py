"""The Delta source as a stream: what a run has yet to read."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from windowing.spec.pipeline import Pipeline

_MOST_FILES = 1_000_000
"""Without a number of its own Delta would end a batch after 1,000 files."""


def read_stream(
    spark: SparkSession, pipeline: Pipeline, most_bytes: int | None = None
) -> DataFrame:
    """What is new in the source since its stream stood last, as it is stored.

    A batch ends with the file that reaches `most_bytes`; None for one batch of everything.
    """
    options = {}
    if pipeline.source.changes == "feed":
        options["readChangeFeed"] = "true"
    if most_bytes is not None:
        options["maxBytesPerTrigger"] = f"{most_bytes}b"
    return _stream(spark, pipeline, options)


def read_appended(spark: SparkSession, pipeline: Pipeline) -> DataFrame:
    """What was appended to the source since its stream stood last, as it is stored.

    Commits that removed rows are passed over as a whole, with the rows that they added.
    """
    return _stream(spark, pipeline, {"skipChangeCommits": "true"})


def _stream(spark: SparkSession, pipeline: Pipeline, options: Mapping[str, str]) -> DataFrame:
    reader = spark.readStream.format("delta").option("maxFilesPerTrigger", _MOST_FILES)
    reader, table = reader.options(**options), pipeline.source.table
    return reader.table(table.sql) if table.is_in_catalog else reader.load(table.hadoop)
