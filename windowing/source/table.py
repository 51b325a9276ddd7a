"""The Delta source: its stream, its identity, and whether its columns still mean what the spec says."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing import delta
from windowing.aggregates.algebra import INTEGERS, NUMERIC
from windowing.doctor.rule import advice
from windowing.errors import SourceMissing, SpecError, StateRefused, UsageError
from windowing.expressions.compile import condition
from windowing.grid.zone import moment
from windowing.ledger.rule import Entry, Story
from windowing.panes.frame import part_names
from windowing.source.commits import Commit, commit
from windowing.source.frame import shaped
from windowing.source.names import clash_of_columns, clash_of_parts
from windowing.source.widening import schemas_over_time
from windowing.spec.kinds import Aggregate, Delta, Punctuation, Window
from windowing.spec.pipeline import Pipeline, Source

_KEYS = (T.StringType, *INTEGERS, T.BooleanType, T.DateType, T.TimestampType, T.DecimalType)
_TIMES = (T.TimestampType, T.TimestampNTZType, T.StringType, T.DateType)
_NUMBERS = (*INTEGERS, T.FloatType, T.DoubleType, T.DecimalType)
_SUMMED = (*_NUMBERS, T.StringType)
_ORDERED = (*_SUMMED, T.BooleanType, T.DateType, T.TimestampType)
_FED = {**dict.fromkeys(NUMERIC, _SUMMED), "count_if": (T.BooleanType,)}
"""What an aggregate takes that does not take every ordered type."""
_CLOCKS_US = 3_600_000_000
"""How much the clock of a writer may be ahead of ours."""


def stream(spark: SparkSession, pipeline: Pipeline) -> DataFrame:
    """What is new in the source since the checkpoint, as it is stored."""
    reader = spark.readStream.format("delta").option("maxFilesPerTrigger", 1_000_000)
    if pipeline.source.changes == "feed":
        reader = reader.option("readChangeFeed", "true")
    return (
        reader.load(pipeline.source.table)
        if "/" in pipeline.source.table
        else reader.table(delta.quoted(pipeline.source.table))
    )


def schema(spark: SparkSession, pipeline: Pipeline) -> T.StructType:
    """The columns of the source; SourceMissing, with the spec's field, where there is no such table."""
    if not delta.exists(spark, pipeline.source.table):
        where = f"{pipeline.file}: " if pipeline.file else ""
        name = pipeline.source.table
        what = f"at {name!r}; create it or correct the path"
        if "/" not in name:
            what = f"called {name!r} in Spark's catalog; a path needs a slash, as in ./{name}, and a catalog Spark's settings that name it"
        raise SourceMissing(f"{where}source.table: there is no Delta table {what}")
    return read(spark, pipeline).schema


def read(spark: SparkSession, pipeline: Pipeline, version: int | None = None) -> DataFrame:
    """The events of the source, newest or at a version: computed columns added, rows that `where` leaves out gone."""
    stored = delta.read(spark, pipeline.source.table, version)
    names = {f.name.lower() for f in stored.schema.fields}
    taken = next((name for name, _ in pipeline.source.columns if name.lower() in names), None)
    if taken is not None:
        raise SpecError(
            f"source.columns.{taken}",
            "is a column of the source already; name the computed one otherwise",
            pipeline.file,
        )
    try:
        return shaped(stored, pipeline)
    except SpecError as error:
        raise SpecError(error.field, error.message, pipeline.file) from None


def earlier_types(spark: SparkSession, pipeline: Pipeline) -> Mapping[str, tuple[T.DataType, ...]]:
    """By column of the source, computed ones too, whose type was widened: the types it had before, oldest first."""
    schemas = schemas_over_time(delta.known_schema(spark, pipeline.source.table))
    if len(schemas) == 1:
        return {}
    found = [shaped(spark.createDataFrame([], schema), pipeline).schema for schema in schemas]
    earlier = {}
    for name, now in ((f.name, f.dataType) for f in found[-1].fields):
        types = dict.fromkeys(schema[name].dataType for schema in found)
        earlier[name] = tuple(kind for kind in types if kind != now)
    return {name: types for name, types in earlier.items() if types}


def check(pipeline: Pipeline, found: T.StructType, story: Story) -> None:
    """SpecError where the source lacks what the spec names, StateRefused where it had it before (the source changed)."""
    problem = next((p for p in _problems(pipeline, found) if p), None)
    problem = problem or clash_of_parts(pipeline.source.key, part_names(pipeline, found))
    if problem is None:
        return
    field, message = problem
    if story.any_done:
        raise StateRefused(
            "SOURCE_CHANGED",
            f"{pipeline.source.table}: {field}: {message}; restore the column, or {advice(pipeline)}",
        )
    raise SpecError(field, message, pipeline.file)


def check_feed(spark: SparkSession, pipeline: Pipeline) -> None:
    """SpecError where the change feed is asked for and the source records none."""
    on = "delta.enableChangeDataFeed"
    if (
        pipeline.source.changes == "feed"
        and delta.setting(spark, pipeline.source.table, on) != "true"
    ):
        how = f"set its property {on} to true, or use refuse"
        raise SpecError(
            "source.changes",
            f"feed: {pipeline.source.table} records no change feed; {how}",
            pipeline.file,
        )


