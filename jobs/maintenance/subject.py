"""What is erased: a key, or a value of another column, read from the texts that a user gives."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql import types as T

from jobs.diagnosis.diagnose import source_problems
from windowing.admit.erased import digest_values
from windowing.errors import UsageError
from windowing.ledger.erased import Erasing, Erasure
from windowing.ledger.table import read_history
from windowing.source import table as source
from windowing.source.table import KEY_TYPES, literal
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import join_names, suggest_name


@dataclass(frozen=True)
class Subject:
    """The `values` of a key by column, each with its type, or that of one other `column`.

    Where that column is `computed`, that is its expression.
    """

    values: Mapping[str, tuple[Column, T.DataType]]
    column: str | None = None
    computed: str | None = None


def read_subject(spark: SparkSession, pipeline: Pipeline, asked: Erasing) -> Subject:
    """The texts of what is `asked` as values of the source's columns. Nothing is written.

    Raises UsageError where a column of the key is missing, where a column is none of the key's or
    has no values that can be erased, or where a text is none of them, and the error of a run where
    the source is not the one that was read.
    """
    if asked.column is None:
        _check_key(pipeline, asked.values)
    elif pipeline.source.key == (asked.column,):
        raise UsageError(
            f"--where: {asked.column!r} is the key of {pipeline.name}; give --key instead"
        )
    types = _read_types(spark, pipeline)
    if asked.column is not None:
        _check_column(pipeline, types, asked.column)
    option = "--key" if asked.column is None else "--where"
    values = {}
    for column, value in asked.values.items():
        values[column] = (literal(spark, option, column, types[column], value), types[column])
    expression = pipeline.source.computed.get(asked.column or "")
    return Subject(values, asked.column, None if expression is None else expression.sql)


def _check_key(pipeline: Pipeline, columns: Collection[str]) -> None:
    """Raises UsageError unless these are the columns of the key."""
    missing = [column for column in pipeline.source.key if column not in columns]
    if missing:
        raise UsageError(
            f"--key: erase needs a value for every key column of {pipeline.name}; "
            f"{join_names(missing)} is missing"
        )
    unknown = [column for column in columns if column not in pipeline.source.key]
    if unknown:
        raise UsageError(
            f"--key: {join_names(unknown)} is no key column of {pipeline.name}; "
            f"it has {join_names(pipeline.source.key)}"
        )


def _check_column(pipeline: Pipeline, types: Mapping[str, T.DataType], column: str) -> None:
    """Raises UsageError unless the source has the column, and its values can be erased."""
    if column not in types:
        raise UsageError(
            f"--where: the source of {pipeline.name} has no column {column!r}; "
            f"it has {join_names(types)}{suggest_name(column, types)}"
        )
    kind = types[column]
    if not isinstance(kind, KEY_TYPES):
        allowed = join_names(sorted({each.typeName() for each in KEY_TYPES}))
        raise UsageError(
            f"--where: {column!r} is of type {kind.simpleString()}, whose values can't be erased; "
            f"allowed are {allowed}"
        )


def _read_types(spark: SparkSession, pipeline: Pipeline) -> Mapping[str, T.DataType]:
    """The types of the source's columns; the error of a run where it is not what was read."""
    found = source.checked_schema(spark, pipeline)
    for problem in source_problems(spark, pipeline, found, read_history(pipeline)):
        raise problem
    return {field.name: field.dataType for field in found.fields}


def compute_erasure(spark: SparkSession, subject: Subject, salt: str) -> Erasure:
    """The digest by which rows of the subject are known."""
    digest = digest_values(subject.values, salt).alias("digest")
    (row,) = spark.range(1).select(digest).collect()
    return Erasure(row["digest"], subject.column, subject.computed)
