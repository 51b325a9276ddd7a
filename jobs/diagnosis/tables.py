"""The tables of a pipeline: their names, their columns, and how they are created and widened."""

from collections.abc import Mapping

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.admit.outcomes import REFUSED
from windowing.closed.rule import restated_name
from windowing.columns import CLOSED_BY, END, INDEX, LAST, REVISION, RUN, START, TIME, kept_name
from windowing.doctor.rule import advice
from windowing.errors import SpecError, StateRefused
from windowing.ledger.rule import LedgerExcerpt
from windowing.ledger.table import create_ledger
from windowing.merge.rule import Target, complete_table, output_table
from windowing.merge.table import create_table, recreate_table
from windowing.panes.frame import algebras_of
from windowing.panes.rule import state_names
from windowing.source import table as source
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta, own_tables, upkeep
from windowing.storage.kept_open import has_commit, newest_version


def ensure_tables(spark: SparkSession, pipeline: Pipeline) -> None:
    """Creates ledger and outputs where they are missing, and adds columns that the spec adds.

    Columns of an earlier spec stay in an output, but are null.
    """
    # All schemas are computed first, so that a SpecError leaves nothing behind.
    for target, schema in list_schemas(spark, pipeline):
        create_table(spark, target, schema)
        _fit_columns(spark, target, schema)
    create_ledger(pipeline)


def follow_source_types(spark: SparkSession, pipeline: Pipeline) -> None:
    """Widens columns of the tables of refused rows as the source has widened its own.

    Raises StateRefused where Delta can't widen a column of theirs in the same way.
    """
    if not source.earlier_types(spark, pipeline):
        return
    fields = source.schema(spark, pipeline).fields
    wanted = {kept_name(field.name): field.dataType for field in fields}
    for name in REFUSED:
        path = pipeline.table(name)
        if not has_commit(path):
            continue
        try:
            delta.follow_types(spark, path, wanted)
        except AnalysisException as error:
            reason = delta.reason(error)
            found = f"a column of the source was widened, and {path} can't follow: {reason}"
            repair = f"restore the type, or {advice(pipeline)}"
            raise StateRefused(
                "SOURCE_CHANGED", f"{pipeline.source.table}: {found}; {repair}"
            ) from error


def find_retyped_columns(spark: SparkSession, pipeline: Pipeline) -> list[str]:
    """Columns of outputs whose stored type is not the one the spec asks for: `{window}.{column}`.

    Columns that an output does not have yet are not among them.
    """
    found = []
    windows = [window for window in pipeline.windows for _ in tables_of_window(pipeline, window)]
    for window, (target, wanted) in zip(windows, list_schemas(spark, pipeline), strict=True):
        stored = _read_stored_types(spark, target)
        for field in wanted.fields:
            if field.dataType != stored.get(field.name, field.dataType):
                found.append(f"{window.name}.{field.name}")
    return found


def _read_stored_types(spark: SparkSession, target: Target) -> dict[str, T.DataType]:
    if not has_commit(target.path):
        return {}
    fields = own_tables.schema(spark, target.path).fields
    return {field.name: field.dataType for field in fields}


def _fit_columns(spark: SparkSession, target: Target, schema: T.StructType) -> None:
    """Adds missing columns to an output, and sets those no longer asked for to null.

    A table without rows is created again where a type differs.
    """
    stored = _read_stored_types(spark, target)
    differs = any(stored.get(f.name, f.dataType) != f.dataType for f in schema.fields)
    if differs and own_tables.size(spark, target.path)[0] == 0:
        recreate_table(spark, target, schema)
        return
    missing = [field for field in schema.fields if field.name not in stored]
    if missing:
        upkeep.add_columns(spark, target.path, missing)
    for name in stored:
        if name not in target.columns:
            upkeep.set_null(spark, target.path, f"`{name}`")