def check_identity(spark: SparkSession, pipeline: Pipeline, story: Story) -> None:
    """StateRefused where the source is another table than the one read so far, or lost versions that were read."""
    table_id, version = (
        delta.table_id(spark, pipeline.source.table),
        delta.known_version(spark, pipeline.source.table),
    )
    before = story.source
    if before is None:
        return
    if before.source_id != table_id:
        told = f"{pipeline.source.table}: the source was dropped and created again since run {before.run}"
        raise StateRefused(
            "SOURCE_RECREATED", f"{told}; put the old one back, or {advice(pipeline)}"
        )
    gone = _gone(spark, pipeline, before, version)
    if gone:
        raise StateRefused(
            "SOURCE_OLDER", f"{pipeline.source.table}: {gone}; restore it, or {advice(pipeline)}"
        )


def _gone(spark: SparkSession, pipeline: Pipeline, before: Entry, version: int) -> str | None:
    """How it shows that the source, now at `version`, lost versions that were read: it is behind, or has grown anew since."""
    read = before.source_version
    if read is None or before.at is None:
        return None
    if version < read:
        return f"the source is at version {version}, but version {read} was read"
    written = delta.committed(spark, pipeline.source.table, read)
    if written is None or written <= before.at + _CLOCKS_US:
        return None
    return f"version {read} of the source was read at {moment(before.at)}, but written at {moment(written)}"


def _problems(pipeline: Pipeline, found: T.StructType) -> list[tuple[str, str] | None]:
    source, types = pipeline.source, {f.name: f.dataType for f in found.fields}
    out = [clash_of_columns(source, list(types))]
    out += _time_problems(source, types) if source.event_time.column else []
    out += [_typed("source.key", k, types, _KEYS) for k in source.key]
    out += [_typed("source.event_id", source.event_id, types, _ORDERED)] if source.event_id else []
    out += [_typed("source.order_by", c, types, _ORDERED) for c in source.order_by]
    out += [_aggregate(a, types) for a in pipeline.aggregates] + [
        _condition(a, found) for a in pipeline.aggregates
    ]
    return out + [_window(w, types) for w in pipeline.windows]


def _time_problems(source: Source, types: dict[str, T.DataType]) -> list[tuple[str, str] | None]:
    time, name = source.event_time, source.event_time.column or ""
    wrong = _typed(
        "source.event_time", name, types, _NUMBERS + (T.StringType,) if time.unit else _TIMES
    )
    naive = (
        isinstance(types.get(name), (T.TimestampNTZType, T.StringType, T.DateType))
        and not time.unit
    )
    unknown = f"{name!r} holds times without a zone; name it, for example 'zone: Europe/Berlin' or 'zone: UTC'"
    return [wrong, ("source.zone", unknown) if naive and not source.zone else None]


def _window(window: Window, types: dict[str, T.DataType]) -> tuple[str, str] | None:
    """What is wrong with the columns that end windows."""
    match window:
        case Punctuation(marker=marker):
            return _typed(f"windows.{window.name}.marker", marker, types, (T.BooleanType,))
        case Delta(attribute=attribute, delta_us=None):
            return _typed(f"windows.{window.name}.attribute", attribute, types, _NUMBERS)
        case Delta(attribute=attribute):
            return _typed(f"windows.{window.name}.attribute", attribute, types, (T.TimestampType,))
    return None


def _condition(aggregate: Aggregate, found: T.StructType) -> tuple[str, str] | None:
    try:
        if aggregate.where is not None:
            condition(aggregate.where, found, f"aggregates.{aggregate.name}.where")
    except SpecError as error:
        return error.field, error.message
    return None


def _aggregate(aggregate: Aggregate, types: dict[str, T.DataType]) -> tuple[str, str] | None:
    if aggregate.column is None:
        return None
    field = f"aggregates.{aggregate.name}"
    ordered = None if aggregate.by is None else _typed(field, aggregate.by, types, _ORDERED)
    return _typed(field, aggregate.column, types, _FED.get(aggregate.function, _ORDERED)) or ordered


def _typed(
    field: str, column: str, types: dict[str, T.DataType], allowed: tuple[type[T.DataType], ...]
) -> tuple[str, str] | None:
    if column not in types:
        return field, f"the source has no column {column!r}; it has {', '.join(sorted(types))}"
    if isinstance(types[column], allowed):
        return None
    names = ", ".join(sorted({t.typeName() for t in allowed}))
    return field, f"{column!r} is of type {types[column].simpleString()}; allowed are {names}"


def commits(
    spark: SparkSession, pipeline: Pipeline, since: int, version: int
) -> list[Commit | None]:
    """The commits `since` to `version`, both inside; None for one whose file is gone."""
    if since > version:
        return []
    log = delta.home(spark, pipeline.source.table) / "_delta_log"
    files = [(v, log / f"{v:020d}.json") for v in range(since, version + 1)]
    return [
        commit(v, f.read_text(), pipeline.source.event_time.column or "") if f.exists() else None
        for v, f in files
    ]


def literal(spark: SparkSession, column: str, kind: T.DataType, value: str) -> Column:
    """The text `value` as a value of a key column of type `kind`; UsageError where it can't be one."""
    if isinstance(kind, T.StringType):
        return F.lit(value)
    typed = F.lit(value).try_cast(kind)
    fits = spark.range(1).select(typed.isNotNull()).first()
    if not (fits and fits[0]):
        raise UsageError(
            f"--key: {value!r} is not a value of {column!r}, which is of type {kind.simpleString()}"
        )
    return typed
