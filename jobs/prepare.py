"""What must be true before anything is written: the source is there and unchanged, the spec is the one state was made by."""

from collections.abc import Mapping
from json import dumps, loads

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.show import state_names
from windowing import delta
from windowing.admit.table import REFUSED
from windowing.columns import CLOSED_BY, END, INDEX, LAST, REVISION, RUN, START
from windowing.columns import T as TIME
from windowing.errors import SpecError, StateRefused
from windowing.ledger.rule import OPEN, Story
from windowing.ledger.table import LEDGER, ledger_schema, story
from windowing.merge.rule import Target, complete, output
from windowing.merge.table import create
from windowing.panes.events import inputs as buffered
from windowing.panes.frame import algebras
from windowing.source import table as source
from windowing.spec.fingerprint import fingerprint
from windowing.spec.kinds import Window
from windowing.spec.pipeline import Pipeline


def prepared(spark: SparkSession, pipeline: Pipeline) -> Story:
    """The ledger's story, once source and spec agree with it; makes ledger and outputs on a first run."""
    found = source.schema(spark, pipeline)
    past = story(spark, pipeline)
    source.check(pipeline, found, past)
    source.check_identity(pipeline, delta.table_id(spark, pipeline.source.table), delta.version(spark, pipeline.source.table), past)
    _same_types(pipeline, found, past)
    _same_spec(pipeline, past)
    if not past.entries:
        _make_tables(spark, pipeline)
    return past


def output_schema(spark: SparkSession, pipeline: Pipeline, window: Window, target: Target) -> T.StructType:
    """The columns of a table of `window`. SpecError where `having` compares something that is no number."""
    found = source.read(spark, pipeline)
    types = algebras(pipeline, window.aggregates, found.schema)
    kept = {p.name: p.lift for a in types.values() for p in a.parts}
    empty = found.limit(0).withColumn(TIME, F.lit(0).cast("bigint"))
    parts = empty.agg(*(lift.alias(name) for name, lift in kept.items()))
    values = {f.name: f.dataType for f in parts.select(*(types[a.name].lower.alias(a.name) for a in window.aggregates)).schema.fields}
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
            f"windows.{window.name}.having", f"{having.aggregate!r} is of type {kind}; having compares numbers only", pipeline.file
        )


def tables(pipeline: Pipeline, window: Window) -> tuple[Target, ...]:
    """The output of `window`, and the table that holds all its windows if that is another."""
    return tuple(dict.fromkeys([output(pipeline, window), complete(pipeline, window)]))


def versions(spark: SparkSession, pipeline: Pipeline) -> dict[str, int]:
    """The newest version of every table of the pipeline but the ledger's own, by name."""
    found = [t.path.removeprefix(f"{pipeline.root}/") for w in pipeline.windows for t in tables(pipeline, w)]
    others = [*state_names(pipeline), *REFUSED]
    there = [name for name in others if delta.exists(spark, pipeline.table(name))]
    return {name: delta.version(spark, pipeline.table(name)) for name in (*found, *there)}


def _make_tables(spark: SparkSession, pipeline: Pipeline) -> None:
    made = [(target, output_schema(spark, pipeline, w, target)) for w in pipeline.windows for target in tables(pipeline, w)]
    for target, schema in made:
        create(spark, target, schema)
    delta.create(spark, pipeline.table(LEDGER), ledger_schema(), {"delta.checkpointInterval": "50"})


def used_types(pipeline: Pipeline, found: T.StructType) -> str:
    """The types of the columns that state depends on, as the ledger keeps them."""
    source = pipeline.source
    wanted = [n for a in pipeline.aggregates for n in (a.column, a.by, *(a.where.columns if a.where else ()))]
    names = dict.fromkeys([*source.key, source.event_time.column, source.event_id, *source.order_by, *wanted, *buffered(pipeline)])
    return dumps({name: found[name].dataType.simpleString() for name in names if name is not None})


def _same_types(pipeline: Pipeline, found: T.StructType, past: Story) -> None:
    kept = next((e.note for e in reversed(past.entries) if e.step == OPEN and e.note), None)
    before, now = loads(kept or "{}"), loads(used_types(pipeline, found))
    changed = next((name for name in before if now.get(name, before[name]) != before[name]), None)
    if changed is not None:
        raise StateRefused(
            f"{pipeline.source.table}: the source has changed: {changed!r} was of type {before[changed]} when state was made and is "
            f"{now[changed]} now; restore the type, or give the pipeline a new name"
        )


def _same_spec(pipeline: Pipeline, past: Story) -> None:
    before = next((e for e in reversed(past.entries) if e.spec), None)
    if before is None or before.spec == fingerprint(pipeline):
        return
    where = pipeline.file or pipeline.name
    raise StateRefused(
        f"{where}: source, watermark, windows or aggregates differ from those of run {before.run}, "
        f"which made the state in {pipeline.root}; restore the spec, or give the pipeline a new name"
    )