def list_schemas(spark: SparkSession, pipeline: Pipeline) -> list[tuple[Target, T.StructType]]:
    """The columns of all outputs and complete tables, in order of the windows.

    SpecError where `having` compares what is no number.
    """
    types = _find_types(spark, pipeline)
    found = []
    for window in pipeline.windows:
        _check_having(pipeline, window, types)
        for target in tables_of_window(pipeline, window):
            columns = [T.StructField(name, types[name]) for name in target.columns]
            found.append((target, T.StructType(columns)))
    return found


def _find_types(spark: SparkSession, pipeline: Pipeline) -> dict[str, T.DataType]:
    """The types of all columns that outputs may have, by name.

    Those of values are as Spark resolves them, by one query for all windows; no row is read.
    """
    rows = source.read(spark, pipeline)
    algebras = algebras_of(pipeline, pipeline.aggregates, rows.schema)
    lifts = {}
    for algebra in algebras.values():
        for part in algebra.parts:
            lifts[part.name] = part.lift
    empty = rows.limit(0).withColumn(TIME, F.lit(0).cast("bigint"))
    parts = empty.agg(*(lift.alias(name) for name, lift in lifts.items()))
    lowered = parts.select(*(each.lower.alias(name) for name, each in algebras.items()))
    times = dict.fromkeys((START, END, LAST, CLOSED_BY), T.TimestampType())
    numbers = dict.fromkeys((INDEX, REVISION, RUN), T.LongType())
    values = {field.name: field.dataType for field in lowered.schema.fields}
    keys = {key: rows.schema[key].dataType for key in pipeline.source.key}
    # The later ones win where names are equal.
    return {**times, **numbers, **values, **keys}


def _check_having(pipeline: Pipeline, window: Window, values: Mapping[str, T.DataType]) -> None:
    """SpecError where `having` compares an aggregate that is not a number."""
    having = window.shown.having
    if having is None:
        return
    kind = values[having.aggregate]
    if not isinstance(kind, T.NumericType):
        raise SpecError(
            f"windows.{window.name}.having",
            f"{having.aggregate!r} is of type {kind.simpleString()}; having compares numbers only",
            pipeline.file,
        )


def tables_of_window(pipeline: Pipeline, window: Window) -> tuple[Target, ...]:
    """The output of `window`, and its complete table if that is another one."""
    output = output_table(pipeline, window)
    complete = complete_table(pipeline, window)
    if complete == output:
        return (output,)
    return output, complete


def output_names(pipeline: Pipeline) -> tuple[str, ...]:
    """The names of the outputs and of their complete tables."""
    names = []
    for window in pipeline.windows:
        for target in tables_of_window(pipeline, window):
            names.append(target.path.name)
    return tuple(names)


def restated_names(pipeline: Pipeline) -> tuple[str, ...]:
    """The names of the tables of restated rows that outputs have once they were closed."""
    return tuple(restated_name(window.name) for window in pipeline.windows)


def existing_tables(pipeline: Pipeline) -> tuple[str, ...]:
    """The names of all tables that the pipeline has, except the ledger and its companions."""
    others = [*state_names(pipeline), *REFUSED, *restated_names(pipeline)]
    existing = [name for name in others if has_commit(pipeline.table(name))]
    return (*output_names(pipeline), *existing)


def tables_of_dropped_windows(pipeline: Pipeline, past: LedgerExcerpt) -> tuple[str, ...]:
    """The names of the tables that windows of an earlier spec have left."""
    others = past.recorded_tables - set(existing_tables(pipeline))
    return tuple(sorted(name for name in others if has_commit(pipeline.table(name))))


def known_versions(pipeline: Pipeline) -> dict[str, int]:
    """The newest version of every table that this process has made or looked at, by name.

    While the caller holds the lock no other program may write. If one does, the next run finds it.
    """
    return {
        name: own_tables.known_version(pipeline.table(name)) for name in existing_tables(pipeline)
    }


def table_versions(pipeline: Pipeline) -> dict[str, int]:
    """The newest version of every table of the pipeline that exists, by name."""
    return {name: newest_version(pipeline.table(name)) for name in existing_tables(pipeline)}
