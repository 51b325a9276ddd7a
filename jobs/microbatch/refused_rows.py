"""Refused rows as they are stored, and with the digests that their source rows had."""

from collections.abc import Iterable

from pyspark.sql import DataFrame

from jobs.microbatch.context import RunContext
from windowing.admit.digest import digest_of
from windowing.admit.outcomes import REFUSED
from windowing.columns import DIGEST
from windowing.source import table as source


def read_refused_tables(
    batch: RunContext, tables: Iterable[str] = tuple(REFUSED)
) -> dict[str, DataFrame]:
    """The tables of refused rows that exist, by name."""
    found = {table: batch.find_rows(table) for table in tables}
    return {table: rows for table, rows in found.items() if rows is not None}


def with_digest(batch: RunContext, refused: DataFrame) -> DataFrame:
    """Refused rows with the digest that the source row had.

    refused -> refused + [__digest]
    """
    schema = source.schema(batch.spark, batch.pipeline)
    earlier = source.earlier_types(batch.spark, batch.pipeline)
    return refused.withColumn(DIGEST, digest_of(refused, schema, earlier))
