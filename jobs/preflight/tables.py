"""The tables a pipeline has, their columns, and how they get them."""

from collections.abc import Mapping

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing import delta
from windowing.admit.table import REFUSED
from windowing.columns import CLOSED_BY, END, INDEX, LAST, REVISION, RUN, START, kept_name
from windowing.columns import T as TIME
from windowing.doctor.rule import advice
from windowing.errors import SpecError, StateRefused
from windowing.ledger.rule import Story
from windowing.ledger.table import LEDGER, ledger_schema
from windowing.merge.rule import Target, complete, output
from windowing.merge.table import create, replace
from windowing.panes.frame import algebras
from windowing.panes.rule import state_names
from windowing.source import table as source
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline


def make(spark: SparkSession, pipeline: Pipeline) -> None:
    """Ledger and outputs are there, outputs with every column the spec asks for; what an earlier spec asked for stays, but is null."""
    schemas = [
        (target, output_schema(spark, pipeline, w, target))
        for w in pipeline.windows
        for target in tables(pipeline, w)
    ]
    for target, schema in schemas:
        create(spark, target, schema)
        _widen(spark, target, schema)
    delta.create(spark, pipeline.table(LEDGER), ledger_schema(), delta.properties(ledger_schema()))


def follow_source_types(spark: SparkSession, pipeline: Pipeline) -> None:
    """Refused rows are kept with the types that the source has widened its own columns to.

    Raises StateRefused where Delta can't widen a column of theirs in the same way.
    """
    if not source.earlier_types(spark, pipeline):
        return
    wanted = {kept_name(f.name): f.dataType for f in source.schema(spark, pipeline).fields}
    for path in (pipeline.table(name) for name in REFUSED):
        if delta.exists(spark, path):
            try:
                delta.follow_types(spark, path, wanted)
            except AnalysisException as error:
                said = f"{pipeline.source.table}: a column of the source was widened, and {path} can't follow: {delta.reason(error)}"
                raise StateRefused(
                    "SOURCE_CHANGED", f"{said}; restore the type, or {advice(pipeline)}"
                ) from error


def retyped(spark: SparkSession, pipeline: Pipeline) -> list[str]:
    """Columns that an output has already, of another type than the spec asks for: as `{window}.{column}`."""
    return [
        f"{window.name}.{field.name}"
        for window in pipeline.windows
        for target in tables(pipeline, window)
        for field in output_schema(spark, pipeline, window, target).fields
        if field.dataType != _stored(spark, target).get(field.name, field.dataType)
    ]


def _stored(spark: SparkSession, target: Target) -> dict[str, T.DataType]:
    there = delta.exists(spark, target.path)
    return (
        {f.name: f.dataType for f in delta.read(spark, target.path).schema.fields} if there else {}
    )


def _widen(spark: SparkSession, target: Target, schema: T.StructType) -> None:
    """Columns that are missing are added, those no longer asked for hold null; a table without rows is made anew if types differ."""
    stored = _stored(spark, target)
    if (
        any(stored.get(f.name, f.dataType) != f.dataType for f in schema.fields)
        and delta.size(spark, target.path)[0] == 0
    ):
        replace(spark, target, schema)
        return
    missing = ", ".join(
        f"`{f.name}` {f.dataType.simpleString()}" for f in schema.fields if f.name not in stored
    )
    if missing:
        spark.sql(f"alter table delta.`{target.path}` add columns ({missing})")
    for name in (n for n in stored if n not in target.columns):
        table = DeltaTable.forPath(spark, target.path)
        if not table.toDF().where(F.col(f"`{name}`").isNotNull()).isEmpty():
            table.update(set={f"`{name}`": F.lit(None)})


def output_schema(
    spark: SparkSession, pipeline: Pipeline, window: Window, target: Target
) -> T.StructType:
    """The columns of a table of `window`. SpecError where `having` compares something that is no number."""
    found = source.read(spark, pipeline)
    types = algebras(pipeline, window.aggregates, found.schema)
    kept = {p.name: p.lift for a in types.values() for p in a.parts}
    empty = found.limit(0).withColumn(TIME, F.lit(0).cast("bigint"))
    parts = empty.agg(*(lift.alias(name) for name, lift in kept.items()))
    values = {
        f.name: f.dataType
        for f in parts.select(
            *(types[a.name].lower.alias(a.name) for a in window.aggregates)
        ).schema.fields
    }
    _check_having(pipeline, window, values)
    times = dict.fromkeys((START, END, LAST, CLOSED_BY), T.TimestampType())
    known = {**times, INDEX: T.LongType(), REVISION: T.LongType(), RUN: T.LongType()}
    keys = {k: found.schema[k].dataType for k in pipeline.source.key}
    return T.StructType([T.StructField(c, {**known, **values, **keys}[c]) for c in target.columns])


def _check_having(pipeline: Pipeline, window: Window, values: Mapping[str, T.DataType]) -> None:
    having = window.shown.having
    if having is not None and not isinstance(values[having.aggregate], T.NumericType):
        kind = values[having.aggregate].simpleString()
        raise SpecError(
            f"windows.{window.name}.having",
            f"{having.aggregate!r} is of type {kind}; having compares numbers only",
            pipeline.file,
        )


def tables(pipeline: Pipeline, window: Window) -> tuple[Target, ...]:
    """The output of `window`, and the table that holds all its windows if that is another."""
    return tuple(dict.fromkeys([output(pipeline, window), complete(pipeline, window)]))


def outputs(pipeline: Pipeline) -> tuple[str, ...]:
    """The names of the outputs, and of the tables that hold all windows of one."""
    return tuple(pipeline.name_of(t.path) for w in pipeline.windows for t in tables(pipeline, w))


def names(spark: SparkSession, pipeline: Pipeline) -> tuple[str, ...]:
    """The names of all tables of the pipeline that there are, but for the ledger's own."""
    others = [*state_names(pipeline), *REFUSED]
    return (
        *outputs(pipeline),
        *(name for name in others if delta.exists(spark, pipeline.table(name))),
    )


def left(spark: SparkSession, pipeline: Pipeline, past: Story) -> tuple[str, ...]:
    """The names of the tables that windows of an earlier spec have left."""
    ever = {name for e in past.entries for name in e.versions} - set(names(spark, pipeline))
    return tuple(sorted(name for name in ever if delta.exists(spark, pipeline.table(name))))


def versions(spark: SparkSession, pipeline: Pipeline) -> dict[str, int]:
    """The newest version of every table of the pipeline but the ledger's own, by name."""
    return {name: delta.version(spark, pipeline.table(name)) for name in names(spark, pipeline)}


def known_versions(spark: SparkSession, pipeline: Pipeline) -> dict[str, int]:
    """The same for who has held the lock since the tables were examined: nobody else has written, so no log is listed again."""
    return {
        name: delta.known_version(spark, pipeline.table(name)) for name in names(spark, pipeline)
    }
