"""What Spark does to a table as a whole: rows changed or deleted, files merged and removed."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T

from windowing.columns import quoted
from windowing.location import Location
from windowing.storage import delta, delta_log, own_tables
from windowing.storage.master import is_local


def compact_files(spark: SparkSession, path: Location) -> None:
    """Merges the small files of the table at `path`; no row changes."""
    with delta_log.committing(spark, path):
        DeltaTable.forPath(spark, path.hadoop).optimize().executeCompaction()


def rewrite_marked_files(spark: SparkSession, path: Location) -> None:
    """Rewrites the files in which deleted rows are only marked; no row changes.

    On a cluster all files of a table that has such are rewritten.
    """
    if not delta_log.may_mark_rows(spark, path):
        return
    with delta_log.committing(spark, path):
        if is_local(spark.sparkContext.master or ""):
            spark.sql(f"reorg table {path.sql} apply (purge)")
        else:
            # REORG asks for a session on the executors, where there is none. OPTIMIZE leaves a
            # marked file as it is, unless it can be merged with another one.
            writer = delta.read(spark, path).write.format("delta").mode("overwrite")
            writer.option("dataChange", "false").save(path.hadoop)


def vacuum(spark: SparkSession, path: Location, kept: timedelta) -> None:
    """Deletes the files that no version younger than `kept` needs."""
    with delta_log.committing(spark, path):
        DeltaTable.forPath(spark, path.hadoop).vacuum(kept.total_seconds() / 3600)


def update_rows(
    spark: SparkSession, path: Location, where: Column, values: Mapping[str, Column]
) -> None:
    """Sets columns, named in backticks, of the rows for which `where` is true, in one commit."""
    changes: dict[str, str | Column] = dict(values)
    with delta_log.committing(spark, path):
        DeltaTable.forPath(spark, path.hadoop).update(where, changes)


def delete_where(spark: SparkSession, path: Location, where: Column) -> None:
    """Deletes the rows for which `where` is true, in one commit; its log contains the condition."""
    with delta_log.committing(spark, path):
        DeltaTable.forPath(spark, path.hadoop).delete(where)


def list_history(spark: SparkSession, path: Location, newest: int) -> list[tuple[int, str]]:
    """The `newest` versions of the table at `path`, each with the operation that made it."""
    history = DeltaTable.forPath(spark, path.hadoop).history(newest)
    rows = history.select("version", "operation").collect()
    return [(row["version"], row["operation"]) for row in rows]


def add_columns(spark: SparkSession, path: Location, columns: Sequence[T.StructField]) -> None:
    """Adds columns to the table at `path`; its rows have null there."""
    added = ", ".join(f"{quoted(c.name)} {c.dataType.simpleString()}" for c in columns)
    with delta_log.committing(spark, path):
        spark.sql(f"alter table {path.sql} add columns ({added})")


def overwrite(rows: DataFrame, path: Location) -> None:
    """Replaces all rows of the table at `path`, and its columns by those of `rows`."""
    delta.widen_names(rows.sparkSession, path, rows.schema)
    writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    with delta_log.committing(rows.sparkSession, path):
        writer.options(**delta.properties(rows.schema)).save(path.hadoop)


def replace_between(rows: DataFrame, path: Location, column: str, low_us: int, end_us: int) -> None:
    """Replaces the rows of the table at `path` with a `column` from `low_us` to before `end_us`.

    The table is created where there is none.
    """
    spark = rows.sparkSession
    own_tables.create(spark, path, rows.schema, delta.properties(rows.schema))
    low, end = delta.write_instant(low_us), delta.write_instant(end_us)
    inside = f"`{column}` >= {low} and `{column}` < {end}"
    writer = rows.write.format("delta").mode("overwrite").option("replaceWhere", inside)
    with delta_log.committing(spark, path):
        writer.save(path.hadoop)


def clone(spark: SparkSession, path: Location, version: int, copy: Location) -> None:
    """Makes a table at `copy` of a version of the table at `path`, whose files both read."""
    with delta_log.committing(spark, copy):
        spark.sql(f"create table {copy.sql} shallow clone {path.sql} version as of {version}")


def set_null(spark: SparkSession, path: Location, column: str) -> None:
    """Sets a column, named in backticks, to null wherever it has a value.

    Nothing is committed where no row has one.
    """
    table = DeltaTable.forPath(spark, path.hadoop)
    with_value: DataFrame = table.toDF().where(f"{column} is not null")
    if not with_value.isEmpty():
        with delta_log.committing(spark, path):
            table.update(set={column: "null"})
